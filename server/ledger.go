package server

import (
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// expectation is the kind of an answer that the backend owes.
type expectation uint8

const (
	owesStartup  expectation = iota // … ReadyForQuery
	owesQuery                       // … ReadyForQuery
	owesFunction                    // FunctionCallResponse ReadyForQuery
	owesSync                        // ReadyForQuery
	owesParse                       // ParseComplete
	owesBind                        // BindComplete
	owesDescribe                    // [ParameterDescription] RowDescription or NoData
	owesExecute                     // … CommandComplete, EmptyQueryResponse or PortalSuspended
	owesClose                       // CloseComplete
	endsCopy                        // nothing: CopyDone or CopyFail went out here
)

// endsReady reports that a ReadyForQuery ends the answer.
func (e expectation) endsReady() bool { return e <= owesSync }

// maxOwed is how many answers a session may owe before its client is no longer
// read. Postgres holds back at most one output buffer (8 KiB, so fewer than
// 2,000 answers), so the wait ends.
const maxOwed = 16 << 10

// note says what is to be done with an answer besides passing it on. Most
// answers have none.
type note struct {
	// sink takes the answer; the client does not see it.
	sink *result
	// quiet drops what a simple query does not show: ParseComplete,
	// BindComplete, CloseComplete, ParameterDescription and NoData.
	quiet bool
	// unseen drops CommandComplete and EmptyQueryResponse: an error is all that
	// is shown.
	unseen bool
	// hold keeps CommandComplete back until ReadyForQuery.
	hold bool
	// replace is what the client is told instead of Postgres's syntax error, or
	// its error with the SQLSTATE replaceCode, if that is at or after the
	// character replaceFrom.
	replace     *pgdiag.Diagnostic
	replaceFrom int
	replaceCode string
	// inQuery says that the statement is one of several of a Query, for which
	// Postgres words an error otherwise than for one of a pipeline.
	inQuery bool
	// shift is added to the position of an error.
	shift int

	// What a Parse, Bind or Close names, where an intercepted statement may
	// be involved.
	statementName, portalName string
	prepared                  *prepared // of a Parse of ours
	formats                   []int     // of a Bind: result formats
	bind                      []byte    // of a Bind that may be of ours: its content
	closes                    byte      // of a Close: 'S' or 'P'
	mayBeOurs                 bool      // counted in pending
}

// prepared is an intercepted statement that Postgres knows as its shadow.
type prepared struct {
	statement rewrite.Statement
	shift     int    // characters in front of the statement in the client's text
	shadow    string // what Postgres knows it as

	// Of a statement with parameters, its text and their types.
	text       string
	lexical    rewrite.Lexical
	parameters []parameter
}

type debt struct {
	kind expectation
	note *note
}

// ledger is the answers that the backend owes, oldest first, and what follows
// from errors and COPY for what is sent next. The session's mutex guards it.
type ledger struct {
	debts []debt
	head  int
	// skipping: an error was reported in the extended protocol, everything up
	// to the next Sync is skipped by the backend, unanswered.
	skipping bool
	// copyIn: the backend takes data until CopyDone or CopyFail and answers
	// neither Sync nor Flush.
	copyIn bool
	// copying: a COPY FROM has begun and has not been answered.
	copying bool
	// copyFailed: the last COPY FROM ended in an error.
	copyFailed bool
	// pending counts the unanswered Parses, by statement, and Binds, by
	// portal, that may be of an intercepted statement.
	pendingStatements, pendingPortals map[string]int
}

func newLedger() ledger {
	return ledger{pendingStatements: map[string]int{}, pendingPortals: map[string]int{}}
}

func (l *ledger) size() int { return len(l.debts) - l.head }

func (l *ledger) settled() bool { return l.size() == 0 }

func (l *ledger) first() (debt, bool) {
	if l.settled() {
		return debt{}, false
	}
	return l.debts[l.head], true
}

// sent records a message that goes out now.
func (l *ledger) sent(kind expectation, n *note) {
	switch {
	case l.copyIn:
		l.copyIn = kind != endsCopy
		return
	case kind == endsCopy && l.settled():
		return // Postgres ignores it outside COPY
	case l.skipping && kind != owesSync:
		return
	}
	l.skipping = false
	if n != nil && n.mayBeOurs {
		if kind == owesParse {
			l.pendingStatements[n.statementName]++
		} else {
			l.pendingPortals[n.portalName]++
		}
	}
	l.debts = append(l.debts, debt{kind, n})
}

// answered takes a message that is neither an error nor ReadyForQuery and
// returns the debt it belongs to, and whether it is now paid.
func (l *ledger) answered(typ byte) (d debt, paid bool) {
	d, ok := l.first()
	if !ok {
		return debt{kind: owesQuery}, false
	}
	switch typ {
	case msgParseComplete:
		paid = d.kind == owesParse
	case msgBindComplete:
		paid = d.kind == owesBind
	case msgCloseComplete:
		paid = d.kind == owesClose
	case msgNoData, msgRowDescription:
		paid = d.kind == owesDescribe
	case msgCommandComplete, msgEmptyQueryResponse, msgPortalSuspended:
		l.copying = false
		paid = d.kind == owesExecute
	case msgCopyInResponse:
		l.startCopyIn()
	}
	if paid {
		l.pop()
	}
	return d, paid
}

// startCopyIn: whatever was sent after the COPY, up to the end of its data,
// has been or will be read as part of it.
func (l *ledger) startCopyIn() {
	kept := l.debts[:l.head+1]
	l.copyIn, l.copying, l.copyFailed = true, true, false
	for _, d := range l.debts[l.head+1:] {
		switch {
		case l.copyIn && d.kind == endsCopy:
			l.copyIn = false
		case l.copyIn && d.kind == owesSync:
		default:
			kept = append(kept, d)
		}
	}
	l.debts = kept
}

// failed takes an error and returns the debt it belongs to. In the extended
// protocol it cancels every debt up to the next Sync.
func (l *ledger) failed() (debt, bool) {
	l.copyFailed = l.copying
	l.copyIn, l.copying = false, false
	first, ok := l.first()
	if !ok || first.kind.endsReady() {
		return first, ok
	}
	for {
		d, ok := l.first()
		if !ok {
			l.skipping = true
			return first, true
		}
		if d.kind == owesSync {
			return first, true
		}
		l.pop()
	}
}

// ready takes a ReadyForQuery and returns the debt it pays.
func (l *ledger) ready() (debt, bool) {
	l.copyIn, l.skipping = false, false
	for {
		d, ok := l.first()
		if !ok {
			return debt{}, false
		}
		l.pop()
		if d.kind.endsReady() {
			return d, true
		}
	}
}

// nextReady returns the debt that the next ReadyForQuery pays.
func (l *ledger) nextReady() (debt, bool) {
	for _, d := range l.debts[l.head:] {
		if d.kind.endsReady() {
			return d, true
		}
	}
	return debt{}, false
}

// pop drops the oldest debt and the ends of COPY data that nothing took.
func (l *ledger) pop() {
	for {
		l.forget(l.debts[l.head])
		l.debts[l.head] = debt{}
		l.head++
		if l.settled() || l.debts[l.head].kind != endsCopy {
			break
		}
	}
	switch {
	case l.settled() && cap(l.debts) > 256:
		l.debts, l.head = nil, 0 // a session at rest keeps no long pipeline
	case l.settled():
		l.debts, l.head = l.debts[:0], 0
	case l.head >= 1024 && 2*l.head >= len(l.debts):
		n := copy(l.debts, l.debts[l.head:])
		clear(l.debts[n:])
		l.debts, l.head = l.debts[:n], 0
	}
}

func (l *ledger) forget(d debt) {
	if d.note == nil || !d.note.mayBeOurs {
		return
	}
	counts, name := l.pendingPortals, d.note.portalName
	if d.kind == owesParse {
		counts, name = l.pendingStatements, d.note.statementName
	}
	if counts[name]--; counts[name] == 0 {
		delete(counts, name)
	}
}
