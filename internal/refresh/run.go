package refresh

import (
	"context"
	"fmt"
	"time"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// run is one refresh of one target, from its first record to its last.
type run struct {
	engine  *Engine
	client  Client
	kind    flowstate.Kind
	began   time.Time
	target  *flowstate.Target
	id      string        // "" until it is recorded
	where   *rewrite.Span // of an override
	text    string        // the statement, for positions
	done    bool          // its transaction has done all its work
	plan    plan
	deleted int64
	written int64
}

func newRun(e *Engine, c Client, kind flowstate.Kind) *run {
	return &run{engine: e, client: c, kind: kind, began: time.Now()}
}

// inPlace refreshes inside the transaction that is open, for a statement that
// has just written the definition and pinned its settings.
func (r *run) inPlace(ctx context.Context, name rewrite.Name) error {
	target, err := flowstate.Lookup(ctx, r.client, name)
	if err != nil {
		return err
	}
	r.target = target
	if err := lockInTransaction(ctx, r.client, target.OID); err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := lockSources(ctx, r.client, target.Table.Flow.View); err != nil {
		return err
	}
	return r.replaceWindow(ctx)
}

func (r *run) start(ctx context.Context) error {
	id, err := flowstate.Start(ctx, r.client, flowstate.Refresh{Target: r.target.OID, Kind: r.kind, Cause: flowstate.CauseStatement})
	if err != nil {
		return err
	}
	r.id = id
	return nil
}

// replaceWindow plans, writes and records the refresh. The flow's settings are
// pinned and its sources locked.
func (r *run) replaceWindow(ctx context.Context) error {
	w, err := r.window(ctx)
	if err != nil {
		return err
	}
	if r.plan, err = r.makePlan(ctx, w); err != nil {
		return err
	}
	if err := flowstate.Plan(ctx, r.client, r.id, r.plan.record()); err != nil {
		return err
	}
	if err := r.write(ctx, w); err != nil {
		return err
	}
	if err := flowstate.Finish(ctx, r.client, r.id, flowstate.Outcome{RowsDeleted: r.deleted, RowsInserted: r.written}); err != nil {
		return err
	}
	r.done = true
	return nil
}

// window is the rows to replace: those of the flow's predicate, or of the
// override's, with the clock resolved.
func (r *run) window(ctx context.Context) (rewrite.Window, error) {
	table, flow := r.target.Table, r.target.Table.Flow
	name := r.target.QualifiedName()
	targetColumns, err := columnsOf(ctx, r.client, name.SQL())
	if err != nil {
		return rewrite.Window{}, err
	}
	viewColumns, err := columnsOf(ctx, r.client, flow.View)
	if err != nil {
		return rewrite.Window{}, err
	}
	w := rewrite.Window{Target: name.SQL(), View: flow.View, Columns: windowColumns(targetColumns, viewColumns)}
	r.plan.checked = storingMayMove(targetColumns, viewColumns)
	condition := flow.Condition
	lexical := lexicalOf(table.Settings)
	if r.where != nil {
		override, err := rewrite.TranslatePredicate(*r.where, rewrite.PredicateContext{Target: name, Lexical: lexical, Catalog: catalog{ctx, r.client}})
		if err != nil {
			return rewrite.Window{}, rewrite.Locate(err, r.text)
		}
		if err := checkPredicate(ctx, r.client, w, r.text, override); err != nil {
			return rewrite.Window{}, err
		}
		condition = override.SQL
	}
	w.Predicate, err = resolvePredicate(ctx, r.client, condition, lexical)
	return w, err
}

// write deletes the window and inserts the query's rows of it.
func (r *run) write(ctx context.Context, w rewrite.Window) error {
	deleted := w
	if r.kind == flowstate.KindFull {
		// Not TRUNCATE: a reader must never see the table empty.
		deleted.Predicate = ""
	}
	var err error
	if r.deleted, err = r.client.Exec(ctx, deleted.Delete()); err != nil {
		return withoutPosition(err)
	}
	if !r.plan.checked {
		r.written, err = r.client.Exec(ctx, w.Insert())
		return withoutPosition(err)
	}
	var outside int64
	if r.written, outside, err = insertChecked(ctx, r.client, w); err != nil {
		return withoutPosition(err)
	}
	if outside > 0 {
		return pgdiag.New("44000", fmt.Sprintf("%d rows of the flow's query would be stored outside its window", outside)).
			WithDetail("A trigger of " + r.target.Name + ", or the length of a column, changes the values that the predicate selects by. The next refresh would not find these rows and would write them again.").
			WithHint("Let the flow's query return the values as they are to be stored.")
	}
	return nil
}

// settle ends the refresh: it says what was done, or records why it failed.
// err is what its transaction ended with, and is returned.
func (r *run) settle(ctx context.Context, err error) error {
	if r.target == nil {
		return err // nothing was begun
	}
	if err != nil {
		r.recordFailure(ctx, err)
		return err
	}
	if !r.done {
		return nil
	}
	r.client.Notice(&pgdiag.Diagnostic{Code: "00000", Message: fmt.Sprintf(
		"refreshed %s.%s: %s (%s), %d rows deleted, %d rows inserted in %d ms",
		r.target.Schema, r.target.Name, r.plan.technique, r.plan.reason, r.deleted, r.written,
		time.Since(r.began).Milliseconds())})
	r.engine.metrics.Refreshed(r.plan.technique, r.plan.reason, flowstate.StateCompleted)
	r.engine.logger.Debug("refreshed", r.fields()...)
	return nil
}
