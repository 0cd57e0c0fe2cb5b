package jobs

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// cutTimeout bounds how long a refresh that is cut at shutdown may take to go
// back into the queue. One that does not make it loses its session, which
// other instances see.
const cutTimeout = 5 * time.Second

// Config is what an instance is made of.
type Config struct {
	Service *flowstate.Service
	Engine  *refresh.Engine
	Logger  *zap.Logger
	// MaxRefreshes is how many jobs run at once, in all databases together; at
	// least 1.
	MaxRefreshes int
	// ScheduleJitter is over how long the jobs of one scheduled time are spread.
	ScheduleJitter time.Duration
}

// Jobs is the part of an instance that runs jobs. Its methods are safe for
// concurrent use.
type Jobs struct {
	Config

	slots     *semaphore.Weighted // of refreshes that run; first come, first served
	listeners *turns              // of sessions that listen

	serving   context.Context // ends when Stop begins: no job is begun after it
	end       context.CancelFunc
	loops     sync.WaitGroup // of what looks for jobs
	refreshes sync.WaitGroup // of the jobs that run
	cuts      sync.WaitGroup // of what cuts them

	discovery chan struct{} // asks to look for databases now

	mu        sync.Mutex
	databases map[string]*database
	announce  bool // other instances are to look for databases, too
	left      map[string]leaving
	running   map[*execution]struct{}
	cutting   bool // Stop has given up to wait for those that run
}

// New returns an instance that does nothing before Start.
func New(c Config) *Jobs {
	j := &Jobs{
		Config:    c,
		slots:     semaphore.NewWeighted(int64(c.MaxRefreshes)),
		listeners: &turns{slots: semaphore.NewWeighted(maxListeners), length: turn},
		discovery: make(chan struct{}, 1),
		databases: map[string]*database{},
		left:      map[string]leaving{},
		running:   map[*execution]struct{}{},
	}
	j.serving, j.end = context.WithCancel(context.Background())
	return j
}

// Start looks for the databases that hold flows, and serves them. Postgres
// need not be up.
func (j *Jobs) Start() {
	j.loops.Go(func() { j.discover(j.serving) })
}

// Serve serves a database whose schemas have just been installed, and tells
// other instances of it. It does nothing for one that is served.
func (j *Jobs) Serve(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, served := j.databases[name]; served {
		return
	}
	j.serve(name)
	j.announce = true
	poke(j.discovery)
}

// serve begins to serve a database; j is locked.
func (j *Jobs) serve(name string) {
	if j.serving.Err() != nil {
		return
	}
	d := newDatabase(j, name)
	ctx, cancel := context.WithCancel(j.serving)
	d.end = cancel
	j.databases[name] = d
	j.loops.Go(func() {
		defer cancel()
		d.run(ctx)
		j.mu.Lock()
		defer j.mu.Unlock()
		delete(j.databases, name)
	})
}

// Databases returns the databases that are served, in no order.
func (j *Jobs) Databases() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.databases))
}

// Unserved returns the databases that hold flows and cannot be served, in no
// order: their schemas are those of another role or of a newer rwproxy, say.
func (j *Jobs) Unserved() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var names []string
	for name, why := range j.left {
		if why.holdsFlows {
			names = append(names, name)
		}
	}
	return names
}

// Stop begins no further job, and lets those that run finish until ctx ends.
// Then they are cancelled and go back into the queue, for another instance. It
// is safe to call twice.
func (j *Jobs) Stop(ctx context.Context) {
	j.mu.Lock()
	j.end() // serve begins no loop after it
	j.mu.Unlock()
	j.loops.Wait()
	finished := make(chan struct{})
	go func() {
		j.refreshes.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
		j.mu.Lock()
		j.cutting = true // what is just beginning is cut when it has begun
		for e := range j.running {
			j.cuts.Go(e.cut)
		}
		j.mu.Unlock()
		<-finished
	}
	j.cuts.Wait()
}

// began notes an execution.
func (j *Jobs) began(e *execution) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.running[e] = struct{}{}
	if j.cutting {
		j.cuts.Go(e.cut)
	}
}

// ended forgets an execution.
func (j *Jobs) ended(e *execution) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.running, e)
	close(e.done)
}

// poke sends to a channel that has room for one message, unless there is one.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Log keys.
const (
	keyDatabase = "database"
	keyTarget   = "target"
	keyTable    = "table_id"
	keyRefresh  = "refresh_id"
	keyRole     = "role"
	keyAttempt  = "attempt"
	keyCount    = "refreshes"
)

// because is an error of a connection, with what the server says of it.
func because(err error) zap.Field {
	var d *pgdiag.Diagnostic
	if errors.As(err, &d) && d.Detail != "" {
		return zap.String("error", d.Error()+": "+d.Detail)
	}
	return zap.Error(err)
}
