package refresh

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// settingProgress is the setting of a session that asks for a notice every few
// seconds while a refresh of its runs.
const settingProgress = "rwproxy.progress"

const (
	// progressDelay is how long a refresh runs before anybody is told: one that
	// is quicker costs nothing.
	progressDelay = time.Second
	// progressPeriod is how often they are told then.
	progressPeriod = 2 * time.Second
	// progressTimeout bounds the writing of it; the next time is soon.
	progressTimeout = time.Second
)

// The steps of a refresh, as users read them.
const (
	stepLock      = "waiting for the lock"
	stepSources   = "locking the sources"
	stepPrepare   = "preparing"
	stepPlan      = "planning"
	stepDelete    = "deleting"
	stepInsert    = "inserting"
	stepDiff      = "writing the difference"
	stepFinishing = "finishing"
)

// progress tells how far a refresh has come once it has run for a while: the
// readers of rwproxy.refreshes, by the service connection, because the
// refresh's own transaction is not to be seen yet; and the client, if it wants
// notices.
type progress struct {
	engine  *Engine
	client  Client
	target  *flowstate.Target
	notices bool // the client wants them
	began   time.Time
	timer   *time.Timer // starts watch
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{} // closed when watch has ended

	mu    sync.Mutex // guards what follows
	id    string     // of the refresh, "" as long as others do not see it
	step  string
	since time.Time // of the step
	rows  int64     // inserted, -1 if that is not known

	// Of watch.
	noted string // the refresh that something is written down of
	first sample
}

// sample is how many rows a table seemed to hold at a time.
type sample struct {
	rows int64
	at   time.Time
	step time.Time // when the step began
}

// startProgress begins to watch a run. stop ends it.
func startProgress(ctx context.Context, r *run, notices bool) *progress {
	p := &progress{
		engine: r.engine, client: r.client, target: r.target, notices: notices, began: r.began,
		done: make(chan struct{}), rows: -1,
	}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.timer = time.AfterFunc(max(0, progressDelay-time.Since(r.began)), p.watch)
	return p
}

// stop returns when nobody is told any more. It may be called more than once.
// A run that nobody watches has no progress: its methods then do nothing.
func (p *progress) stop() {
	if p == nil {
		return
	}
	p.cancel()
	if p.timer.Stop() {
		close(p.done) // watch never began
	}
	<-p.done
}

// enter begins a step.
func (p *progress) enter(step string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step, p.since, p.rows = step, time.Now(), -1
}

// finish begins the last step, after so many rows were inserted.
func (p *progress) finish(inserted int64) {
	if p == nil {
		return
	}
	p.enter(stepFinishing)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rows = inserted
}

// visible says which refresh it is, once others can see that it runs.
func (p *progress) visible(id string) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id = id
}

// watch tells, until stop.
func (p *progress) watch() {
	defer close(p.done)
	ticker := time.NewTicker(progressPeriod)
	defer ticker.Stop()
	for p.ctx.Err() == nil {
		p.tell()
		select {
		case <-ticker.C:
		case <-p.ctx.Done():
		}
	}
	if p.noted == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), progressTimeout)
	defer cancel()
	err := p.engine.service.Do(ctx, p.client.Database(), func(s pgsession.Session) error {
		return flowstate.ForgetProgress(ctx, s, p.noted)
	})
	if err != nil {
		p.log(err)
	}
}

func (p *progress) tell() {
	p.mu.Lock()
	id, since := p.id, p.since
	now := flowstate.Progress{Step: p.step, Rows: p.rows}
	p.mu.Unlock()
	if id == "" && !p.notices {
		return
	}
	ctx, cancel := context.WithTimeout(p.ctx, progressTimeout)
	defer cancel()
	err := p.engine.service.Do(ctx, p.client.Database(), func(s pgsession.Session) (err error) {
		if now.Step == stepInsert {
			if err = p.estimate(ctx, s, since, &now); err != nil {
				return err
			}
		}
		if id == "" {
			return nil
		}
		p.noted = id
		return flowstate.NoteProgress(ctx, s, id, now)
	})
	if p.ctx.Err() != nil {
		return
	}
	if err != nil {
		p.log(err)
	}
	if p.notices {
		p.client.Notice(&pgdiag.Diagnostic{
			Code: "00000", Message: fmt.Sprintf("refreshing %s.%s: %s", p.target.Schema, p.target.Name, p.describe(now)),
		})
	}
}

// log says why nobody could be told. The refresh goes on.
func (p *progress) log(err error) {
	p.engine.logger.Debug("progress not written", zap.String(keyDatabase, p.client.Database()), zap.Error(err))
}

// describe is what rwproxy.refreshes shows, too.
func (p *progress) describe(now flowstate.Progress) string {
	text := now.Step + ", "
	if now.Estimated {
		text += "about "
	}
	if now.Rows >= 0 {
		text += strconv.FormatInt(now.Rows, 10) + " rows, "
	}
	seconds := int(time.Since(p.began).Seconds())
	return text + fmt.Sprintf("%02d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
}

// estimate is the rows that the INSERT that began at a time has written, by
// the growth of the table's files since they were first looked at. Before that
// it is taken to have been as quick as after it.
func (p *progress) estimate(ctx context.Context, s pgsession.Session, began time.Time, now *flowstate.Progress) error {
	rows, err := flowstate.EstimatedRows(ctx, s, p.target.OID)
	if err != nil {
		return err
	}
	at := time.Now()
	if p.first.step != began {
		p.first = sample{rows: rows, at: at, step: began}
		return nil
	}
	grown := float64(max(0, rows-p.first.rows))
	now.Rows = int64(grown * at.Sub(began).Seconds() / at.Sub(p.first.at).Seconds())
	now.Estimated = true
	return nil
}

// progressWanted reads the setting's value.
func progressWanted(value string) (bool, error) {
	switch value {
	case "", "off", "false", "no", "0":
		return false, nil
	case "on", "true", "yes", "1":
		return true, nil
	}
	return false, invalidSetting(settingProgress, value, "on or off")
}
