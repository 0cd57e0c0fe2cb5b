package jobs

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/schedule"
)

// dueAtOnce bounds how many schedules one transaction decides about.
const dueAtOnce = 500

// scheduler has refreshes enqueued that are due by a schedule or a trigger.
type scheduler struct {
	// jitter is how much later than its time a schedule may run, the same for
	// each run of it.
	jitter time.Duration
	// unreadable is told of a stored schedule that cannot be read. It never runs.
	unreadable func(table string, err error)
	// at is what to take for the database's time, for tests; else zero.
	at time.Time
}

// enqueueDue enqueues what is due and returns when to look again, by the
// database's clock: zero for never, unless a notification says so.
//
// Any number of instances may do it at once: each due time is enqueued by one of
// them. Times that have passed while none did it are one.
func (d scheduler) enqueueDue(ctx context.Context, s pgsession.Session) (time.Time, error) {
	schedules, err := flowstate.ReadSchedules(ctx, s, d.at, dueAtOnce)
	if err != nil {
		return time.Time{}, err
	}
	next := schedules.Next
	runs := make([]flowstate.ScheduledRun, len(schedules.Due))
	for i, due := range schedules.Due {
		at := d.next(due, schedules.Now)
		runs[i] = flowstate.ScheduledRun{DueSchedule: due, Next: flowstate.Moment(at)}
		next = earlier(next, at)
	}
	if len(runs) > 0 {
		if err := flowstate.RunSchedules(ctx, s, d.at, runs); err != nil {
			return time.Time{}, err
		}
	}
	if len(runs) == dueAtOnce {
		next = schedules.Now // there may be more
	}
	if !schedules.Triggers {
		return next, nil
	}
	again, err := flowstate.RunTriggers(ctx, s, d.at)
	return earlier(next, again), err
}

// next is when a schedule runs next, zero for never.
func (d scheduler) next(due flowstate.DueSchedule, now time.Time) time.Time {
	parsed, err := schedule.Parse(due.Text)
	if err != nil {
		d.unreadable(due.ID, err)
		return time.Time{}
	}
	later := d.delay(due.ID)
	next := parsed.Next(due.SetAt, now.Add(-later))
	if next.IsZero() {
		return next
	}
	return next.Add(later)
}

// delay spreads the schedules of many tables, and is always the same for one.
func (d scheduler) delay(table string) time.Duration {
	if d.jitter <= 0 {
		return 0
	}
	hash := fnv.New64a()
	hash.Write([]byte(table)) // never fails
	return time.Duration(hash.Sum64() % uint64(d.jitter)).Truncate(time.Microsecond)
}

// earlier is the earlier of two times, of which zero is never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
