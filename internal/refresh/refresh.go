package refresh

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// refresh is REFRESH [STREAMING] TABLE.
func (e *Engine) refresh(ctx context.Context, c Client, st *rewrite.Refresh) error {
	run, err := e.newRefresh(ctx, c, st)
	if err != nil {
		return err
	}
	unlock, err := run.lock(ctx, c.Joined())
	if err != nil {
		return run.settle(ctx, err)
	}
	defer unlock(ctx)
	// The refresh or the statement waited for may have changed the definition.
	if run.target, err = e.refreshable(ctx, c, st); err != nil {
		return err
	}
	if err := run.start(ctx); err != nil {
		return err
	}
	switch {
	case run.target.Table.Flow.View == "":
		err = viewGone(st.Text, st.Target)
	case c.Joined():
		err = run.joined(ctx)
	default:
		err = run.owned(ctx)
	}
	return run.settle(ctx, err)
}

// newRefresh is the run that a REFRESH asks for.
func (e *Engine) newRefresh(ctx context.Context, c Client, st *rewrite.Refresh) (*run, error) {
	target, err := e.refreshable(ctx, c, st)
	if err != nil {
		return nil, err
	}
	run := newRun(e, c, flowstate.KindWindow)
	run.target, run.text, run.where = target, st.Text, st.Where
	switch {
	case st.Full:
		run.kind = flowstate.KindFull
	case st.Where != nil:
		run.kind = flowstate.KindOverride
	}
	return run, nil
}

// refreshable is the target of a REFRESH that may go on.
func (e *Engine) refreshable(ctx context.Context, c Client, st *rewrite.Refresh) (*flowstate.Target, error) {
	target, err := e.lookup(ctx, c, st.Text, st.Target)
	if err != nil {
		return nil, pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
			if d.Code == "42501" && strings.HasPrefix(d.Message, "permission denied for table ") {
				d.Hint = "A role that refreshes needs SELECT, INSERT and DELETE on the table, and SELECT on the view of its flow in schema rwproxy_flows."
			}
		})
	}
	return target, refuseRefresh(st, target)
}

// refuseRefresh refuses to refresh what is no streaming table with a flow, or
// may not be refreshed like this.
func refuseRefresh(st *rewrite.Refresh, target *flowstate.Target) error {
	switch {
	case target == nil:
		return undefinedTable(st.Text, st.Target)
	case target.Table == nil && st.Where != nil:
		return pgdiag.New("42601", "the WHERE clause is only supported for streaming tables created with a FLOW REPLACE WHERE clause").
			WithDetail("STREAMING_TABLE_OPERATION_NOT_ALLOWED.UNSUPPORTED_OPERATION").
			WithHint(fmt.Sprintf("%q is not a streaming table.", display(st.Target))).
			At(rewrite.CharPosition(st.Text, st.Where.Offset))
	case target.Table == nil:
		return notStreamingTable(st.Text, st.Target)
	case target.Table.Flow == nil:
		return withoutFlow(st.Text, st.Target)
	case st.Full && !target.Table.ResetAllowed():
		return notResettable(target.Name).At(rewrite.CharPosition(st.Text, st.Target.Offset))
	}
	return nil
}

func notResettable(table string) *pgdiag.Diagnostic {
	return pgdiag.New("42000", fmt.Sprintf("table %q cannot be fully refreshed", table)).
		WithDetail("TABLE_NOT_RESETTABLE: its table property pipelines.reset.allowed is false.").
		WithHint("Use REFRESH STREAMING TABLE ... WHERE to recompute a part of it.")
}

// lock is lockTarget for a run, or lockInTransaction, and begins to tell how far
// the run has come. The statement that takes the lock if it is free also reads
// whether the client wants to be told.
func (r *run) lock(ctx context.Context, inTransaction bool) (unlock func(context.Context), err error) {
	function := "advisory_lock"
	if inTransaction {
		function = "advisory_xact_lock"
	}
	target := r.target.OID
	class, object := flowstate.LockKeys(target)
	rows, err := r.client.Query(ctx, `
		select pg_catalog.pg_try_`+function+`($1::int, $2::int),
		       pg_catalog.current_setting($3, true),
		       pg_catalog.current_setting('client_min_messages')`, class, object, settingProgress)
	if err != nil {
		return nil, err
	}
	locked := rows[0][0].Text == "t"
	notices, err := progressWanted(rows[0][1].Text)
	r.progress = startProgress(ctx, r, notices && noticeLevels[rows[0][2].Text])
	unlock = func(ctx context.Context) {
		r.progress.stop()
		if locked && !inTransaction {
			unlockTarget(ctx, r.client, target)
		}
	}
	if err == nil && !locked {
		r.progress.enter(stepLock)
		_, err = r.client.Exec(ctx, "select pg_catalog.pg_"+function+"($1::int, $2::int)", class, object)
		locked = err == nil
	}
	if err != nil {
		unlock(ctx)
		return nil, err
	}
	return unlock, nil
}

// lockTarget lets one refresh of a target run at a time. Outside a transaction
// the lock is the session's, taken before the refresh's own transaction takes
// its snapshot, so that it sees what the refresh before it has written.
func lockTarget(ctx context.Context, c Client, target uint32) (unlock func(context.Context), err error) {
	if c.Joined() {
		return func(context.Context) {}, lockInTransaction(ctx, c, target)
	}
	class, object := flowstate.LockKeys(target)
	_, err = c.Exec(ctx, "select pg_catalog.pg_advisory_lock($1::int, $2::int)", class, object)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) { unlockTarget(ctx, c, target) }, nil
}

// unlockTarget gives the session's lock back. An interrupt that was meant for
// the refresh may reach this statement instead; a connection that is gone has
// given its locks back.
func unlockTarget(ctx context.Context, s pgsession.Session, target uint32) {
	class, object := flowstate.LockKeys(target)
	for range attempts {
		_, err := s.Exec(ctx, "select pg_catalog.pg_advisory_unlock($1::int, $2::int)", class, object)
		if pgdiag.Code(err) != queryCanceled {
			return
		}
	}
}

// lockInTransaction is lockTarget until the end of the transaction.
func lockInTransaction(ctx context.Context, s pgsession.Session, target uint32) error {
	class, object := flowstate.LockKeys(target)
	_, err := s.Exec(ctx, "select pg_catalog.pg_advisory_xact_lock($1::int, $2::int)", class, object)
	return err
}

// joined refreshes inside the client's transaction, at its isolation level.
func (r *run) joined(ctx context.Context) error {
	return r.inFrame(ctx, func() error { return r.replaceWindow(ctx) })
}

// inFrame locks the sources and runs do in the flow's frame.
func (r *run) inFrame(ctx context.Context, do func() error) error {
	r.progress.enter(stepSources)
	if err := lockSources(ctx, r.client, r.target.Table.Flow.View); err != nil {
		return err
	}
	var err error
	if r.frame, err = enter(ctx, r.client, r.target.Table.Settings, r.began); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	return r.frame.leave(ctx)
}

// lockSources locks the base tables of a view against TRUNCATE and rewriting
// ALTER TABLE, which do not respect snapshots, with the rights of its owner.
func lockSources(ctx context.Context, s pgsession.Session, view string) error {
	return viewError(lockTable(ctx, s, view, "access share"), view)
}

// lockTable locks a table or view in a transaction of the client's. LOCK TABLE
// itself is refused in the implicit transaction of a pipeline.
func lockTable(ctx context.Context, s pgsession.Session, name, mode string) error {
	_, err := s.Exec(ctx, "do "+rewrite.QuoteLiteral("begin lock table "+name+" in "+mode+" mode; end"))
	return withoutContext(err)
}

// viewError adds the way out when the client may not read the flow's view,
// which only its author may at first.
func viewError(err error, view string) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Position = 0; d.Code == "42501" {
			d.Hint = "A role that refreshes needs SELECT, INSERT and DELETE on the table, and its owner's GRANT SELECT ON " + view + "."
		}
	})
}

// readOnly names the statement that a read-only transaction refuses: Postgres
// names what we have sent for it.
func readOnly(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Code == "25006" {
			d.Message = strings.Replace(d.Message, "cannot execute INSERT ", "cannot execute REFRESH STREAMING TABLE ", 1)
		}
	})
}

// attempts is how often a statement that owns its transaction is tried when it
// meets another writer of the same rows.
const attempts = 3

// owned refreshes in a transaction of its own. One that finds the flow not
// prepared has not written yet, and is begun again after another has done that.
func (r *run) owned(ctx context.Context) error {
	r.restartable = true
	err := retried(ctx, r.attempt)
	if !errors.Is(err, errUnprepared) {
		return err
	}
	err = transaction(ctx, r.client, "begin isolation level read committed", func() error {
		return r.inFrame(ctx, func() error { return r.prepare(ctx) })
	})
	if err != nil {
		return err
	}
	return retried(ctx, r.attempt)
}

// retried runs attempt, a transaction of its own, and runs it again when another
// writer of the same rows was first; the last time it is to keep others out.
func retried(ctx context.Context, attempt func(ctx context.Context, exclusive bool) error) error {
	for n := 1; ; n++ {
		err := attempt(ctx, n == attempts)
		if err == nil || n == attempts || ctx.Err() != nil || !retryable(pgdiag.Code(err), n) {
			return err
		}
	}
}

// retryable reports whether a fresh snapshot may succeed: after a serialization
// failure or a deadlock always, after a unique violation once (the other
// writer's row may lie in the window).
func retryable(code string, attempt int) bool {
	switch code {
	case "40001", "40P01":
		return true
	case "23505":
		return attempt == 1
	}
	return false
}

func (r *run) attempt(ctx context.Context, exclusive bool) error {
	return transaction(ctx, r.client, "begin isolation level repeatable read", func() error {
		r.progress.enter(stepSources)
		// LOCK TABLE takes no snapshot; whatever comes next does.
		view := r.target.Table.Flow.View
		if _, err := r.client.Exec(ctx, "lock table "+view+" in access share mode"); err != nil {
			return viewError(err, view)
		}
		if exclusive {
			if _, err := r.client.Exec(ctx, "lock table "+r.target.QualifiedName().SQL()+" in share row exclusive mode"); err != nil {
				return withoutPosition(err)
			}
		}
		var err error
		if r.frame, err = enter(ctx, r.client, r.target.Table.Settings, r.began); err != nil {
			return err
		}
		return r.replaceWindow(ctx)
	})
}
