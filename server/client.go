package server

import (
	"bytes"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// syntaxError is the SQLSTATE of a text that Postgres cannot parse.
const syntaxError = "42601"

// activeTransaction is the SQLSTATE of a statement that cannot be in a
// transaction block, indeterminateType of a parameter of no known type.
const (
	activeTransaction = "25001"
	indeterminateType = "42P18"
)

// maxNames bounds what is read of a Bind, Execute or Close for its names.
const maxNames = bufferSize

// relayClient passes the client's messages on until the connection ends, or in
// the loop until there are no more bytes.
func (s *session) relayClient() error {
	if err := s.in.streamRest(s.up); err != nil {
		return err
	}
	for {
		if n := s.in.run(msgCopyData, msgCopyData); n > 0 && !s.swallow {
			if _, err := s.isCopyData(msgCopyData); err != nil {
				return err
			}
			if s.swallow {
				continue
			}
			// Whether Postgres takes it or not, nothing is owed for it.
			if err := s.in.stream(s.up, n); err != nil {
				return err
			}
			continue
		}
		typ, size, err := s.in.header()
		if err != nil {
			return err
		}
		if s.swallow && typ != msgSync && typ != msgTerminate {
			if err := s.in.stream(discard{}, size); err != nil {
				return err
			}
			continue
		}
		if err := s.awaitRoom(); err != nil {
			return err
		}
		if err := s.takeMessage(typ, size); err != nil {
			return err
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// takeMessage handles one message of the client.
func (s *session) takeMessage(typ byte, size int) error {
	if s.unscanned {
		return s.pass(size)
	}
	switch copying, err := s.isCopyData(typ); {
	case err != nil:
		return err
	case copying:
		return s.passCopy(typ, size)
	case s.swallow && typ != msgSync && typ != msgTerminate:
		return s.in.stream(discard{}, size)
	}
	switch typ {
	case msgQuery:
		return s.takeQuery(size)
	case msgParse:
		return s.takeParse(size)
	case msgBind:
		return s.takeBind(size)
	case msgExecute:
		return s.takeExecute(size)
	case msgClose:
		return s.takeClose(size)
	case msgDescribe:
		s.batch.open = true
		s.owe(owesDescribe, nil)
	case msgSync:
		return s.takeSync(size)
	case msgFunctionCall:
		s.batch = batch{}
		s.owe(owesFunction, nil)
	}
	return s.pass(size)
}

// pass forwards the next message as it is.
func (s *session) pass(size int) error { return s.in.stream(s.up, size) }

// tracking reports that an intercepted statement is or may be prepared, so
// that names matter.
func (s *session) tracking() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.prepared) > 0 || len(s.portals) > 0 ||
		len(s.ledger.pendingStatements) > 0 || len(s.ledger.pendingPortals) > 0
}

func (s *session) takeQuery(size int) error {
	if s.server.config.Handler != nil && size <= maxBuffered {
		message, err := s.in.peek(size)
		if err != nil {
			return err
		}
		if rewrite.MayBeOurs(message[headerSize:]) {
			b := body{rest: message[headerSize:]}
			if text := b.text(); !b.bad {
				return s.takeSuspect(text, size)
			}
		}
	}
	s.batch = batch{}
	s.owe(owesQuery, nil)
	return s.pass(size)
}

// takeSuspect handles a Query whose text has a word of ours.
func (s *session) takeSuspect(text string, size int) error {
	script, refusal := s.read(text)
	switch {
	case refusal != nil:
		s.batch = batch{}
		s.owe(owesQuery, &note{replace: refusal.diagnostic, replaceFrom: refusal.from})
		return s.pass(size)
	case !script.hasOurs():
		s.batch = batch{}
		s.owe(owesQuery, nil)
		return s.pass(size)
	}
	return s.intercept(size, func() error {
		s.in.take(size)
		return s.runScript(text, script)
	})
}

func (s *session) takeParse(size int) error {
	s.batch.open = true
	if s.server.config.Handler == nil || size > maxBuffered {
		return s.passParse(size)
	}
	message, err := s.in.peek(size)
	if err != nil {
		return err
	}
	b := body{rest: message[headerSize:]}
	if b.skipText(); !rewrite.MayBeOurs(b.rest) {
		return s.passParse(size)
	}
	b = body{rest: message[headerSize:]}
	name, text := b.text(), b.text()
	if b.bad {
		s.owe(owesParse, nil)
		return s.pass(size)
	}
	script, refusal := s.read(text)
	if refusal == nil && script.hasOurs() && len(script) > 1 {
		refusal = &refused{diagnostic: pgdiag.New(syntaxError, "cannot insert multiple commands into a prepared statement")}
	}
	switch {
	case refusal != nil:
		s.owe(owesParse, &note{replace: refusal.diagnostic, replaceFrom: refusal.from})
		return s.pass(size)
	case !script.hasOurs():
		return s.passParse(size)
	}
	if declared, ok := parseDeclared(b.rest); ok && (script[0].hasParameters() || rewrite.IsOursByTarget(script[0].ours)) {
		return s.intercept(size, func() error {
			s.in.take(size)
			return s.prepare(name, script[0], declared)
		})
	}
	s.owe(owesParse, &note{
		statementName: name,
		prepared:      &prepared{statement: script[0].ours, shift: script[0].shift, shadow: script[0].ours.Shadow()},
		mayBeOurs:     true,
	})
	shadow := parseMessage(name, script[0].ours.Shadow(), b.rest)
	s.in.take(size)
	_, err = s.up.Write(shadow)
	return err
}

// passParse forwards a native Parse. Its name is noted, which may take the
// place of an intercepted statement's.
func (s *session) passParse(size int) error {
	var n *note
	if s.tracking() {
		message, err := s.in.peek(min(size, maxNames))
		if err != nil {
			return err
		}
		b := body{rest: message[headerSize:]}
		n = &note{statementName: b.text()}
	}
	s.owe(owesParse, n)
	return s.pass(size)
}

func (s *session) takeBind(size int) error {
	s.batch.open = true
	switch {
	case !s.tracking():
		s.owe(owesBind, nil)
		return s.pass(size)
	case size > maxBuffered:
		if s.inLoop {
			return errNotHere
		}
		return s.takeHugeBind(size)
	}
	message, err := s.in.peek(size)
	if err != nil {
		return err
	}
	bind := parseBind(message[headerSize:])
	s.mu.Lock()
	bind.mayBeOurs = s.prepared[bind.statementName] != nil || s.ledger.pendingStatements[bind.statementName] > 0
	if bind.mayBeOurs {
		bind.bind = bytes.Clone(message[headerSize:])
	}
	s.ledger.sent(owesBind, bind)
	s.mu.Unlock()
	return s.pass(size)
}

// takeHugeBind passes a Bind on that is not held in memory. One of ours is
// refused.
func (s *session) takeHugeBind(size int) error {
	message, err := s.in.peek(maxNames)
	if err != nil {
		return err
	}
	b := body{rest: message[headerSize:]}
	n := &note{portalName: b.text(), statementName: b.text()}
	s.mu.Lock()
	ours := s.prepared[n.statementName] != nil || s.ledger.pendingStatements[n.statementName] > 0
	s.mu.Unlock()
	if !ours {
		s.owe(owesBind, n)
		return s.pass(size)
	}
	return s.intercept(size, func() error {
		if err := s.in.stream(discard{}, size); err != nil {
			return err
		}
		return s.fail(pgdiag.New("54000", "the parameters of the statement are too long").
			WithHint("They may have 16 MB together; load larger data into a table."))
	})
}

func (s *session) takeExecute(size int) error {
	s.batch.open = true
	if s.tracking() && size <= maxNames {
		message, err := s.in.peek(size)
		if err != nil {
			return err
		}
		b := body{rest: message[headerSize:]}
		name, limit := b.text(), b.int32()
		if !b.bad && s.portalMayBeOurs(name) {
			return s.intercept(size, func() error { return s.executePortal(name, limit, size) })
		}
	}
	s.batch.executed = true
	s.owe(owesExecute, nil)
	return s.pass(size)
}

func (s *session) portalMayBeOurs(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.portals[name] != nil || s.ledger.pendingPortals[name] > 0
}

func (s *session) takeClose(size int) error {
	s.batch.open = true
	var n *note
	if s.tracking() && size <= maxNames {
		message, err := s.in.peek(size)
		if err != nil {
			return err
		}
		b := body{rest: message[headerSize:]}
		n = &note{closes: b.uint8()}
		n.statementName = b.text()
		n.portalName = n.statementName
	}
	s.owe(owesClose, n)
	return s.pass(size)
}

func (s *session) takeSync(size int) error {
	s.batch = batch{}
	s.swallow = false
	s.owe(owesSync, nil)
	if err := s.pass(size); err != nil {
		return err
	}
	return s.closeLeftover()
}

// awaitRoom waits while the backend owes too many answers.
func (s *session) awaitRoom() error {
	s.mu.Lock()
	full := s.ledger.size() >= maxOwed
	s.mu.Unlock()
	if !full {
		return nil
	}
	if s.inLoop {
		return errNotHere
	}
	if err := s.up.Flush(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.ledger.size() >= maxOwed && !s.ledger.copyIn {
		if s.lost {
			return errBackendLost
		}
		s.changed.Wait()
	}
	return nil
}

// beforeClientRead runs before each read of the client that may block.
func (s *session) beforeClientRead() error {
	if err := s.up.Flush(); err != nil {
		return err
	}
	if !s.in.atBoundary() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pumping && !s.ledger.copyIn:
		return errCopyOver
	case s.server.draining.Load() && s.isIdle():
		return errDraining
	}
	s.reading = !s.pumping && !s.swallow && !s.leftover
	return nil
}

// afterClientRead runs after each of those reads.
func (s *session) afterClientRead() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = false
	if s.parked {
		return errParked
	}
	return nil
}

// isIdle reports that the client waits for nothing and has nothing open, or
// has not logged in yet; the caller holds mu.
func (s *session) isIdle() bool {
	if s.status == 0 {
		return !s.unscanned
	}
	return s.ledger.settled() && !s.ledger.skipping && s.status == statusIdle && !s.batch.open && !s.swallow
}
