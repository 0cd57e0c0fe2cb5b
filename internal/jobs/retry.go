package jobs

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// maxAttempts is how often a job is begun, in all.
const maxAttempts = 10

// The pause before the second attempt of something, and the longest one.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)

// pauseAfter is how long to wait after a number of failures in a row, the
// first of which is 0: twice as long each time, and between half of that and
// all of it, so that those that failed together do not come back together.
func pauseAfter(failures int) time.Duration {
	pause := maxPause
	if failures < 6 { // 2^6 s is more than a minute
		pause = firstPause << failures
	}
	return pause/2 + rand.N(pause/2)
}

// retry returns when a job that failed with an SQLSTATE is to be begun again;
// attempt is how often it had been begun before. Only what does not lie in the
// refresh itself is worth another attempt: everything else would fail again.
func retry(code string, attempt int) (time.Duration, bool) {
	if attempt+1 >= maxAttempts {
		return 0, false
	}
	switch {
	case code == "40001", code == "40P01", isLost(code):
		return pauseAfter(attempt), true
	}
	return 0, false
}

// retryConnect is retry for a job whose session could not be had. That there
// are too many already says nothing of the job.
func retryConnect(code string, attempt int) (time.Duration, bool) {
	if attempt+1 < maxAttempts && strings.HasPrefix(code, "53") {
		return pauseAfter(attempt), true
	}
	return retry(code, attempt)
}

// isLost reports that an SQLSTATE says that the session is gone, or that the
// server is not there yet or any more.
func isLost(code string) bool {
	switch code {
	case "57P01", "57P02", "57P03", "57P05", "25P03":
		return true
	}
	return strings.HasPrefix(code, "08")
}

// outage is the time in which something does not work. Its zero value is that
// it does.
type outage struct {
	failures int // in a row
	reason   string
}

// begins notes a failure, and reports whether it is to be told: once for each
// reason.
func (o *outage) begins(err error) bool {
	reason := pgdiag.Code(err)
	if reason == "" {
		reason = "connection"
	}
	told := o.reason == reason
	o.reason = reason
	return !told
}

// over notes that it works again, and reports whether it did not before.
func (o *outage) over() bool {
	was := o.reason != ""
	*o = outage{}
	return was
}

// maxReconnectPause is short: whatever is due waits for it.
const maxReconnectPause = 10 * time.Second

// pause waits before the next attempt, and returns false if ctx ends before.
func (o *outage) pause(ctx context.Context) bool {
	wait := min(pauseAfter(o.failures), maxReconnectPause)
	o.failures++
	return pauseFor(ctx, wait)
}

// pauseFor returns false if ctx ends before the time is over.
func pauseFor(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
