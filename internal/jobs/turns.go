package jobs

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	// maxListeners is how many databases an instance listens to at a time.
	maxListeners = 20
	// turn is how long a database keeps its listening session while others
	// wait for one.
	turn = 5 * time.Second
)

// turns hands out listening sessions, first come, first served.
type turns struct {
	slots   *semaphore.Weighted
	length  time.Duration // of a turn
	waiting atomic.Int64
}

// take waits for a session; crowded is called if it has to.
func (t *turns) take(ctx context.Context, crowded func()) error {
	if t.slots.TryAcquire(1) {
		return nil
	}
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	crowded()
	return t.slots.Acquire(ctx, 1)
}

func (t *turns) giveBack() { t.slots.Release(1) }

// wanted reports that somebody waits.
func (t *turns) wanted() bool { return t.waiting.Load() > 0 }
