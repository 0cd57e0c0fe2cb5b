package server

import (
	"slices"
	"testing"
)

// owed is the kinds of the answers that a ledger is waiting for.
func owed(l *ledger) []expectation {
	var kinds []expectation
	for _, d := range l.debts[l.head:] {
		kinds = append(kinds, d.kind)
	}
	return kinds
}

func sentAll(kinds ...expectation) *ledger {
	l := newLedger()
	for _, kind := range kinds {
		l.sent(kind, nil)
	}
	return &l
}

func wantOwed(t *testing.T, l *ledger, want ...expectation) {
	t.Helper()
	if got := owed(l); !slices.Equal(got, want) {
		t.Errorf("owed %v, want %v", got, want)
	}
}

func TestEachAnswerPaysItsOwnDebt(t *testing.T) {
	t.Parallel()
	l := sentAll(owesParse, owesBind, owesDescribe, owesExecute, owesClose, owesSync)
	for _, typ := range []byte("12") {
		if _, paid := l.answered(typ); !paid {
			t.Errorf("%q pays nothing", typ)
		}
	}
	if _, paid := l.answered(msgParameterDescription); paid {
		t.Error("ParameterDescription ends a Describe")
	}
	for _, typ := range []byte("nC3") {
		if _, paid := l.answered(typ); !paid {
			t.Errorf("%q pays nothing", typ)
		}
	}
	wantOwed(t, l, owesSync)
	l.ready()
	wantOwed(t, l)
}

func TestAnErrorCancelsDebtsUpToTheNextSync(t *testing.T) {
	t.Parallel()
	l := sentAll(owesParse, owesQuery, owesBind, owesSync, owesParse)
	l.failed()
	wantOwed(t, l, owesSync, owesParse)
	if l.skipping {
		t.Error("the Sync has been sent, nothing more is skipped")
	}
}

func TestAfterAnErrorWithoutSyncNothingIsOwedUntilSync(t *testing.T) {
	t.Parallel()
	l := sentAll(owesParse, owesBind)
	l.failed()
	l.sent(owesExecute, nil)
	l.sent(owesQuery, nil)
	wantOwed(t, l)
	l.sent(owesSync, nil)
	l.sent(owesParse, nil)
	wantOwed(t, l, owesSync, owesParse)
}

func TestAnErrorOfAQueryLeavesItsReadyForQueryOwed(t *testing.T) {
	t.Parallel()
	l := sentAll(owesQuery, owesQuery)
	l.failed()
	wantOwed(t, l, owesQuery, owesQuery)
	l.ready()
	wantOwed(t, l, owesQuery)
}

func TestSyncsInsideCopyDataOweNothing(t *testing.T) {
	t.Parallel()
	l := sentAll(owesExecute, owesSync)
	l.answered(msgCopyInResponse)
	wantOwed(t, l, owesExecute)
	l.sent(owesSync, nil)
	if !l.copyIn {
		t.Error("a Sync ends COPY data")
	}
	l.sent(endsCopy, nil)
	l.sent(owesSync, nil)
	wantOwed(t, l, owesExecute, owesSync)
}

func TestCopyDataThatWasSentAheadEndsAtItsMark(t *testing.T) {
	t.Parallel()
	l := sentAll(owesQuery, endsCopy, owesQuery, endsCopy)
	l.answered(msgCopyInResponse)
	if l.copyIn {
		t.Error("the end of the data has been sent")
	}
	wantOwed(t, l, owesQuery, owesQuery, endsCopy)
	l.ready()
	l.ready()
	wantOwed(t, l)
}

func TestTheLedgerForgetsWhatIsPaid(t *testing.T) {
	t.Parallel()
	l := newLedger()
	for range 100_000 {
		l.sent(owesParse, &note{statementName: "s", mayBeOurs: true})
		l.sent(owesSync, nil)
		l.answered(msgParseComplete)
		l.sent(owesBind, &note{portalName: "p", mayBeOurs: true})
		l.ready()
		l.answered(msgBindComplete)
	}
	if len(l.debts) > 0 || cap(l.debts) > 4096 || len(l.pendingStatements) > 0 || len(l.pendingPortals) > 0 {
		t.Errorf("kept: %d debts of %d, %v, %v", len(l.debts), cap(l.debts), l.pendingStatements, l.pendingPortals)
	}
}
