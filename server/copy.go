package server

import (
	"bytes"
	"errors"

	"github.com/jackc/pgproto3/v2"
)

var errCopyOver = errors.New("COPY data is no longer taken")

// pump passes the client's COPY data on until its end, or until Postgres has
// had enough of it.
func (s *session) pump() error {
	s.setPumping(true)
	defer s.setPumping(false)
	for s.isCopyingIn() {
		typ, size, err := s.in.header()
		if errors.Is(err, errCopyOver) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.passCopy(typ, size); err != nil {
			return err
		}
	}
	return s.up.Flush()
}

// isCopyData reports that a message of the client's goes to a COPY that reads
// data. Data that is sent before Postgres has asked for it waits until it has.
func (s *session) isCopyData(typ byte) (bool, error) {
	copying := s.isCopyingIn()
	if !copying && (typ == msgCopyData || typ == msgCopyDone || typ == msgCopyFail) {
		if s.inLoop && !s.isSettled() {
			return false, errNotHere
		}
		if err := s.settle(); err != nil {
			return false, err
		}
		copying = s.isCopyingIn()
	}
	if s.doubtful && !copying {
		if s.inLoop {
			return false, errNotHere
		}
		_, skipping, err := s.recount()
		s.swallow = skipping
		return false, err
	}
	return copying, nil
}

func (s *session) isSettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.settled()
}

func (s *session) isCopyingIn() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.copyIn
}

// passCopy forwards a message to a backend that reads COPY data. Anything but
// data, its end, Sync and Flush is an error there, which Postgres reports.
//
// A Sync among the data is ignored, unless the COPY has failed by then: then it
// is answered. Which of the two is found out when the COPY has ended.
func (s *session) passCopy(typ byte, size int) error {
	switch typ {
	case msgSync:
		s.doubtful = true
	case msgCopyDone, msgCopyFail:
		s.owe(endsCopy, nil)
	}
	return s.pass(size)
}

// recount is the search for how many Syncs were answered.
type recount struct {
	held   []byte // the last ReadyForQuery
	ready  int    // how many are the client's
	silent bool   // the client is not to get them yet
}

// recount finds out what became of the Syncs among the data of a COPY, and
// reports whether the COPY has failed and whether Postgres was skipping
// messages still. If it has failed, a Sync of ours, with a Close behind it as a
// mark, shows that: the ReadyForQuery in front of the mark is ours, those
// before it are the client's.
func (s *session) recount() (failed, skipping bool, err error) {
	if err := s.settle(); err != nil {
		return false, false, err
	}
	s.doubtful = false
	s.mu.Lock()
	counted := &recount{silent: s.inScript}
	failed, skipping = s.ledger.copyFailed, s.ledger.skipping
	if failed {
		s.recounting = counted
		s.ledger.skipping = false
	}
	s.mu.Unlock()
	if !failed {
		return false, false, nil
	}
	if err := s.sendBackend(&pgproto3.Sync{}, closeStatement.message); err != nil {
		return true, false, err
	}
	if _, err := s.up.Write(flushMessage); err != nil {
		return true, false, err
	}
	if err := s.up.Flush(); err != nil {
		return true, false, err
	}
	defer s.watch()()
	err = s.await(func() bool { return s.recounting == nil })
	if counted.silent {
		s.mu.Lock()
		s.extraReady += counted.ready
		s.mu.Unlock()
	}
	return true, skipping && counted.ready == 0, err
}

// judge returns what the client gets of an answer during a recount, and
// whether it was the last one.
func (r *recount) judge(typ byte, message []byte) (passed []byte, done bool) {
	switch typ {
	case msgReadyForQuery:
		if r.held != nil {
			r.ready++
			if !r.silent {
				passed = r.held
			}
		}
		r.held = bytes.Clone(message)
		return passed, false
	case msgCloseComplete:
		return nil, true
	}
	return message, false
}

func (s *session) setPumping(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pumping = on
}
