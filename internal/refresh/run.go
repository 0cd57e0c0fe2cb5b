package refresh

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// run is one refresh of one target, from its first record to its last.
type run struct {
	engine *Engine
	client Client
	kind   flowstate.Kind
	began  time.Time
	target *flowstate.Target
	frame  *frame
	id     string            // "" until it is recorded
	where  *rewrite.Span     // of an override
	readBy map[string]string // the settings that it is read by; nil for the session's
	text   string            // the statement, for positions
	done   bool              // its transaction has done all its work

	progress *progress // nil if nobody is told
	plan     plan
	deleted  int64
	written  int64

	queued *queuedRun // nil for one that a client waits for

	defining    bool // a statement that defines the flow loads its window
	prepared    bool // what can be done for an incremental refresh has been
	restartable bool // its transaction may be begun again
	tracking    []flowstate.Tracking

	selecting []string           // the columns that the flow's predicate depends on, once prepared
	found     *flowstate.Changes // what made the run prepare the flow
}

func newRun(e *Engine, c Client, kind flowstate.Kind) *run {
	return &run{engine: e, client: c, kind: kind, began: time.Now()}
}

// inPlace refreshes inside the transaction that is open, for a statement that
// has just written the definition; its frame is entered.
func (r *run) inPlace(ctx context.Context, name rewrite.Name) error {
	target, err := flowstate.Lookup(ctx, r.client, name)
	if err != nil {
		return err
	}
	r.target, r.defining = target, true
	if _, err := r.lock(ctx, true); err != nil {
		return err
	}
	if err := r.start(ctx); err != nil {
		return err
	}
	if err := lockSources(ctx, r.client, target.Table.Flow.View); err != nil {
		return err
	}
	if err := r.replaceWindow(ctx); err != nil {
		return err
	}
	return r.noticeUntracked(ctx)
}

func (r *run) start(ctx context.Context) error {
	id, err := flowstate.Start(ctx, r.client, flowstate.Refresh{Target: r.target.OID, Kind: r.kind, Cause: r.cause()})
	if err != nil {
		return err
	}
	if r.id = id; !r.client.Joined() && !r.defining {
		r.progress.visible(id)
	}
	return nil
}

// cause is what made the refresh run.
func (r *run) cause() flowstate.Cause {
	if r.queued != nil {
		return r.queued.job.Cause
	}
	return flowstate.CauseStatement
}

// replaceWindow plans, writes and records the refresh. Its frame is entered
// and its sources are locked.
func (r *run) replaceWindow(ctx context.Context) error {
	r.progress.enter(stepPlan)
	w, err := r.window(ctx)
	if err != nil {
		return err
	}
	if r.plan, err = r.makePlan(ctx, w); err != nil {
		return err
	}
	if err := r.followsPolicy(); err != nil {
		return err
	}
	if err := flowstate.Plan(ctx, r.client, r.id, r.plan.record()); err != nil {
		return err
	}
	if r.plan.technique != flowstate.TechniqueNoOp {
		w.Predicate = r.plan.applied()
		if err := r.write(ctx, w); err != nil {
			return err
		}
	}
	r.progress.finish(r.written)
	if err := flowstate.Finish(ctx, r.client, r.id, flowstate.Outcome{RowsDeleted: r.deleted, RowsInserted: r.written}); err != nil {
		return err
	}
	r.done = true
	return nil
}

// window is the rows to replace: those of the flow's predicate, or of the
// override's, with the clock resolved.
func (r *run) window(ctx context.Context) (rewrite.Window, error) {
	flow, name := r.target.Table.Flow, r.target.QualifiedName()
	targetColumns, err := columnsOf(ctx, r.client, name.SQL())
	if err != nil {
		return rewrite.Window{}, err
	}
	viewColumns, err := columnsOf(ctx, r.client, flow.View)
	if err != nil {
		return rewrite.Window{}, err
	}
	if lost := lostColumn(targetColumns, viewColumns); lost != "" {
		return rewrite.Window{}, pgdiag.New("42703", fmt.Sprintf("column %q of relation %q does not exist", lost, r.target.Name)).
			WithDetail("The flow's query returns it, and the table has lost it since.").
			WithHint("Define the flow again with CREATE OR REFRESH STREAMING TABLE, or give the table the column back.")
	}
	condition, lexical := flow.Condition, lexicalOf(r.target.Table.Settings)
	w := rewrite.Window{Target: name.SQL(), View: flow.View}
	if w.Columns, err = windowColumns(targetColumns, viewColumns, lexical.Dialect); err != nil {
		return rewrite.Window{}, err
	}
	r.plan.mayMove = storingMayMove(targetColumns, viewColumns)
	if r.where != nil {
		// What the user has just typed is read as the user's session reads it, in
		// the dialect of the flow.
		readBy := r.readBy
		if readBy == nil {
			readBy = r.frame.own
		}
		override := predicate{typed: *r.where, statement: r.text, lexical: lexicalOf(readBy), columns: targetColumns}
		override.lexical.Dialect = lexical.Dialect
		if err := override.read(ctx, r.frame, w, name, nil); err != nil {
			return rewrite.Window{}, err
		}
		condition = override.translation.SQL
	}
	if w.Predicate, err = resolve(ctx, r.frame, condition, lexical); err != nil || r.where == nil {
		return w, err
	}
	r.plan.differs, err = mayDiffer(ctx, r.client, w.Predicate, lexical)
	return w, err
}

// settle ends the refresh: it says what was done, or records why it failed.
// err is what its transaction ended with, and is returned.
func (r *run) settle(ctx context.Context, err error) error {
	r.progress.stop()
	if r.target == nil {
		return err // nothing was begun
	}
	if err != nil {
		if r.defining {
			r.engine.collectGarbage(r.client.Database()) // what was prepared for a flow that is not there
		}
		r.recordFailure(ctx, err)
		return err
	}
	if !r.done {
		return nil
	}
	r.count(flowstate.StateCompleted)
	r.engine.collectGarbage(r.client.Database())
	r.log()
	err = notify(ctx, r.client, &pgdiag.Diagnostic{Code: "00000", Message: fmt.Sprintf(
		"refreshed %s.%s: %s, %d rows deleted, %d rows inserted in %d ms",
		r.target.Schema, r.target.Name, r.plan.decision, r.deleted, r.written, time.Since(r.began).Milliseconds())})
	if err != nil {
		// The refresh has been done all the same.
		r.engine.logger.Warn("client not notified", append(r.fields(), zap.Error(err))...)
	}
	return nil
}

// log says what was done. What no client waits for has no other trace on this
// side.
func (r *run) log() {
	level := zap.DebugLevel
	if r.queued != nil {
		level = zap.InfoLevel
	}
	r.engine.logger.Log(level, "refresh completed", r.fields()...)
}

// count counts the refresh, which has ended.
func (r *run) count(state string) {
	ended := flowstate.Ended{
		Technique: r.plan.technique, Reason: r.plan.reason, State: state, Cause: r.cause(), Duration: time.Since(r.began),
	}
	if state == flowstate.StateCompleted {
		ended.RowsDeleted, ended.RowsInserted = r.deleted, r.written
	}
	r.engine.metrics.Refreshed(ended)
}
