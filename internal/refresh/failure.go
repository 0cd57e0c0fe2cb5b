package refresh

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// recordTimeout bounds the recording of a failure: the client waits for it.
const recordTimeout = 5 * time.Second

// recordFailure writes down that the refresh failed, and why. Its transaction
// is gone by now. The client's connection records it if it still can; else, in
// an aborted transaction of the client's or after the connection was lost, the
// service connection does. If that fails too the history still shows the
// refresh as failed, for want of a session that runs it.
func (r *run) recordFailure(ctx context.Context, failure error) {
	plan := r.plan.record()
	if plan.Window == "" && r.where != nil {
		plan.Window = strings.TrimSpace(r.where.Text) // as it was typed: it could not be resolved
	}
	f := flowstate.Failure{
		RefreshID: r.id, Schema: r.target.Schema, Name: r.target.Name, OID: r.target.OID, FlowName: r.target.Table.Flow.Name,
		Kind: r.kind, Cause: r.cause(), RequestedBy: r.client.User(), StartedAt: r.began, Plan: plan, Error: diagnostic(failure),
	}
	f.TimedOut = f.Error.Code == queryCanceled && r.timedOut(ctx, f.Error)
	if r.queued != nil {
		f.RequestedBy = r.queued.job.RequestedBy
		f.Queued, f.Attempt = true, r.queued.job.Attempt
		f.RetryIn = r.queued.retryIn(f.Error.Code)
	}
	if f.RetryIn == 0 {
		r.count(f.State())
	}
	if r.queued != nil {
		r.logFailure(f)
	}

	var err error
	if !r.client.Joined() && ctx.Err() == nil {
		if err = r.fail(ctx, f); err == nil {
			return
		}
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	serviceErr := r.engine.service.Do(detached, r.client.Database(), func(s pgsession.Session) error {
		return flowstate.Fail(detached, s, f)
	})
	const running = "55006"
	if r.queued != nil && pgdiag.Code(serviceErr) == running {
		return // it is queued again when Postgres has noticed that its session is lost
	}
	if serviceErr != nil {
		r.engine.logger.Error("failed refresh not recorded", append(r.fields(), zap.Error(errors.Join(err, serviceErr)))...)
	}
}

// fail records a failure in the client's session. Whoever interrupts a refresh
// twice may meet this instead.
func (r *run) fail(ctx context.Context, f flowstate.Failure) error {
	var err error
	for range attempts {
		if err = flowstate.Fail(ctx, r.client, f); pgdiag.Code(err) != queryCanceled {
			return err
		}
	}
	return err
}

// logFailure says in the log what became of a refresh that no client waits for:
// without the message, which may hold data.
func (r *run) logFailure(f flowstate.Failure) {
	level, message := zap.WarnLevel, "refresh failed"
	if f.RetryIn == 0 && f.State() == flowstate.StateCanceled {
		level, message = zap.InfoLevel, "refresh canceled"
	}
	r.engine.logger.Log(level, message, zap.String(keyDatabase, r.client.Database()),
		zap.String(keyTarget, r.target.Schema+"."+r.target.Name), zap.String(keyRefresh, r.id),
		zap.Int(keyAttempt, r.queued.job.Attempt+1), zap.String(keyCode, f.Error.Code), zap.Duration(keyRetryIn, f.RetryIn))
}

// timedOut reports that it was the session's statement_timeout that interrupted
// the refresh: Postgres has one SQLSTATE for all interrupts, and words that are
// in the language of the server.
func (r *run) timedOut(ctx context.Context, d *pgdiag.Diagnostic) bool {
	switch {
	case strings.Contains(d.Message, "statement timeout"):
		return true
	case r.frame != nil:
		return !r.frame.ends.IsZero() && time.Now().After(r.frame.ends)
	}
	rows, err := r.client.Query(ctx, `
		select s.setting <> '0' and $1::pg_catalog.int8 >= s.setting::pg_catalog.int8
		  from pg_catalog.pg_settings s where s.name = 'statement_timeout'`, time.Since(r.began).Milliseconds())
	return err == nil && rows[0][0].Text == "t"
}

func diagnostic(err error) *pgdiag.Diagnostic {
	var d *pgdiag.Diagnostic
	if errors.As(err, &d) {
		return d
	}
	return pgdiag.New("XX000", err.Error())
}

// Log keys.
const (
	keyDatabase  = "database"
	keyTarget    = "target"
	keyRefresh   = "refresh_id"
	keyTechnique = "technique"
	keyReason    = "reason"
	keyDeleted   = "rows_deleted"
	keyInserted  = "rows_inserted"
	keyDuration  = "duration"
	keyCause     = "cause"
	keyAttempt   = "attempt"
	keyCode      = "sqlstate"
	keyRetryIn   = "retry_in"
)

func (r *run) fields() []zap.Field {
	return []zap.Field{
		zap.String(keyDatabase, r.client.Database()),
		zap.String(keyTarget, r.target.Schema+"."+r.target.Name),
		zap.String(keyRefresh, r.id),
		zap.String(keyTechnique, r.plan.technique),
		zap.String(keyReason, r.plan.reason),
		zap.Int64(keyDeleted, r.deleted),
		zap.Int64(keyInserted, r.written),
		zap.Duration(keyDuration, time.Since(r.began)),
	}
}
