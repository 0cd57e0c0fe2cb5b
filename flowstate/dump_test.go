package flowstate_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// copyDatabase copies a database into a fresh one by pg_dump and pg_restore,
// and returns the URL of the copy.
func copyDatabase(t *testing.T, s *session, url string) string {
	t.Helper()
	into := pgtest.Database(t)
	restoreInto(t, s, url, into)
	return into
}

// restoreInto copies a database into another one by pg_dump and pg_restore.
func restoreInto(t *testing.T, s *session, url, into string, options ...string) {
	t.Helper()
	bin := s.value("select setting from pg_config where name = 'BINDIR'")
	file := filepath.Join(t.TempDir(), "dump")
	for _, command := range []*exec.Cmd{
		exec.CommandContext(t.Context(), filepath.Join(bin, "pg_dump"), "--format=custom", "--file="+file, "--dbname="+url),
		exec.CommandContext(t.Context(), filepath.Join(bin, "pg_restore"), append(options, "--exit-on-error", "--dbname="+into, file)...),
	} {
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, output)
		}
	}
}

// A restore of much data takes a while, and an rwproxy looks in.
func TestWhatIsBeingRestoredIsLeftAlone(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	s.dailyTable()
	into := pgtest.Database(t)
	r := connect(t, into, "")
	for _, section := range []string{"pre-data", "data", "post-data"} {
		restoreInto(t, s, url, into, "--section="+section)
		err := flowstate.Install(t.Context(), r.conn)
		if section == "post-data" {
			ok(t, err)
		} else {
			refused(t, err, "55000", "schema rwproxy is not complete")
		}
	}
	r.refresh(r.lookup("daily").OID, flowstate.KindWindow, "true")
}

func TestFlowsSurviveDumpAndRestore(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	oid := s.dailyTable()
	s.refresh(oid, flowstate.KindWindow, "day > '2026-01-01'")
	s.lock(oid)
	s.start(oid, flowstate.KindWindow) // running while the dump is made

	restored := copyDatabase(t, s, url)
	r := connect(t, restored, "")
	target := r.lookup("daily")
	if target.OID == oid {
		t.Fatal("the OIDs are the same, the test shows nothing")
	}
	if target.Table == nil || target.Table.Flow.ViewOID == 0 || target.Table.LastRefresh == nil {
		t.Fatalf("got %+v", target.Table)
	}
	r.must("table " + target.Table.Flow.View)
	if got := r.rows("select state from rwproxy.refreshes order by requested_at"); len(got) != 2 || got[0] != "COMPLETED" || got[1] != "FAILED" {
		t.Errorf("history: %v", got)
	}
	r.refresh(target.OID, flowstate.KindWindow, "true")
	if got := r.value("select count(*) from rwproxy.event_log where message like '%has COMPLETED.'"); got != "2" {
		t.Errorf("%s completions in the log, want 2", got)
	}
	ok(t, flowstate.Install(t.Context(), r.conn))

	stranger := connect(t, restored, newRole(t, restored, "stranger"))
	_, err := stranger.Query(t.Context(), "table rwproxy.refresh")
	if got := pgdiag.Code(err); got != "42501" {
		t.Errorf("a stranger reads the restored tables: %v", err)
	}
	if got := len(stranger.rows("table rwproxy.refreshes")); got != 0 {
		t.Errorf("a stranger sees %d refreshes", got)
	}
}
