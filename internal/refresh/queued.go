package refresh

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Retry says whether and when a refresh that failed with a SQLSTATE is to be
// tried again, which has been tried attempt times before.
type Retry func(code string, attempt int) (after time.Duration, again bool)

// queuedRun is what a run has from the queue.
type queuedRun struct {
	job   flowstate.Job
	retry Retry
}

// retryIn is when the refresh is tried again, 0 for never.
func (q *queuedRun) retryIn(code string) time.Duration {
	after, again := q.retry(code, q.job.Attempt)
	if !again {
		return 0
	}
	return max(after, time.Millisecond)
}

// RunQueued runs a refresh of the queue, for a client whose role is the one that
// asked for it. It does nothing if the table is being refreshed, or the refresh
// is not in the queue any more. What becomes of it is recorded; the error is
// returned as well.
func (e *Engine) RunQueued(ctx context.Context, c Client, job flowstate.Job, retry Retry) error {
	run := newRun(e, c, job.Kind)
	run.queued, run.id = &queuedRun{job, retry}, job.ID
	taken, err := tryLockTarget(ctx, c, job.Target)
	if err != nil || !taken {
		return run.settleQueued(ctx, err)
	}
	defer unlockTarget(ctx, c, job.Target)
	return run.settleQueued(ctx, run.runQueued(ctx))
}

// tryLockTarget takes the session's lock of a target if it is free.
func tryLockTarget(ctx context.Context, s pgsession.Session, target uint32) (bool, error) {
	class, object := flowstate.LockKeys(target)
	rows, err := s.Query(ctx, "select pg_catalog.pg_try_advisory_lock($1::int, $2::int)", class, object)
	if err != nil {
		return false, err
	}
	return rows[0][0].Text == "t", nil
}

// runQueued does what REFRESH does, with the definition that the flow has now.
func (r *run) runQueued(ctx context.Context) error {
	job := r.queued.job
	st := &rewrite.Refresh{
		Target: rewrite.Name{Schema: job.Schema, Table: job.Name}, Full: job.Kind == flowstate.KindFull,
	}
	target, err := flowstate.Lookup(ctx, r.client, st.Target)
	if err != nil {
		return err
	}
	if target == nil || target.OID != job.Target {
		return nil // renamed or dropped since the queue was read: the next reader sees that
	}
	if err := refuseRefresh(st, target); err != nil {
		return err
	}
	request, err := flowstate.StartQueued(ctx, r.client, target.OID, job.ID)
	if err != nil || request == nil {
		return err
	}
	r.target = target
	r.engine.logger.Info("refresh begun", zap.String(keyDatabase, r.client.Database()),
		zap.String(keyTarget, target.Schema+"."+target.Name), zap.String(keyRefresh, r.id),
		zap.String(keyCause, string(job.Cause)), zap.Int(keyAttempt, job.Attempt+1))
	r.progress = startProgress(ctx, r, false)
	r.progress.visible(job.ID)
	if job.Kind == flowstate.KindOverride {
		if st, err = refreshWhere(st.Target, request.Where, lexicalOf(request.Settings)); err != nil {
			return err
		}
		r.where, r.readBy = st.Where, request.Settings
	}
	r.text = st.Text
	if target.Table.Flow.View == "" {
		return viewGone(st.Text, st.Target)
	}
	return r.owned(ctx)
}

// settleQueued is settle for a run of the queue, which may have failed before it
// began.
func (r *run) settleQueued(ctx context.Context, err error) error {
	var d *pgdiag.Diagnostic
	if err != nil && !errors.As(err, &d) {
		err = pgdiag.New("08006", "the connection to Postgres was lost").WithDetail(err.Error() + ".")
	}
	if r.target == nil && err != nil {
		job := r.queued.job
		r.target = &flowstate.Target{
			OID: job.Target, Schema: job.Schema, Name: job.Name,
			Table: &flowstate.StreamingTable{Flow: &flowstate.Flow{}},
		}
	}
	return r.settle(ctx, withoutPosition(err))
}
