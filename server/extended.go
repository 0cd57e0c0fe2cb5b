package server

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// portal is a bound statement of ours.
type portal struct {
	prepared *prepared
	name     string // of the statement
	formats  []int  // result formats, as Bind gave them
	bind     []byte // the content of the Bind, if the statement has parameters
	// statement is what runs: the prepared one, with its parameters filled in.
	statement rewrite.Statement
	filledIn  *rewrite.Translation // its text; nil without parameters
	constants *strings.Replacer    // of what stands for a parameter by its name
	// outcome is set once the portal was executed; rows before next have been
	// sent.
	outcome *Outcome
	next    int
}

func newPortal(of *prepared, bound *note) *portal {
	p := &portal{prepared: of, name: bound.statementName, formats: bound.formats, statement: of.statement}
	if len(of.parameters) > 0 {
		p.bind = bound.bind
	}
	return p
}

// parseMessage returns a Parse with the parameter types of another.
func parseMessage(name, query string, types []byte) []byte {
	size := headerSize + len(name) + 1 + len(query) + 1 + len(types)
	message := append(make([]byte, 0, size), msgParse, byte((size-1)>>24), byte((size-1)>>16), byte((size-1)>>8), byte(size-1))
	message = append(append(message, name...), 0)
	message = append(append(message, query...), 0)
	return append(message, types...)
}

// parseBind reads the names and result formats of a Bind. A malformed one is
// for Postgres to refuse.
func parseBind(content []byte) *note {
	b := body{rest: content}
	n := &note{portalName: b.text(), statementName: b.text()}
	b.take(2 * (b.int16() & 0xffff)) // parameter formats
	for range b.int16() & 0xffff {
		if size := b.int32(); size > 0 {
			b.take(size)
		}
	}
	for range b.int16() & 0xffff {
		if b.bad {
			break
		}
		n.formats = append(n.formats, b.int16())
	}
	return n
}

// executePortal handles an Execute of a portal that may be ours, when
// everything in front of it has been answered.
func (s *session) executePortal(name string, limit, size int) error {
	s.mu.Lock()
	p, status, pipelining := s.portals[name], s.status, s.pipelining
	s.mu.Unlock()
	if p == nil || status == statusAborted {
		return s.executeNatively(size)
	}
	if p.outcome != nil {
		s.in.take(size)
		if p.next == len(p.outcome.Rows) {
			return s.fail(pgdiag.New("55000", `portal "`+name+`" cannot be run`))
		}
		return s.sendRows(p, limit)
	}
	if p.name != "" {
		switch ours, refusal := s.stillOurs(p); {
		case s.ctx.Err() != nil:
			return errBackendLost
		case refusal != nil:
			s.in.take(size)
			return s.sendClient(refusal.ErrorResponse())
		case !ours:
			return s.executeNatively(size)
		}
	}
	switch refusal, err := s.fillIn(p); {
	case err != nil:
		return err
	case refusal != nil:
		s.in.take(size)
		return s.failJoined(p.refused(refusal))
	}
	if rewrite.RunsNatively(p.prepared.statement) || status != statusIdle || s.batch.executed || pipelining {
		return s.executeJoined(p, limit, size)
	}
	switch ends, err := s.endsPipeline(size); {
	case err != nil:
		return err
	case !ends:
		return s.executeJoined(p, limit, size)
	}
	s.in.take(size)
	return s.executeAlone(p, limit)
}

// followUp is how long a client that has sent Execute and waits for no answer
// is given to send what comes next.
const followUp = time.Second

// endsPipeline reports that nothing runs between the client's next message, of
// the given size, and its next Sync: it may then have a transaction of its own.
// Closing names runs nothing. A client that sends Flush, or for some time
// nothing, may go on with its pipeline.
func (s *session) endsPipeline(size int) (bool, error) {
	if err := s.up.Flush(); err != nil {
		return false, err
	}
	patience := time.Now().Add(followUp)
	for at := size; at < maxNames; {
		if had, err := s.readUntil(at+1, patience); !had || err != nil {
			return false, err
		}
		switch s.in.buf[s.in.r+at] {
		case msgSync:
			return true, nil
		case msgClose:
		default:
			return false, nil
		}
		if had, err := s.readUntil(at+headerSize, patience); !had || err != nil {
			return false, err
		}
		length := int32(binary.BigEndian.Uint32(s.in.buf[s.in.r+at+1:]))
		if length < 4 {
			return false, nil // an error, when its turn comes
		}
		at += 1 + int(length)
	}
	return false, nil
}

// readUntil reads the client ahead until n bytes are there to be taken; false
// if they are not at the given time.
func (s *session) readUntil(n int, patience time.Time) (bool, error) {
	// Lifted here and then looked at, so that no call is missed.
	defer func() { _ = s.client.SetReadDeadline(time.Time{}) }()
	for s.in.w-s.in.r < n {
		if err := s.client.SetReadDeadline(patience); err != nil {
			return false, err
		}
		switch err := s.in.read(); {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if !time.Now().Before(patience) {
				return false, nil
			}
		case err != nil:
			return false, err
		}
	}
	return true, nil
}

// stillOurs asks Postgres whether a named statement is the shadow that it was
// parsed as: DEALLOCATE and PREPARE in SQL text change names unseen.
func (s *session) stillOurs(p *portal) (bool, *pgdiag.Diagnostic) {
	stop := s.watch()
	defer stop()
	c := &injector{session: s, joined: true}
	rows, err := c.Query(s.ctx, "select from pg_catalog.pg_prepared_statements"+
		" where name = $1 and statement = $2 and not from_sql", p.name, p.prepared.shadow)
	if err != nil {
		return false, diagnose(err)
	}
	return len(rows) == 1, nil
}

func (s *session) executeNatively(size int) error {
	s.batch.executed = true
	s.owe(owesExecute, nil)
	return s.pass(size)
}

// executeJoined runs a statement inside the client's transaction.
func (s *session) executeJoined(p *portal, limit, size int) error {
	outcome, refusal, err := s.run(p.statement, true)
	if err != nil {
		return err
	}
	if refusal == nil && outcome.Forward {
		return s.executeNatively(size)
	}
	s.in.take(size)
	s.batch.executed = true
	if refusal != nil {
		return s.failJoined(p.refused(refusal))
	}
	p.outcome = &outcome
	return s.sendRows(p, limit)
}

// executeAlone runs a statement that may have a transaction of its own: the
// implicit one, in which nothing was executed, is ended first.
func (s *session) executeAlone(p *portal, limit int) error {
	stop := s.watch()
	r, err := s.inject(step{owesSync, &pgproto3.Sync{}})
	stop()
	if err != nil {
		return err
	}
	s.batch = batch{open: true}
	if r.failed != nil {
		s.swallow = true
		return s.sendClient(r.failed.ErrorResponse())
	}
	outcome, refusal, err := s.run(p.statement, false)
	if err != nil {
		return err
	}
	if refusal != nil {
		s.swallow = true
		return s.sendClient(p.refused(refusal).ErrorResponse())
	}
	p.outcome = &outcome
	return s.sendRows(p, limit)
}

// sendRows answers an Execute: rows up to its limit, then whether there are
// more.
func (s *session) sendRows(p *portal, limit int) error {
	rows := p.outcome.Rows[p.next:]
	suspended := limit > 0 && limit < len(rows)
	if suspended {
		rows = rows[:limit]
	}
	formatted, refusal, err := s.toFormats(p.outcome.Columns, rows, p.formats)
	switch {
	case err != nil:
		return err
	case refusal != nil:
		return s.failJoined(refusal)
	}
	answer, err := encodeRows(nil, formatted)
	if err != nil {
		return err
	}
	p.next += len(rows)
	var end pgproto3.Message = &pgproto3.CommandComplete{CommandTag: []byte(p.outcome.Tag)}
	if suspended {
		end = &pgproto3.PortalSuspended{}
	}
	answer, err = encode(answer, end)
	if err != nil {
		return err
	}
	return s.sendClientRaw(answer)
}
