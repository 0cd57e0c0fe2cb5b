package server

import (
	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/rewrite"
)

// runScript runs a Query in which a statement is ours.
func (s *session) runScript(text string, sc script) error {
	s.mu.Lock()
	status, unsure, pipelining := s.status, s.unsure, s.pipelining
	s.mu.Unlock()
	// Nothing is open in Postgres, neither a block nor a pipeline. A Sync that
	// COPY took for one of its data has ended none.
	fresh := status == statusIdle && !s.batch.executed && !pipelining
	s.batch = batch{}
	if len(sc) == 1 {
		switch {
		case status == statusAborted:
			// Postgres refuses it in its own words.
			return s.queryNatively(sc[0].ours.Shadow())
		case fresh && !rewrite.RunsNatively(sc[0].ours):
			return s.runAlone(sc[0])
		}
	}
	// Outside a block of the client's there is no savepoint for the check.
	if len(sc) > 1 && (fresh || status == statusInBlock && !unsure) {
		failed, err := s.checkSyntax(text, sc, status)
		if err != nil {
			return err
		}
		if failed {
			return s.endQuery()
		}
	}
	pipelined := len(sc) == 1 && pipelining
	return s.runInOrder(sc, fresh, pipelined, status == statusAborted)
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

// endQuery ends a Query that was not sent as one: a Sync gets its ReadyForQuery.
func (s *session) endQuery() error {
	return s.endQueryWith(step{owesSync, &pgproto3.Sync{}}, nil)
}

// endPipelinedQuery ends a Query of one statement behind what an Execute has
// done. Whether that is now committed depends on the version of Postgres, so a
// Query without a statement gets the ReadyForQuery.
func (s *session) endPipelinedQuery() error {
	return s.endQueryWith(step{owesQuery, &pgproto3.Query{}}, &note{unseen: true})
}

// endQueryWith ends a Query with a message that a ReadyForQuery answers, or with
// a Sync if it failed. As in Postgres, the unnamed statement is then gone, and so
// is the unnamed portal unless it failed; a statement that could not be planned
// never had one.
func (s *session) endQueryWith(last step, lastNote *note) error {
	s.mu.Lock()
	failed, planFailed := s.ledger.skipping, s.planFailed
	delete(s.prepared, "")
	extra := s.extraReady
	s.inScript, s.extraReady = false, 0
	s.mu.Unlock()
	sync := step{owesSync, &pgproto3.Sync{}}
	if failed {
		last, lastNote = sync, nil
		s.owe(owesSync, &note{sink: &result{}})
		if err := s.sendBackend(sync.message); err != nil {
			return err
		}
	}
	if !failed || planFailed {
		s.owe(owesClose, &note{quiet: true})
		if err := s.sendBackend(&pgproto3.Close{ObjectType: 'P'}); err != nil {
			return err
		}
	}
	s.owe(owesClose, &note{quiet: true})
	if err := s.sendBackend(&pgproto3.Close{ObjectType: 'S'}); err != nil {
		return err
	}
	s.owe(last.owes, lastNote)
	if err := s.sendBackend(last.message); err != nil {
		return err
	}
	for range extra {
		s.owe(owesSync, nil)
		if err := s.sendBackend(sync.message); err != nil {
			return err
		}
	}
	return s.closeLeftover()
}

// runInOrder runs the statements of one Query, up to the first error, as
// extended messages closed by Flush. Postgres runs several statements outside
// a block as if they were one (an implicit block), and what comes close to
// that is a block of ours around them, in which LOCK, DECLARE and SET LOCAL
// work and VACUUM does not. Where the text itself begins or ends blocks, the
// implicit transaction of a pipeline does what an implicit block does.
//
// One statement that is pipelined, behind what Execute has done, may not end
// the transaction that it is in.
func (s *session) runInOrder(sc script, fresh, pipelined, aborted bool) error {
	s.mu.Lock()
	s.inScript = true
	s.mu.Unlock()
	wrapped := len(sc) > 1 && fresh && !sc.controlsTransactions()
	if wrapped {
		failed, err := s.runUnseen("begin")
		if err != nil {
			return err
		}
		if failed {
			return s.endQuery()
		}
	}
	var failed bool
	var err error
	for n, i := range sc {
		if !wrapped && len(sc) > 1 && i.ours == nil && mayForbidBlocks(i.text) {
			if failed, err = s.markAsPipeline(); failed || err != nil {
				break
			}
		}
		failed, err = s.runItem(i, n == len(sc)-1, aborted)
		if failed || err != nil {
			break
		}
	}
	switch {
	case err != nil:
		return err
	case wrapped && failed:
		if err := s.rollBack(); err != nil {
			return err
		}
	case wrapped:
		if _, err := s.runUnseen("commit"); err != nil {
			return err
		}
	case pipelined:
		return s.endPipelinedQuery()
	}
	return s.endQuery()
}

// checkSyntax has Postgres read a whole text before any of it runs, as it does
// by itself: a syntax error at the end prevents what is in front of it. Ours
// are blanked out. A Parse of more than one statement always fails, and does so
// before anything is looked up; a position tells a syntax error from that. In a
// block, a savepoint takes the failure back.
func (s *session) checkSyntax(text string, sc script, status byte) (failed bool, err error) {
	c := &injector{session: s}
	if status == statusInBlock {
		if _, err := c.Exec(s.ctx, "savepoint "+syntaxSavepoint); err != nil {
			return true, s.failJoined(diagnose(err))
		}
	}
	_, err = c.round(s.ctx, &pgproto3.Parse{Query: sc.withoutOurs(text) + "\n; select; select"})
	if s.ctx.Err() != nil {
		return false, errBackendLost
	}
	refusal := diagnose(err)
	if refusal.Code != syntaxError || refusal.Position > 0 {
		return true, s.sendClient(refusal.ErrorResponse())
	}
	if status == statusInBlock {
		for _, undo := range []string{"rollback to savepoint ", "release savepoint "} {
			if _, err := c.Exec(s.ctx, undo+syntaxSavepoint); err != nil {
				return true, s.failJoined(diagnose(err))
			}
		}
	}
	return false, nil
}

// syntaxSavepoint is around the check of a text in a block of the client's.
const syntaxSavepoint = "rwproxy_syntax"

// runUnseen runs a statement of ours of which the client sees nothing but its
// error.
func (s *session) runUnseen(text string) (failed bool, err error) {
	return s.sendNative(text, &note{quiet: true, unseen: true})
}

// runItem runs one statement of several and reports whether it failed. The
// completion of the last one is held back until the transaction has ended:
// Postgres reports a failed commit in its place.
func (s *session) runItem(i item, last, aborted bool) (failed bool, err error) {
	if i.ours == nil {
		if rewrite.FirstParameter(i.text, i.lexical) >= 0 {
			if failed, err := s.refuseParameters(i); failed || err != nil {
				return failed, err
			}
		}
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

// refuseParameters refuses a statement of Postgres's that has parameters, which
// a Query has no values for. Only Postgres can tell: PREPARE and the body of a
// function hold some that are none of the statement's.
func (s *session) refuseParameters(i item) (failed bool, err error) {
	refusal := shifted(rewrite.NoParameter(i.text, rewrite.FirstParameter(i.text, i.lexical)), i.shift)
	described := &result{}
	s.owe(owesParse, &note{quiet: true, shift: i.shift, replace: refusal, replaceCode: indeterminateType})
	s.owe(owesDescribe, &note{sink: described})
	if err := s.sendBackend(&pgproto3.Parse{Query: i.text}, &pgproto3.Describe{ObjectType: 'S'}); err != nil {
		return false, err
	}
	if failed, err := s.finishNative(); failed || err != nil {
		return failed, err
	}
	if len(described.parameters) == 0 {
		return false, nil
	}
	return true, s.fail(refusal)
}

// markAsPipeline makes Postgres see that more than one statement is in the
// implicit transaction, so that it refuses one that must be alone in it.
func (s *session) markAsPipeline() (failed bool, err error) {
	c := &injector{session: s, joined: true}
	_, err = c.Exec(s.ctx, "show transaction_isolation")
	switch {
	case s.ctx.Err() != nil:
		return false, errBackendLost
	case err != nil:
		return true, s.sendClient(diagnose(err).ErrorResponse()) // the block is aborted
	}
	return false, nil
}

// runNative runs a statement of Postgres's with the answers of a simple query.
func (s *session) runNative(text string, shift int, last bool) (failed bool, err error) {
	failed, err = s.sendNative(text, &note{quiet: true, shift: shift, hold: last, inQuery: true})
	if failed || err != nil || last {
		return failed, err
	}
	// Its portal would keep the relations in use that a later statement alters.
	// It cannot be closed together with Execute: that may begin a COPY.
	s.owe(owesClose, &note{quiet: true})
	if err := s.sendBackend(&pgproto3.Close{ObjectType: 'P'}); err != nil {
		return false, err
	}
	return s.finishNative()
}

func (s *session) sendNative(text string, n *note) (failed bool, err error) {
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
			if s.doubtful {
				failed, _, err = s.recount()
			}
			return failed || skipping, err
		}
		if err := s.pump(); err != nil {
			return false, err
		}
	}
}
