package server

import (
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/rewrite"
)

// runScript runs a Query in which a statement is ours.
func (s *session) runScript(sc script) error {
	s.mu.Lock()
	status := s.status
	s.mu.Unlock()
	executed := s.batch.executed
	s.batch = batch{}
	if len(sc) == 1 {
		_, isDrop := sc[0].ours.(*rewrite.Drop)
		switch {
		case status == statusAborted:
			// Postgres refuses it in its own words.
			return s.queryNatively(sc[0].ours.Shadow())
		case status == statusIdle && !executed && !isDrop:
			return s.runAlone(sc[0])
		}
	}
	return s.runInOrder(sc, status)
}

func (s *session) queryNatively(text string) error {
	s.owe(owesQuery, nil)
	return s.sendBackend(&pgproto3.Query{String: text})
}

// runAlone runs a statement that is a Query by itself, outside a transaction.
func (s *session) runAlone(i item) error {
	outcome, refusal, err := s.run(i.ours, false)
	if err != nil {
		return err
	}
	var answer []byte
	if refusal != nil {
		answer, err = encode(nil, shifted(refusal, i.shift).ErrorResponse())
	} else {
		answer, err = encodeOutcome(outcome)
	}
	if err != nil {
		return err
	}
	if err := s.sendClientRaw(answer); err != nil {
		return err
	}
	return s.endQuery()
}

// endQuery ends a Query that was not sent as one: as Postgres does, it drops
// the unnamed statement, and a Sync gets the ReadyForQuery.
func (s *session) endQuery() error {
	s.mu.Lock()
	skipping := s.ledger.skipping
	delete(s.prepared, "")
	s.mu.Unlock()
	if !skipping {
		s.owe(owesClose, &note{quiet: true})
		if err := s.sendBackend(&pgproto3.Close{ObjectType: 'S'}); err != nil {
			return err
		}
	}
	s.owe(owesSync, nil)
	if err := s.sendBackend(&pgproto3.Sync{}); err != nil {
		return err
	}
	return s.closeLeftover()
}

// runInOrder runs the statements of one Query in one implicit transaction, as
// extended messages that are closed by Flush, up to the first error.
func (s *session) runInOrder(sc script, status byte) error {
	if len(sc) > 1 && status == statusIdle && !beginsBlock(sc[0].text) {
		if failed, err := s.enterImplicitBlock(); failed || err != nil {
			return err
		}
	}
	for n, i := range sc {
		last := n == len(sc)-1
		failed, err := s.runItem(i, last, status == statusAborted)
		if err != nil {
			return err
		}
		if failed {
			break
		}
	}
	return s.endQuery()
}

// runItem runs one statement of several and reports whether it failed. The
// completion of the last one is held back until the transaction has ended:
// Postgres reports a failed commit in its place.
func (s *session) runItem(i item, last, aborted bool) (failed bool, err error) {
	if i.ours == nil {
		return s.runNative(i.text, i.shift, last)
	}
	if aborted {
		// Unless a ROLLBACK came first, Postgres refuses it in its own words.
		if failed, err := s.parseNatively(i.ours.Shadow()); failed || err != nil {
			return failed, err
		}
	}
	outcome, refusal, err := s.run(i.ours, true)
	switch {
	case err != nil:
		return false, err
	case refusal != nil:
		return true, s.failJoined(shifted(refusal, i.shift))
	case outcome.Forward:
		return s.runNative(i.ours.Shadow(), i.shift, last)
	}
	answer, err := encodeOutcome(outcome)
	if err != nil {
		return false, err
	}
	if last {
		s.out.Lock()
		s.out.held = answer
		s.out.Unlock()
		return false, nil
	}
	return false, s.sendClientRaw(answer)
}

// runNative runs a statement of Postgres's with the answers of a simple query.
func (s *session) runNative(text string, shift int, last bool) (failed bool, err error) {
	n := &note{quiet: true, shift: shift, hold: last}
	s.owe(owesParse, n)
	s.owe(owesBind, n)
	s.owe(owesDescribe, n)
	s.owe(owesExecute, n)
	err = s.sendBackend(
		&pgproto3.Parse{Query: text},
		&pgproto3.Bind{},
		&pgproto3.Describe{ObjectType: 'P'},
		&pgproto3.Execute{},
	)
	if err != nil {
		return false, err
	}
	return s.finishNative()
}

func (s *session) parseNatively(text string) (failed bool, err error) {
	s.owe(owesParse, &note{quiet: true})
	if err := s.sendBackend(&pgproto3.Parse{Query: text}); err != nil {
		return false, err
	}
	return s.finishNative()
}

// finishNative waits for the answers, passing the client's COPY data on when
// Postgres asks for it.
func (s *session) finishNative() (failed bool, err error) {
	for {
		if err := s.settle(); err != nil {
			return false, err
		}
		s.mu.Lock()
		copying, skipping := s.ledger.copyIn, s.ledger.skipping
		s.mu.Unlock()
		if !copying {
			return skipping, nil
		}
		if err := s.pump(); err != nil {
			return false, err
		}
	}
}

// enterImplicitBlock makes Postgres treat what follows as it treats a Query
// with several statements. It does so from the second statement of a pipeline
// on; the first one here reads a setting, which takes no snapshot.
func (s *session) enterImplicitBlock() (failed bool, err error) {
	c := &injector{session: s, joined: true}
	_, err = c.Query(s.ctx, "show transaction_isolation")
	switch {
	case err == nil:
		return false, nil
	case s.ctx.Err() != nil:
		return false, errBackendLost
	}
	if err := s.sendClient(diagnose(err).ErrorResponse()); err != nil {
		return true, err
	}
	return true, s.endQuery()
}

// beginsBlock reports that a statement starts a transaction block, which must
// be the first thing in its transaction.
func beginsBlock(text string) bool {
	tokens, err := rewrite.Tokens(text, rewrite.Lexical{})
	if err != nil || len(tokens) == 0 {
		return false
	}
	word := strings.ToLower(text[tokens[0].Start:tokens[0].End])
	return word == "begin" || word == "start"
}
