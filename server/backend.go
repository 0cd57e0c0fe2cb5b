package server

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// maxInjectedRow bounds a message that an injected statement takes: its rows
// are catalogs and bookkeeping.
const maxInjectedRow = 64 << 20

// maxWhole is the longest message of the backend that is looked at as a whole
// before it is passed on. Only rows, COPY data, row descriptions, notices and
// errors can be longer; those stream.
const maxWhole = 64 << 10

// maxSettingName is how far into a ParameterStatus that is longer than maxWhole
// its name is looked for.
const maxSettingName = 256

var errTooLong = errors.New("message for an injected statement too long")

// relayBackend passes the backend's messages on until the connection ends, or
// in the loop until there are no more bytes.
func (s *session) relayBackend() error {
	if s.from.rest > 0 {
		if err := s.relayUnread(s.from.rest); err != nil {
			return err
		}
	}
	for {
		if n := s.from.run(msgDataRow, msgCopyData); n > 0 && s.isPassedUnread(msgDataRow) {
			if err := s.relayUnread(n); err != nil {
				return err
			}
			continue
		}
		typ, size, err := s.from.header()
		if err != nil {
			return err
		}
		if err := s.relayMessage(typ, size); err != nil {
			return err
		}
	}
}

// relayUnread passes the next n bytes on, which end where a message does.
func (s *session) relayUnread(n int) error {
	s.out.Lock()
	s.inFrame = true
	defer func() {
		s.inFrame = false
		s.out.Unlock()
	}()
	return s.from.stream(s.out.w, n)
}

// relayMessage passes one message on, or does with it what its note says.
func (s *session) relayMessage(typ byte, size int) error {
	s.out.Lock()
	s.inFrame = true
	defer func() {
		s.inFrame = false
		s.out.Unlock()
	}()
	if s.isPassedUnread(typ) {
		return s.from.stream(s.out.w, size)
	}
	whole, err := s.isWhole(size)
	if err != nil {
		return err
	}
	if !whole {
		// An injected statement never gets here, nothing else needs the body
		// but the name of a setting.
		seen := headerSize
		if typ == msgParameterStatus {
			seen += maxSettingName
		}
		head, err := s.from.peek(seen)
		if err != nil {
			return err
		}
		s.judge(typ, head)
		if typ == msgParameterStatus && s.out.held != nil {
			// It follows what is held, as a shorter one does in inOrder.
			if _, err := s.out.w.Write(s.out.held); err != nil {
				return err
			}
			s.out.held = nil
		}
		return s.from.stream(s.out.w, size)
	}
	message, err := s.from.peek(size)
	if err != nil {
		return err
	}
	_, err = s.out.w.Write(s.judge(typ, message))
	s.from.take(size)
	return err
}

// isPassedUnread says of a message's type that its content changes nothing.
func (s *session) isPassedUnread(typ byte) bool {
	if typ == msgAuthentication {
		return false
	}
	if s.unscanned {
		return true
	}
	if typ != msgDataRow && typ != msgCopyData {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.injecting
}

func (s *session) isWhole(size int) (bool, error) {
	if size <= maxWhole {
		return true, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.injecting && size > maxInjectedRow {
		return false, errTooLong
	}
	return s.injecting, nil
}

// judge books a message and returns what the client gets of it. The caller
// holds out, so that nobody can write to the client between the two.
func (s *session) judge(typ byte, message []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.changed.Broadcast()
	content := message[headerSize:]
	switch typ {
	case msgNoticeResponse:
		return message
	case msgNotificationResponse:
		return s.inOrder(message)
	case msgParameterStatus:
		s.setParameter(content)
		return s.judgeSetting(message)
	case msgBackendKeyData:
		s.cancelKey = bytes.Clone(content)
		return message
	case msgAuthentication:
		if s.upstreamIsTLS() {
			return withoutChannelBinding(message)
		}
		return message
	case msgErrorResponse:
		return s.judgeError(message)
	}
	if s.recounting != nil {
		passed, done := s.recounting.judge(typ, message)
		if typ == msgReadyForQuery && len(content) > 0 {
			s.status = content[0]
		}
		if typ == msgReadyForQuery && passed != nil {
			passed = append(s.settings.tell(), passed...)
		}
		if done {
			s.recounting = nil
		}
		return passed
	}
	switch typ {
	case msgReadyForQuery:
		return s.judgeReady(message)
	}
	d, paid := s.ledger.answered(typ)
	if paid && d.kind == owesExecute {
		s.noteExecuted(typ, content)
	}
	if d.note == nil {
		return message
	}
	if paid {
		s.paid(d)
	}
	switch {
	case d.note.sink != nil:
		d.note.sink.take(typ, content)
		return nil
	case d.note.quiet && isQuiet(typ):
		return nil
	case d.note.unseen && (typ == msgCommandComplete || typ == msgEmptyQueryResponse):
		return nil
	case d.note.hold && typ == msgCommandComplete:
		s.out.held = bytes.Clone(message)
		return nil
	}
	return message
}

// noteExecuted keeps what an Execute means for the transaction, of which the
// next ReadyForQuery may be far; the caller holds mu.
func (s *session) noteExecuted(typ byte, content []byte) {
	switch {
	case typ == msgPortalSuspended:
		s.pipelining = true
	case typ == msgCommandComplete && controlsTransaction(content):
		s.pipelining = false
		if s.status != statusIdle {
			// It has ended the block, or gone back to a savepoint in it.
			s.status, s.unsure = statusInBlock, true
		}
	case typ == msgCommandComplete:
		s.pipelining = !commitsAtOnce(content)
	}
}

// commitsAtOnce reports the tag of a statement that Postgres commits when it has
// run, not at the next Sync, since it must be alone in its transaction. Those
// that are so and begin another transaction themselves, as VACUUM does, leave
// that one open. (A tag does not tell DROP INDEX CONCURRENTLY of no index, nor
// whether a subscription has a slot: they are taken for the more usual.)
func commitsAtOnce(tag []byte) bool {
	tag, _ = bytes.CutSuffix(tag, []byte{0})
	switch string(tag) {
	case "CREATE DATABASE", "DROP DATABASE", "CREATE TABLESPACE", "DROP TABLESPACE", "ALTER SYSTEM", "DISCARD ALL":
		return true
	}
	return false
}

// controlsTransaction reports the tag of a statement that begins or ends a
// transaction block or is about a savepoint.
func controlsTransaction(tag []byte) bool {
	tag, _ = bytes.CutSuffix(tag, []byte{0})
	switch string(tag) {
	case "BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE",
		"PREPARE TRANSACTION", "COMMIT PREPARED", "ROLLBACK PREPARED":
		return true
	}
	return false
}

// inOrder returns what reports the outcome of a transaction for the client, or
// keeps it behind the CommandComplete that is being held back; the caller holds
// out.
func (s *session) inOrder(message []byte) []byte {
	if s.out.held == nil {
		return message
	}
	s.out.held = append(s.out.held, message...)
	return nil
}

// isQuiet reports an answer that only the extended protocol has.
func isQuiet(typ byte) bool {
	switch typ {
	case msgParseComplete, msgBindComplete, msgCloseComplete, msgParameterDescription, msgNoData:
		return true
	}
	return false
}

// judgeError books an ErrorResponse; the caller holds out and mu.
func (s *session) judgeError(message []byte) []byte {
	d, ok := s.ledger.failed()
	s.planFailed = ok && d.kind == owesBind
	s.out.held = nil
	if s.pumping {
		s.tapClient()
	}
	reported := decodeError(message[headerSize:])
	if isFatal(reported) {
		s.farewell = true
	}
	if !ok || d.note == nil {
		return message
	}
	n := d.note
	switch {
	case n.sink != nil:
		n.sink.failed = reported
		if isFatal(reported) {
			return message
		}
		return nil
	case n.replace != nil && reported.Code == cmp.Or(n.replaceCode, syntaxError) && reported.Position >= n.replaceFrom:
		return replaced(message, n.replace)
	case n.inQuery && reported.Code == activeTransaction:
		own := *reported
		own.Message = strings.Replace(own.Message, " be executed within a pipeline", " run inside a transaction block", 1)
		return replaced(message, &own)
	case n.shift > 0:
		return shiftPosition(message, n.shift)
	}
	return message
}

// replaced returns an ErrorResponse of ours for one of Postgres's.
func replaced(message []byte, d *pgdiag.Diagnostic) []byte {
	own, err := encode(nil, d.ErrorResponse())
	if err != nil {
		return message
	}
	return own
}

// judgeReady books a ReadyForQuery; the caller holds out and mu.
func (s *session) judgeReady(message []byte) []byte {
	unsure := s.unsure || s.status == statusIdle && s.pipelining
	if len(message) > headerSize {
		s.status = message[headerSize]
	}
	s.ready = true
	if s.status == statusIdle {
		s.pipelining = false
		clear(s.portals)
	}
	d, owed := s.ledger.ready()
	// A Sync leaves no block open but the client's.
	s.unsure = unsure && s.status == statusInBlock && d.kind != owesSync
	if !owed && s.inScript {
		s.extraReady++
		return nil
	}
	if d.kind == owesQuery && len(s.prepared) > 0 {
		delete(s.prepared, "") // as every Query does
	}
	if s.server.draining.Load() || s.pumping {
		s.tapClient()
	}
	if d.note != nil && d.note.sink != nil {
		return nil
	}
	before := append(s.out.held, s.settings.tell()...)
	s.out.held = nil
	if len(before) > 0 {
		return append(before, message...)
	}
	return message
}

// paid records what a completed message means for intercepted statements; the
// caller holds mu.
func (s *session) paid(d debt) {
	n := d.note
	if n.sink != nil {
		return
	}
	switch d.kind {
	case owesParse:
		delete(s.prepared, n.statementName)
		if n.prepared != nil {
			s.prepared[n.statementName] = n.prepared
		}
	case owesBind:
		delete(s.portals, n.portalName)
		if p := s.prepared[n.statementName]; p != nil {
			s.portals[n.portalName] = newPortal(p, n)
		}
	case owesClose:
		switch n.closes {
		case 'S':
			delete(s.prepared, n.statementName)
		case 'P':
			delete(s.portals, n.portalName)
		}
	}
}

// setParameter keeps the two settings that decide how a text is read; the
// caller holds mu.
func (s *session) setParameter(content []byte) {
	b := body{rest: content}
	switch name, value := b.text(), b.text(); name {
	case "standard_conforming_strings":
		s.backslashes = value == "off"
	case "client_encoding":
		switch strings.ToUpper(value) {
		case "BIG5", "GB18030", "GBK", "JOHAB", "SJIS", "SHIFT_JIS_2004", "UHC":
			s.unsafeText = true
		default:
			s.unsafeText = false
		}
	}
}

// beforeBackendRead sends what has been passed on before the backend is read
// again. It may leave the rest to the loop.
func (s *session) beforeBackendRead() error {
	if s.inFrame {
		return s.out.w.Flush()
	}
	if err := s.flushClient(); err != nil {
		return err
	}
	if s.from.atBoundary() && s.park() {
		return errParked
	}
	return nil
}

func (s *session) flushClient() error {
	s.out.Lock()
	defer s.out.Unlock()
	return s.out.w.Flush()
}

// withoutChannelBinding removes from AuthenticationSASL the mechanism that
// binds to Postgres's certificate, which the client does not see.
func withoutChannelBinding(message []byte) []byte {
	const authenticationSASL = 10
	b := body{rest: message[headerSize:]}
	if b.int32() != authenticationSASL {
		return message
	}
	kept := bytes.Clone(message[:headerSize+4])
	for {
		mechanism := b.text()
		if b.bad || mechanism == "" {
			break
		}
		if mechanism != "SCRAM-SHA-256-PLUS" {
			kept = append(append(kept, mechanism...), 0)
		}
	}
	kept = append(kept, 0)
	binary.BigEndian.PutUint32(kept[1:], uint32(len(kept)-1))
	return kept
}
