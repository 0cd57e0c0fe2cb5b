package flowstate_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// ownServer starts a server on a data directory, of a new database cluster if
// there is none in it.
func ownServer(t *testing.T, data string) *embedded.Postgres {
	t.Helper()
	server, err := embedded.Start(t.Context(), embedded.Config{
		DataDir: data, Trust: true, Settings: map[string]string{"fsync": "off"},
	})
	ok(t, err)
	t.Cleanup(func() { ok(t, server.Stop(context.Background())) })
	return server
}

// copyOf returns a directory with a copy of the data of a server that has
// stopped.
func copyOf(t *testing.T, data string) string {
	t.Helper()
	to := pgtest.TempDir(t)
	if output, err := exec.CommandContext(t.Context(), "cp", "-Rp", data, to).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return to
}

// spend uses up the numbers of so many transactions.
func (s *session) spend(number string) {
	s.t.Helper()
	s.must("do $$ begin for i in 1.." + number + " loop perform pg_current_xact_id(); commit; end loop; end $$")
}

// restoredOn restores a dump of the database on another server.
func (c *captured) restoredOn(server *embedded.Postgres) *captured {
	c.t.Helper()
	connect(c.t, server.URL("postgres"), "").must("create database restored")
	url := server.URL("restored")
	restoreInto(c.t, c.session, c.url, url)
	r := &captured{session: connect(c.t, url, ""), url: url, service: newService(c.t, url)}
	target := r.lookup("daily")
	r.oid, r.view = target.OID, target.Table.Flow.ViewOID
	return r
}

// elsewhere runs a test with a flow of one server, and another server that its
// database is to be restored on: the numbers of transactions are lower there,
// or higher, or lower and the data once was that of the first one.
func elsewhere(t *testing.T, test func(t *testing.T, c *captured, server *embedded.Postgres)) {
	for _, numbers := range []string{"lower", "higher", "lower in a copy"} {
		t.Run(strings.ReplaceAll(numbers, " ", "_"), func(t *testing.T) {
			t.Parallel()
			data, others := pgtest.TempDir(t), pgtest.TempDir(t)
			if numbers == "lower in a copy" {
				server, err := embedded.Start(t.Context(), embedded.Config{DataDir: data, Trust: true})
				ok(t, err)
				ok(t, server.Stop(t.Context()))
				others = copyOf(t, data)
			}
			server, other := ownServer(t, data), ownServer(t, others)
			busy := server
			if numbers == "higher" {
				busy = other
			}
			connect(t, busy.URL("postgres"), "").spend("20000")
			connect(t, server.URL("postgres"), "").must("create database original")
			url := server.URL("original")
			ok(t, flowstate.Install(t.Context(), connect(t, url, "").conn))
			test(t, newCapturedIn(t, url, sumOfSource, "create table source (day date, amount int)"), other)
		})
	}
}

// What is written during the first refresh of a restored flow is told by the
// second one.
func TestChangesDuringTheFirstRefreshOfARestoredFlowAreKept(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, c *captured, server *embedded.Postgres) {
		c.capture("source", []string{"day"}, []string{"day", "amount"})
		c.take()
		c.must("insert into source values ('2024-01-01', 1)")

		r := c.restoredOn(server)
		if changes := r.changes(); !changes.ClusterChanged {
			t.Errorf("the cursor of another server is used: %+v", changes)
		}
		r.capture("source", []string{"day"}, []string{"day", "amount"})
		r.must("begin")
		r.lock(r.oid)
		id := r.start(r.oid, flowstate.KindWindow)
		r.plan(id, "true")
		connect(t, r.url, "").must("insert into source values ('2024-01-02', 1)")
		r.collect()
		ok(t, flowstate.Finish(t.Context(), r, id, flowstate.Outcome{}))
		r.must("commit")
		r.unlock(r.oid)
		if got := r.changes().Sources[0]; !got.Tracked || got.Rows != 1 {
			t.Errorf("after the first refresh: %+v", got)
		}
		r.take()
		r.collect()
		if got := r.changes().Sources[0]; !got.Tracked || got.Rows != 0 {
			t.Errorf("after the second refresh: %+v", got)
		}
	})
}

// A refresh that cannot begin the log of a restored source anew leaves in it
// what no snapshot of the new server may ever see.
func TestATriggerDoesNotFireForWhatCameWithADump(t *testing.T) {
	t.Parallel()
	elsewhere(t, func(t *testing.T, c *captured, server *embedded.Postgres) {
		at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
		fires := func(c *captured, want int) (next time.Time) {
			t.Helper()
			next, err := flowstate.RunTriggers(t.Context(), c, at)
			ok(t, err)
			ready := c.ready()
			if len(ready) != want {
				t.Fatalf("at %s %d refreshes may begin, want %d", at.Format(time.TimeOnly), len(ready), want)
			}
			for _, id := range ready {
				c.runQueued(c.oid, id)
			}
			return next
		}
		c.capture("source", []string{"day"}, []string{"day", "amount"})
		c.take()
		c.must("update rwproxy.streaming_table set schedule = 'TRIGGER ON UPDATE'",
			"insert into rwproxy.schedule (table_id, text) select id, schedule from rwproxy.streaming_table")
		fires(c, 0)
		c.must("insert into source values ('2024-01-01', 1)")

		r := c.restoredOn(server)
		fires(r, 1)
		for range 2 {
			at = at.Add(10 * time.Second)
			if next := fires(r, 0); !next.IsZero() {
				t.Errorf("at %s the next look is to be at %s", at.Format(time.TimeOnly), next.Format(time.TimeOnly))
			}
		}
		r.capture("source", []string{"day"}, []string{"day", "amount"})
		fires(r, 0)
		r.must("insert into source values ('2024-01-02', 1)")
		fires(r, 1)
		fires(r, 0)
	})
}

// The functions that read with a role's rights are named after its OID, which is
// another role's where a dump is restored.
func TestARoleWithTheOIDOfAnotherOneHasAReader(t *testing.T) {
	t.Parallel()
	data := pgtest.TempDir(t)
	server, other := ownServer(t, data), ownServer(t, pgtest.TempDir(t))
	admin := connect(t, server.URL("postgres"), "")
	admin.must("create role alice", "create role bob", "create database original")
	connect(t, other.URL("postgres"), "").must("create role bob", "create role alice")
	url := server.URL("original")
	ok(t, flowstate.Install(t.Context(), connect(t, url, "").conn))
	c := newCapturedIn(t, url, sumOfSource, "create table source (day date, amount int)")
	c.must("select rwproxy.ensure_reader('alice'::regrole)")
	r := c.restoredOn(other)
	for _, role := range []string{"bob", "alice"} {
		r.must("select rwproxy.ensure_reader('" + role + "'::regrole)")
	}
	const readers = "select proowner::regrole, proname = 'read_as_' || proowner, proacl from pg_proc where proname ^@ 'read_as_' order by proowner::regrole::text"
	if diff := cmp.Diff([]string{"alice|t|{alice=X/alice}", "bob|t|{bob=X/bob}"}, r.rows(readers)); diff != "" {
		t.Error(diff)
	}
	r.must("alter view "+r.lookup("daily").Table.Flow.View+" owner to alice",
		"do $$ begin execute format('alter function rwproxy_log.read_as_%s rename to read_as_1', 'alice'::regrole::oid); end $$")
	r.collect()
	if got := r.rows(readers); len(got) > 0 {
		t.Errorf("nobody uses %v", got)
	}
}

// Of a table that was dropped past rwproxy a dump has the number of its OID,
// which is another table's where it is restored.
func TestATableIsNotTakenForOneThatWasDroppedBeforeTheDump(t *testing.T) {
	t.Parallel()
	server, other := ownServer(t, pgtest.TempDir(t)), ownServer(t, pgtest.TempDir(t))
	connect(t, server.URL("postgres"), "").must("select lo_create(0) from generate_series(1, 20000)", "create database original")
	url := server.URL("original")
	s := connect(t, url, "")
	ok(t, flowstate.Install(t.Context(), s.conn))
	oid := s.dailyTable()
	s.must("drop table daily")

	connect(t, other.URL("postgres"), "").must("create database restored")
	restored := other.URL("restored")
	r := connect(t, restored, "")
	r.must(fmt.Sprintf("do $$ begin while lo_create(0) < %d loop end loop; end $$", oid-1), "create table innocent (day date, amount bigint)")
	if got := r.value("select 'innocent'::regclass::oid"); got != fmt.Sprint(oid) {
		t.Fatalf("the OID is %s and not %d, the test shows nothing", got, oid)
	}
	restoreInto(t, s, url, restored)
	r.lock(oid)
	if _, err := flowstate.Start(t.Context(), r, flowstate.Refresh{Target: oid, Kind: flowstate.KindWindow, Cause: flowstate.CauseStatement}); pgdiag.Code(err) != "42809" {
		t.Errorf("a refresh of it: %v", err)
	}
	r.unlock(oid)
	ok(t, flowstate.Sweep(t.Context(), r))
	if got := r.value("select count(*) from rwproxy.streaming_table"); got != "0" {
		t.Errorf("%s streaming tables after a sweep", got)
	}
	r.must("table innocent")
}
