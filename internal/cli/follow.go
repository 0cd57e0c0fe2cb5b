package cli

import (
	"context"
	_ "embed" // follow.sql
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// followInterval is how long a change of state may go unseen: a SYNC
	// refresh tells nobody that it has begun.
	followInterval = time.Second
	// followWindow is how old a refresh may be that is seen for the first time:
	// one inside a transaction shows when that commits.
	followWindow = 15 * time.Minute
)

//go:embed follow.sql
var followQuery string

// follower prints refreshes as their states change.
type follower struct {
	conn  *pgx.Conn
	known map[string]refreshRow // by ID, as followQuery has returned them last
	print func([]refreshRow)
}

// follow prints the newest refreshes, and each whose state changes until ctx
// ends.
func (f *follower) follow(ctx context.Context, limit int) error {
	if err := f.begin(ctx, limit); err != nil {
		return err
	}
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		changed, err := f.changed(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case len(changed) > 0:
			f.print(changed)
		}
	}
}

// begin prints the newest refreshes, and remembers all that are not to be
// printed for being older, as of one moment.
func (f *follower) begin(ctx context.Context, limit int) error {
	tx, err := f.conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	rows, err := query(ctx, f.conn, refreshesQuery, limit)
	if err != nil {
		return err
	}
	newest, err := refreshes(rows)
	if err != nil {
		return err
	}
	if _, err := f.changed(ctx); err != nil {
		return err
	}
	for _, r := range newest {
		f.known[r.ID] = r
	}
	slices.Reverse(newest)
	f.print(newest)
	return tx.Commit(ctx)
}

// changed returns the refreshes whose state is not the known one, the oldest
// first.
func (f *follower) changed(ctx context.Context) ([]refreshRow, error) {
	rows, err := query(ctx, f.conn, followQuery, int(followWindow.Seconds()), f.open())
	if err != nil {
		return nil, err
	}
	found, err := refreshes(rows)
	if err != nil {
		return nil, err
	}
	var changed []refreshRow
	known := make(map[string]refreshRow, len(found))
	for _, r := range found {
		known[r.ID] = r
		if before, ok := f.known[r.ID]; !ok || before.State != r.State {
			changed = append(changed, r)
		}
	}
	f.known = known
	return changed, nil
}

// open are the IDs of the refreshes that had not ended, however old they are.
func (f *follower) open() []string {
	var ids []string
	for id, r := range f.known {
		if r.EndedAt == nil {
			ids = append(ids, id)
		}
	}
	return ids
}
