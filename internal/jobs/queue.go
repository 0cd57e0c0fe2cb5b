package jobs

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

const (
	// longestSleep is after how long a queue is read that nobody notified of:
	// the connection may have been lost without a word.
	longestSleep = time.Minute
	// shortestSleep is for what is due now and was not enqueued, for whatever
	// reason.
	shortestSleep = 50 * time.Millisecond
	// rescuePause is how often lost jobs are looked for while jobs run.
	rescuePause = 2 * time.Second
)

// attempt names one attempt of a job.
type attempt struct {
	id     string
	number int
}

// try is what became of it: this instance has begun it and it is still queued,
// because another one holds it or its end could not be recorded.
type try struct {
	until time.Time // it is left alone
	times int
}

// readQueue enqueues what is due, reads what is ready, and returns how long
// the queue may then be left alone.
func (d *database) readQueue(ctx context.Context, s pgsession.Session) (time.Duration, error) {
	due, looked, err := d.enqueueDue(ctx, s)
	if err != nil {
		return 0, err
	}
	limit := 2*d.jobs.MaxRefreshes + d.occupied()
	queue, err := flowstate.ReadQueue(ctx, s, limit)
	if err != nil {
		return 0, err
	}
	if d.rescued.IsZero() || queue.Elsewhere && time.Since(d.rescued) >= rescuePause {
		lost, err := flowstate.RequeueLost(ctx, s)
		if err != nil {
			return 0, err
		}
		d.rescued = time.Now()
		if lost > 0 {
			d.jobs.Logger.Warn("refreshes of lost sessions queued again", zap.String(keyDatabase, d.name), zap.Int64(keyCount, lost))
			if queue, err = flowstate.ReadQueue(ctx, s, limit); err != nil {
				return 0, err
			}
		}
	}
	pause := d.setReady(queue.Ready)
	if queue.Elsewhere || !looked {
		pause = min(pause, rescuePause)
	}
	if due = earlier(due, queue.NextDue); !due.IsZero() {
		pause = min(pause, max(due.Sub(queue.Now), 0))
	}
	// Instances that sleep until the same time do not all wake at once.
	return max(pause, shortestSleep) + rand.N(gather), nil
}

// enqueueDue enqueues what is due by a schedule or a trigger, and returns when
// something will be next. Refreshes that are in the queue do not depend on it:
// an error that leaves the session as it is is told, and looked is false.
func (d *database) enqueueDue(ctx context.Context, s pgsession.Session) (next time.Time, looked bool, err error) {
	next, err = scheduler{jitter: d.jobs.ScheduleJitter, unreadable: d.unreadable}.enqueueDue(ctx, s)
	switch code := pgdiag.Code(err); {
	case err == nil:
		if d.unscheduled.over() {
			d.jobs.Logger.Info("schedules and triggers looked at again", zap.String(keyDatabase, d.name))
		}
		return next, true, nil
	case code == "" || strings.HasPrefix(code, "57") || strings.HasPrefix(code, "08"):
		return next, false, err
	}
	if d.unscheduled.begins(err) {
		d.jobs.Logger.Error("schedules and triggers not looked at", zap.String(keyDatabase, d.name), because(err))
	}
	return next, false, nil
}

func (d *database) unreadable(table string, err error) {
	d.jobs.Logger.Error("schedule of table never runs", zap.String(keyDatabase, d.name), zap.String(keyTable, table), zap.Error(err))
}

// occupied is how many of the ready jobs are of no use now.
func (d *database) occupied() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.active) + len(d.tried)
}

// setReady has jobs run, and returns when those that are left alone are to be
// looked at again.
func (d *database) setReady(ready []flowstate.Job) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ready = ready
	now, pause := time.Now(), longestSleep
	waiting := make(map[attempt]bool, len(ready))
	for _, job := range ready {
		key := attempt{job.ID, job.Attempt}
		waiting[key] = true
		if left := d.tried[key].until.Sub(now); left > 0 {
			pause = min(pause, left)
		}
	}
	for key, t := range d.tried {
		if !waiting[key] && t.until.Before(now) {
			delete(d.tried, key)
		}
	}
	if len(ready) > 0 {
		poke(d.readied)
	}
	return pause
}

// dispatch begins ready jobs, each when it gets one of the instance's slots.
// It waits for one slot at a time: then it is another database's turn.
func (d *database) dispatch(ctx context.Context) {
	for {
		select {
		case <-d.readied:
		case <-ctx.Done():
			return
		}
		for d.hasNext() {
			if err := d.jobs.slots.Acquire(ctx, 1); err != nil {
				return
			}
			job, found := d.next()
			if !found {
				d.jobs.slots.Release(1)
				break
			}
			d.jobs.refreshes.Go(func() {
				defer d.jobs.slots.Release(1)
				d.execute(job)
				d.executed(job)
			})
		}
	}
}

func (d *database) hasNext() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.find() >= 0
}

// next takes a job out of those that are ready.
func (d *database) next() (flowstate.Job, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := d.find()
	if i < 0 {
		return flowstate.Job{}, false
	}
	job := d.ready[i]
	d.ready = append(d.ready[:i:i], d.ready[i+1:]...)
	d.active[job.Target] = true
	return job, true
}

// find returns a job that can begin, -1 if there is none. Two refreshes of a
// table would wait for each other, with a slot each. Of those that could begin
// together it takes any: instances that read the same queue would all begin with
// the first, and all but one in vain. d is locked.
func (d *database) find() int {
	now := time.Now()
	var possible []int
	for i, job := range d.ready {
		if !d.active[job.Target] && !d.tried[attempt{job.ID, job.Attempt}].until.After(now) {
			possible = append(possible, i)
		}
		if len(possible) == d.jobs.MaxRefreshes {
			break
		}
	}
	if len(possible) == 0 {
		return -1
	}
	return possible[rand.N(len(possible))]
}

// executed has the queue read again after a job: another may wait for it.
func (d *database) executed(job flowstate.Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.active, job.Target)
	key := attempt{job.ID, job.Attempt}
	t := d.tried[key]
	d.tried[key] = try{until: time.Now().Add(pauseAfter(t.times)), times: t.times + 1}
	poke(d.poked)
}
