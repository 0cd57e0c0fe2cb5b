package cli

import (
	"context"
	_ "embed" // wait.sql
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// A refresh is looked at at these intervals: soon at first, as most take no
// time.
const (
	firstLook = 50 * time.Millisecond
	laterLook = time.Second
)

//go:embed wait.sql
var waitQuery string

// wait shows how a refresh goes on until it has ended. Its failure is the
// error.
func (c *refreshCommand) wait(ctx context.Context, p *program, conn *pgx.Conn, accepted acceptance) error {
	shown := newIndicator(p.stderr, accepted.table)
	ended, err := watch(ctx, conn, accepted.UpdateID, shown.show)
	shown.done()
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("interrupted; the refresh goes on, and select rwproxy.cancel_refresh('%s') stops it", accepted.UpdateID)
	case err != nil:
		return fmt.Errorf("refresh %s is not followed any more: %w", accepted.UpdateID, plain(err))
	}
	if c.JSON {
		err = printJSON(p.stdout, ended.object)
	} else if ended.State == "COMPLETED" {
		_, err = fmt.Fprintln(p.stdout, printable(ended.summary()))
	}
	return errors.Join(ended.failure(), err)
}

// watch returns a refresh once it has ended, and until then calls show with
// what it looks like.
func watch(ctx context.Context, conn *pgx.Conn, id string, show func(refreshRow)) (refreshRow, error) {
	for pause := firstLook; ; pause = min(2*pause, laterLook) {
		rows, err := query(ctx, conn, waitQuery, id)
		if err != nil {
			return refreshRow{}, err
		}
		found, err := refreshes(rows)
		if err != nil {
			return refreshRow{}, err
		}
		if len(found) == 0 {
			return refreshRow{}, pgdiag.New("42501", "rwproxy.refreshes does not show it").
				WithHint("It shows refreshes of tables that the role may SELECT.")
		}
		if found[0].EndedAt != nil {
			return found[0], nil
		}
		show(found[0])
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return refreshRow{}, ctx.Err()
		}
	}
}

// summary says what a completed refresh has done, as REFRESH says it.
func (r refreshRow) summary() string {
	technique := r.Technique
	if r.Reason != "" {
		technique += " (" + r.Reason + ")"
	}
	return fmt.Sprintf("refreshed %s: %s, %d rows deleted, %d rows inserted in %s",
		r.name(), technique, r.RowsDeleted, r.RowsInserted, r.took())
}

// failure is the error of a refresh that did not complete, nil for one that
// did.
func (r refreshRow) failure() error {
	if r.State == "COMPLETED" {
		return nil
	}
	message := r.Error
	if message == "" {
		message = "no reason is known"
	}
	d := pgdiag.New("", message).WithDetail(r.ErrorDetail).WithHint(r.ErrorHint)
	return fmt.Errorf("the refresh of %s is %s: %w", r.name(), r.State, plain(d))
}
