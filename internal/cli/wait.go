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

// reconnectFor is how long a proxy may be away, while it is upgraded or another
// one takes over.
const reconnectFor = 2 * time.Minute

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
// what it looks like. A connection that is lost is made again: the refresh does
// not depend on it.
func watch(ctx context.Context, conn *pgx.Conn, id string, show func(refreshRow)) (refreshRow, error) {
	var lost time.Time // since when there is no connection
	for pause := firstLook; ; pause = min(2*pause, laterLook) {
		found, err := look(ctx, conn, id)
		switch {
		case err == nil:
			lost = time.Time{}
			if found.EndedAt != nil {
				return found, nil
			}
			show(found)
		case !conn.IsClosed() || ctx.Err() != nil:
			return refreshRow{}, err
		case lost.IsZero():
			lost = time.Now()
		case time.Since(lost) > reconnectFor:
			return refreshRow{}, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return refreshRow{}, ctx.Err()
		}
		if conn.IsClosed() {
			if again, err := pgx.ConnectConfig(ctx, conn.Config()); err == nil {
				conn = again
				defer conn.Close(context.WithoutCancel(ctx))
			}
		}
	}
}

// look returns a refresh as it is now.
func look(ctx context.Context, conn *pgx.Conn, id string) (refreshRow, error) {
	rows, err := query(ctx, conn, waitQuery, id)
	if err != nil {
		return refreshRow{}, err
	}
	found, err := refreshes(rows)
	if err == nil && len(found) == 0 {
		err = pgdiag.New("42501", "rwproxy.refreshes does not show it").
			WithHint("It shows refreshes of tables that the role may SELECT.")
	}
	if err != nil {
		return refreshRow{}, err
	}
	return found[0], nil
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
