package console

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// maxUpdates is how many updates a page may have.
const maxUpdates = 100

const selectUpdates = `
select u.update_id,
       u.cause,
       u.state,
       u.full_refresh,
       pg_catalog.to_json(u.refresh_selection),
       pg_catalog.to_json(u.full_refresh_selection),
       u.validate_only,
       pg_catalog.floor(1000 * extract(epoch from u.requested_at)),
       pg_catalog.to_char(u.requested_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
       u.error
  from rwproxy.updates u`

// causes are those of refreshes that were not started here, in the words of the
// API.
var causes = map[string]string{
	"statement": "USER_ACTION",
	"schedule":  "JOB_TASK",
	"trigger":   "JOB_TASK",
	"api":       "API_CALL",
}

// startUpdate is POST …/updates.
func (a *api) startUpdate(ctx context.Context, c *caller, r *http.Request) (any, error) {
	s, err := a.open(ctx, c, r.PathValue("pipeline_id"))
	if err != nil {
		return nil, err
	}
	defer s.close()
	body, err := readStartUpdate(r)
	if err != nil {
		return nil, err
	}
	// A predicate is read as it would be in any session of the role's.
	if err := s.enterRole(ctx, c); err != nil {
		return nil, err
	}
	id, err := a.config.Engine.StartUpdate(ctx, s, body.update())
	if err != nil {
		return nil, err
	}
	return startUpdateResponse{UpdateID: id}, nil
}

func (b *startUpdateRequest) update() refresh.Update {
	u := refresh.Update{
		Cause:                b.cause,
		FullRefresh:          b.fullRefresh,
		RefreshSelection:     b.refreshSelection,
		FullRefreshSelection: b.fullRefreshSelection,
		ValidateOnly:         b.validateOnly,
	}
	if u.Cause == "" {
		u.Cause = "API_CALL"
	}
	for _, o := range b.replaceWhereOverrides {
		u.Overrides = append(u.Overrides, refresh.Override{FlowName: o.FlowName, Predicate: o.PredicateOverride})
	}
	return u
}

// getUpdate is GET …/updates/{update_id}.
func (a *api) getUpdate(ctx context.Context, c *caller, r *http.Request) (any, error) {
	s, err := a.open(ctx, c, r.PathValue("pipeline_id"))
	if err != nil {
		return nil, err
	}
	defer s.close()
	id := r.PathValue("update_id")
	if !isUUID(id) {
		return nil, updateMissing(id)
	}
	rows, err := s.Query(ctx, selectUpdates+" where u.update_id = $1", id)
	switch {
	case err != nil:
		return nil, err
	case len(rows) == 0:
		return nil, updateMissing(id)
	}
	update, err := s.update(rows[0])
	spec := s.spec()
	update.Config = &spec
	return getUpdateResponse{Update: update}, err
}

// listUpdates is GET …/updates, the newest first.
func (a *api) listUpdates(ctx context.Context, c *caller, r *http.Request) (any, error) {
	s, err := a.open(ctx, c, r.PathValue("pipeline_id"))
	if err != nil {
		return nil, err
	}
	defer s.close()
	limit, err := maxResults(r.URL.Query(), maxUpdates)
	if err != nil {
		return nil, err
	}
	at, err := readPosition(r.URL.Query(), checkUpdateKey)
	if err != nil {
		return nil, err
	}
	updates := &listing{
		selected: selectUpdates, key: []string{"u.requested_at", "u.update_id"}, casts: []string{"timestamptz", "uuid"},
		descending: true,
	}
	if at.Until != "" {
		if !isUUID(at.Until) {
			return nil, updateMissing(at.Until)
		}
		updates.where("(u.requested_at, u.update_id) >= (select b.requested_at, b.update_id from rwproxy.updates b where b.update_id = " +
			updates.parameter(at.Until) + "::pg_catalog.uuid)")
	}
	rows, more, err := updates.page(ctx, s, at, limit)
	if err != nil {
		return nil, err
	}
	answer := listUpdatesResponse{Updates: make([]updateInfo, len(rows))}
	for i, row := range rows {
		if answer.Updates[i], err = s.update(row); err != nil {
			return nil, err
		}
	}
	if len(rows) > 0 {
		answer.pageTokens = at.tokens(more, updateKey(rows[0]), updateKey(rows[len(rows)-1]))
	}
	return answer, nil
}

func updateKey(row pgsession.Row) []string { return []string{row[8].Text, row[0].Text} }

func checkUpdateKey(key []string) bool {
	if len(key) != 2 || !isUUID(key[1]) {
		return false
	}
	_, err := time.Parse(timeLayout, key[0])
	return err == nil
}

func (s *session) update(row pgsession.Row) (updateInfo, error) {
	u := updateInfo{
		PipelineID:   s.id,
		UpdateID:     row[0].Text,
		Cause:        row[1].Text,
		State:        row[2].Text,
		Mode:         "DEFAULT",
		FullRefresh:  row[3].Text == "t",
		ValidateOnly: row[6].Text == "t",
		Error:        row[9].Text,
	}
	if cause, ours := causes[u.Cause]; ours {
		u.Cause = cause
	}
	var err error
	if u.CreationTime, err = strconv.ParseInt(row[7].Text, 10, 64); err != nil {
		return u, err
	}
	for value, list := range map[*pgsession.Value]*[]string{&row[4]: &u.RefreshSelection, &row[5]: &u.FullRefreshSelection} {
		if value.Null {
			continue
		}
		if err := json.Unmarshal([]byte(value.Text), list); err != nil {
			return u, err
		}
	}
	return u, nil
}
