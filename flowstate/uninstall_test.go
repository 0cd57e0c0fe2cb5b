package flowstate_test

import (
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
)

func TestNothingIsUninstalledWhileATableIsRefreshed(t *testing.T) {
	t.Parallel()
	url := installed(t)
	refreshing := connect(t, url, "")
	refreshing.must("create table public.busy (a int)")
	refreshing.must("select pg_advisory_lock(1920430194, 'public.busy'::regclass::oid::int)") // [flowstate.LockKeys]
	s := connect(t, url, "")
	refused(t, flowstate.Uninstall(t.Context(), s.conn), "55006", "cannot drop schema rwproxy while tables are being refreshed")
	refreshing.must("select pg_advisory_unlock_all()", "select pg_advisory_lock_shared(1920430194, -1)") // as one who waits for changes
	ok(t, flowstate.Uninstall(t.Context(), s.conn))
}

// Everybody else who wants the table would wait behind it.
func TestAnUninstallationDoesNotWaitForLongForWhoUsesATable(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	s.dailyTable()
	reading := connect(t, url, "")
	reading.must("begin", "select from rwproxy.flows")
	refused(t, flowstate.Uninstall(t.Context(), s.conn), "55P03", "cannot drop schema rwproxy while tables are in use")
	reading.must("commit")
	ok(t, flowstate.Uninstall(t.Context(), s.conn))
}
