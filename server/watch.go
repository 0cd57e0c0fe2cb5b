package server

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// intercept handles a message here instead of passing it on, once everything
// before it has been answered: only then is known whether Postgres would skip
// it, or read it as COPY data. run takes the message or passes it.
func (s *session) intercept(size int, run func() error) error {
	if s.inLoop {
		return errNotHere
	}
	if err := s.settle(); err != nil {
		return err
	}
	s.mu.Lock()
	skipping, copying := s.ledger.skipping, s.ledger.copyIn
	s.mu.Unlock()
	switch {
	case copying:
		return s.pass(size)
	case skipping:
		return s.in.stream(discard{}, size)
	}
	return run()
}

// settle waits until every answer that is owed has been passed on, or until
// the backend wants COPY data first.
func (s *session) settle() error {
	s.mu.Lock()
	settled := s.ledger.settled()
	s.mu.Unlock()
	if settled {
		return nil
	}
	if _, err := s.up.Write(flushMessage); err != nil {
		return err
	}
	if err := s.up.Flush(); err != nil {
		return err
	}
	defer s.watch()()
	return s.await(func() bool { return s.ledger.settled() || s.ledger.copyIn })
}

// await waits, under mu, for a condition or the loss of the backend.
func (s *session) await(condition func() bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !condition() {
		if s.lost {
			return errBackendLost
		}
		s.changed.Wait()
	}
	return nil
}

// watch reads the client ahead while its goroutine is busy, until the returned
// function is called. A client that has gone takes the backend with it. One
// that has sent maxWatched bytes is not watched further.
func (s *session) watch() (stop func()) {
	s.up.keep()
	var stopping atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer recoverTo(s.log)
		for !stopping.Load() && s.in.w-s.in.r < maxWatched {
			err := s.in.read()
			switch {
			case err == nil:
			case errors.Is(err, os.ErrDeadlineExceeded):
				// Lifted here and then looked at, so that no call is missed.
				_ = s.client.SetReadDeadline(time.Time{})
			default:
				s.mu.Lock()
				s.vanished = !s.lost && s.ctx.Err() == nil
				s.mu.Unlock()
				s.cancel()
				s.backend.Close()
				s.cancelOurs()
				return
			}
		}
	}()
	return func() {
		stopping.Store(true)
		interrupt(s.client)
		<-done
		_ = s.client.SetReadDeadline(time.Time{})
	}
}
