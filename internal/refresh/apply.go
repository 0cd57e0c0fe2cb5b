package refresh

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// appliesDiff reports that only the rows that differ are to be written.
//
// Deleting and inserting every row costs less CPU: in a large window too, most
// of all where most rows differ, as they do under a narrowed predicate, and in a
// window that is empty. What a diff saves is WAL, dead rows, and work for the
// flows that read the table. It finds the rows by their place, which a concurrent UPDATE moves unless the whole
// transaction has one snapshot; and it compares what the query returns with what
// is stored, which is never the same if something changes it in between.
func (r *run) appliesDiff(ctx context.Context, facts targetFacts, p *plan) (bool, error) {
	setting := r.target.Table.Properties[rewrite.ApplyProperty]
	if setting == rewrite.ApplyDeleteInsert || p.mayMove || !facts.sendable {
		return false, nil
	}
	rows, err := r.client.Query(ctx, "select pg_catalog.current_setting('transaction_isolation')")
	if err != nil || strings.HasPrefix(rows[0][0].Text, "read ") {
		return false, err
	}
	if setting == rewrite.ApplyDiff {
		return true, nil
	}
	return facts.read && p.narrowed == "" && p.reason != reasonFirstRefresh, nil
}

// write makes the target's rows in the window those of the flow's query.
func (r *run) write(ctx context.Context, w rewrite.Window) error {
	stored := r.stored(w)
	return r.frame.asFlow(ctx, func() error {
		if r.plan.diff {
			return withoutPosition(r.writeDiff(ctx, w, stored))
		}
		if err := r.delete(ctx, stored); err != nil {
			return withoutPosition(err)
		}
		return withoutPosition(r.insert(ctx, w))
	})
}

// stored is the rows that those of a window replace.
func (r *run) stored(w rewrite.Window) rewrite.Window {
	if r.kind == flowstate.KindFull {
		// Not TRUNCATE: a reader must never see the table empty.
		w.Predicate = ""
	}
	return w
}

func (r *run) delete(ctx context.Context, w rewrite.Window) (err error) {
	if err = r.frame.limit(ctx); err != nil {
		return err
	}
	r.progress.enter(stepDelete)
	r.deleted, err = r.client.Exec(ctx, w.Delete())
	if err != nil || !r.plan.mayKeep {
		return err
	}
	rows, err := r.client.Query(ctx, w.Remaining())
	if err != nil || rows[0][0].Text == "f" {
		return err
	}
	return rowsKept(r.target.Name)
}

func (r *run) insert(ctx context.Context, w rewrite.Window) (err error) {
	if err = r.frame.limit(ctx); err != nil {
		return err
	}
	r.progress.enter(stepInsert)
	if !r.plan.mayMove {
		r.written, err = r.client.Exec(ctx, w.Insert())
		return err
	}
	var outside int64
	if r.written, outside, err = insertChecked(ctx, r.client, w); err != nil || outside == 0 {
		return err
	}
	return r.storedOutside(outside)
}

// writeDiff writes the rows that differ.
func (r *run) writeDiff(ctx context.Context, w, stored rewrite.Window) error {
	if err := r.frame.limit(ctx); err != nil {
		return err
	}
	r.progress.enter(stepDiff)
	rows, err := r.client.Query(ctx, w.Diff(stored))
	if err != nil {
		return err
	}
	var counts [4]int64
	for i := range counts {
		if counts[i], err = strconv.ParseInt(rows[0][i].Text, 10, 64); err != nil {
			return err
		}
	}
	stale, outside := counts[0], counts[3]
	r.deleted, r.written = counts[1], counts[2]
	switch {
	case r.deleted != stale:
		return rowsKept(r.target.Name)
	case outside > 0:
		return r.storedOutside(outside)
	}
	return nil
}

func (r *run) storedOutside(rows int64) *pgdiag.Diagnostic {
	return pgdiag.New("44000", fmt.Sprintf("%d rows of the flow's query would be stored outside its window", rows)).
		WithDetail("A trigger of " + r.target.Name + ", or the length of a column, changes the values that the predicate selects by. The next refresh would not find these rows and would write them again.").
		WithHint("Let the flow's query return the values as they are to be stored.")
}
