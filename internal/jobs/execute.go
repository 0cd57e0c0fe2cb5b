package jobs

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// execution is one job that this instance runs.
type execution struct {
	client
	conn *pgx.Conn
	stop context.CancelFunc // closes conn
	done chan struct{}

	mu    sync.Mutex
	isCut bool
}

// execute runs a job on a session of the role that asked for it.
func (d *database) execute(job flowstate.Job) {
	log := d.jobs.Logger.With(zap.String(keyDatabase, d.name), zap.String(keyRefresh, job.ID),
		zap.String(keyTarget, job.Schema+"."+job.Name), zap.Int(keyAttempt, job.Attempt+1))
	conn, err := d.connect(job)
	if err != nil {
		d.notBegun(log, job, err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	e := &execution{
		client: client{Session: pgsession.FromPgx(conn), role: job.RequestedBy, database: d.name, logger: log},
		conn:   conn, stop: stop, done: make(chan struct{}),
	}
	d.jobs.began(e)
	defer goodbye(conn)
	defer d.jobs.ended(e)
	e.run(ctx, d.jobs.Engine, job)
}

// run runs the job. The engine says in the log what becomes of it.
func (e *execution) run(ctx context.Context, engine *refresh.Engine, job flowstate.Job) {
	var err error
	defer recoverTo(e.logger, &err)
	_ = engine.RunQueued(ctx, e, job, e.retry)
}

// errPanic is what a panic is taken for.
var errPanic = errors.New("internal error")

// recoverTo ends a panic, as an error. A job's session is closed then, so that
// the job is begun again, and given up in the end.
func recoverTo(log *zap.Logger, err *error) {
	if cause := recover(); cause != nil {
		log.Error("panic", zap.Any("panic", cause), zap.ByteString("stack", debug.Stack()))
		*err = errPanic
	}
}

func goodbye(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it is gone either way
}

// connect opens the session of a job. No job is begun when the instance stops.
func (d *database) connect(job flowstate.Job) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(d.jobs.serving, connectTimeout)
	defer cancel()
	conn, err := d.jobs.Service.ConnectRunner(ctx, d.name, job.RequestedBy)
	return conn, pgsession.FromPgxError(err)
}

// notBegun records that the session of a job could not be had. The job stays
// in the queue if even that cannot be recorded: then Postgres is not there.
func (d *database) notBegun(log *zap.Logger, job flowstate.Job, failure error) {
	if d.jobs.serving.Err() != nil {
		return // another instance gets it
	}
	var diagnostic *pgdiag.Diagnostic
	if !errors.As(failure, &diagnostic) {
		diagnostic = pgdiag.New("08001", failure.Error())
	}
	f := flowstate.Failure{
		RefreshID: job.ID, OID: job.Target, Schema: job.Schema, Name: job.Name, Kind: job.Kind, Cause: job.Cause,
		RequestedBy: job.RequestedBy, StartedAt: time.Now(), Error: diagnostic, Queued: true, Attempt: job.Attempt,
	}
	f.RetryIn, _ = retryConnect(diagnostic.Code, job.Attempt)
	ctx, cancel := context.WithTimeout(d.jobs.serving, stepTimeout)
	defer cancel()
	err := d.jobs.Service.Do(ctx, d.name, func(s pgsession.Session) error { return flowstate.Fail(ctx, s, f) })
	if err != nil {
		log.Debug("refresh not begun, which is not recorded", because(err))
		return
	}
	log.Warn("refresh not begun", zap.String(keyRole, job.RequestedBy), because(failure))
}

// retry returns when the job is to be begun again after it failed. One that
// was cut is for another instance.
func (e *execution) retry(code string, attempt int) (time.Duration, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.isCut {
		return time.Millisecond, true
	}
	return retry(code, attempt)
}

// cut cancels the statement that runs, and the next ones, until the job has
// gone back into the queue; at last it cuts the connection.
func (e *execution) cut() {
	e.mu.Lock()
	e.isCut = true
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cutTimeout)
	defer cancel()
	for pause := 100 * time.Millisecond; ; pause = 2 * pause {
		_ = e.conn.PgConn().CancelRequest(ctx) // a server that is gone has cancelled it
		select {
		case <-e.done:
			return
		case <-time.After(pause):
		case <-ctx.Done():
			e.stop()
			return
		}
	}
}

// client is the session of a job as a refresh sees it. Nobody reads its
// notices.
type client struct {
	pgsession.Session
	role, database string
	logger         *zap.Logger
}

// Joined is never true: nobody else's transaction is open.
func (c *client) Joined() bool { return false }

// Notice is safe for concurrent use.
func (c *client) Notice(d *pgdiag.Diagnostic) {
	c.logger.Debug("notice", zap.String("message", d.Message))
}

// User is who asked for the refresh.
func (c *client) User() string { return c.role }

// Database is that of the session.
func (c *client) Database() string { return c.database }
