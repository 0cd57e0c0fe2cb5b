package console

import (
	"context"
	"net/http"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// stop is POST …/stop: it cancels the updates that are active and that the
// caller may cancel. Without any it does nothing. Error: 403 if there are some,
// and the caller may cancel none of them.
func (a *api) stop(ctx context.Context, c *caller, r *http.Request) (any, error) {
	s, err := a.open(ctx, c, r.PathValue("pipeline_id"))
	if err != nil {
		return nil, err
	}
	defer s.close()
	rows, err := s.Query(ctx, "select u.update_id from rwproxy.updates u where u.state in ('QUEUED', 'RUNNING') order by u.requested_at")
	if err != nil {
		return nil, err
	}
	var refused error
	allowed := 0
	for _, row := range rows {
		_, err := s.Query(ctx, "select rwproxy.cancel_refresh($1)", row[0].Text)
		switch {
		case pgdiag.Code(err) == "42501":
			refused = err
		case err != nil:
			return nil, err
		default:
			allowed++
		}
	}
	if allowed == 0 && refused != nil {
		return nil, refused
	}
	return stopResponse{}, nil
}
