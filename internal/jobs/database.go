package jobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// installedPayload is what the channel of the queue says when the schema has
// been brought up to date.
const installedPayload = "installed"

// terminatedPause is how long a database is left alone whose administrator has
// ended our session, so that it can be dropped, renamed or copied.
const terminatedPause = 10 * time.Second

var (
	errNothingInstalled = errors.New("schema rwproxy is gone")
	errTurnOver         = errors.New("another database is waiting for a listening session")
)

// database is the serving of one database.
type database struct {
	jobs *Jobs
	name string
	end  context.CancelFunc

	poked   chan struct{} // asks to read the queue
	readied chan struct{} // says that ready is not empty

	// Of the goroutine that listens.
	down outage
	// unscheduled is that what is due cannot be enqueued.
	unscheduled outage
	rescued     time.Time // when lost jobs were last looked for
	started     string    // when the server was, as it says

	mu     sync.Mutex
	ready  []flowstate.Job
	active map[uint32]bool // tables that a job of this instance is about
	tried  map[attempt]try
}

func newDatabase(j *Jobs, name string) *database {
	return &database{
		jobs: j, name: name, poked: make(chan struct{}, 1), readied: make(chan struct{}, 1),
		active: map[uint32]bool{}, tried: map[attempt]try{},
	}
}

// run serves the database until ctx ends or the database is not to be served.
func (d *database) run(ctx context.Context) {
	dispatching, stop := context.WithCancel(ctx)
	var dispatcher sync.WaitGroup
	dispatcher.Go(func() { d.dispatch(dispatching) })
	defer dispatcher.Wait()
	defer stop()
	for {
		err := d.serve(ctx)
		d.setReady(nil) // what it says is of the past
		code := pgdiag.Code(err)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errTurnOver):
			continue
		case errors.Is(err, errNothingInstalled), isGone(code):
			d.jobs.Logger.Info("database no longer served", zap.String(keyDatabase, d.name), zap.String("reason", err.Error()))
			return
		case isClosed(code):
			d.jobs.leave(d.name, err, true)
			return
		}
		if d.down.begins(err) {
			d.jobs.Logger.Warn("connection to database lost", zap.String(keyDatabase, d.name), because(err))
		}
		if code == "57P01" {
			d.keepAway(ctx)
		}
		if !d.down.pause(ctx) {
			return
		}
	}
}

// isGone reports that there is no such database any more.
func isGone(code string) bool { return code == "3D000" }

// isClosed reports that a database lets rwproxy not in, or holds a schema that
// is not this rwproxy's to serve. It is tried again with the next look for
// databases.
func isClosed(code string) bool {
	switch code {
	case "42501", // no CONNECT, or somebody else's schema
		"55000",          // accepts no connections, or of a newer rwproxy
		"28000", "28P01", // the service role is not let in
		"25006": // a standby
		return true
	}
	return false
}

// serve listens until its session is lost, or somebody else's turn begins. It
// panics for nobody: what a database holds is its users', and an instance serves
// others, too.
func (d *database) serve(ctx context.Context) (err error) {
	defer recoverTo(d.jobs.Logger.With(zap.String(keyDatabase, d.name)), &err)
	if err := d.jobs.listeners.take(ctx, d.jobs.pokeAll); err != nil {
		return err
	}
	defer d.jobs.listeners.giveBack()
	l, err := d.jobs.listen(ctx, d.name, flowstate.QueueChannel)
	if err != nil {
		return err
	}
	defer l.close()
	if err := l.step(ctx, func(ctx context.Context) error { return d.begin(ctx, l) }); err != nil {
		return err
	}
	d.rescued = time.Time{}
	for over := time.Now().Add(d.jobs.listeners.length); ; {
		var pause time.Duration
		err := l.step(ctx, func(ctx context.Context) (err error) {
			pause, err = d.readQueue(ctx, l)
			return err
		})
		if err != nil {
			return err
		}
		if d.down.over() {
			d.jobs.Logger.Info("connection to database restored", zap.String(keyDatabase, d.name))
		}
		d.jobs.served(d.name)
		if d.jobs.listeners.wanted() {
			left := time.Until(over)
			if left <= 0 {
				return errTurnOver
			}
			pause = min(pause, left)
		}
		if err := l.sleep(ctx, pause, d.poked); err != nil {
			return err
		}
		if l.heardInstalled() {
			if err := l.step(ctx, func(ctx context.Context) error { return d.begin(ctx, l) }); err != nil {
				return err
			}
		}
	}
}

// begin looks what the database holds, and brings it up to date.
func (d *database) begin(ctx context.Context, l *listener) error {
	rows, err := l.Query(ctx, `
		select pg_catalog.to_regnamespace('rwproxy') is not null,
		       extract(epoch from pg_catalog.pg_postmaster_start_time())`)
	if err != nil {
		return err
	}
	d.started = rows[0][1].Text
	if rows[0][0].Text != "t" {
		return errNothingInstalled
	}
	return d.jobs.Service.EnsureInstalled(ctx, d.name)
}

// keepAway waits for a while after the session was terminated, unless the
// database is gone by then, or the server was restarted, which ends sessions in
// the same way.
func (d *database) keepAway(ctx context.Context) {
	for until := time.Now().Add(terminatedPause); time.Now().Before(until); {
		if !pauseFor(ctx, firstPause) {
			return
		}
		if there, err := d.asBefore(ctx); err == nil && !there {
			return
		}
	}
}

// asBefore reports that the server has not been restarted and still has the
// database. It asks in another one than that which is to be left alone.
func (d *database) asBefore(ctx context.Context) (same bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	service := d.jobs.Service
	err = service.Do(ctx, service.Database(), func(s pgsession.Session) error {
		rows, err := s.Query(ctx, `
			select from pg_catalog.pg_database d
			 where d.datname = $1
			   and extract(epoch from pg_catalog.pg_postmaster_start_time()) = $2`, d.name, d.started)
		same = len(rows) > 0
		return err
	})
	return same, err
}

// pokeAll has the queues of all databases read, or their turns ended.
func (j *Jobs) pokeAll() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, d := range j.databases {
		poke(d.poked)
	}
}
