package flowstate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// prove stores a proof with one route for each query, which needs the named
// columns of source.
func (c *captured) prove(fingerprint string, columns []string, queries ...string) {
	c.t.Helper()
	source := flowstate.ProvedSource{Relation: c.oidOf("source")}
	for _, query := range queries {
		source.Routes = append(source.Routes, flowstate.ProvedRoute{
			Needs: []flowstate.LogColumns{{Relation: source.Relation, Columns: columns}},
			SQL:   strings.ReplaceAll(query, "{source}", fmt.Sprintf("{log:%d}", source.Relation)), LogsOnly: true,
		})
	}
	ok(c.t, c.service.StoreProof(c.t.Context(), c.conn.Config().Database, c.view, fingerprint, flowstate.StoredProof{
		Sources: []flowstate.ProvedSource{source}, Detail: json.RawMessage(`{"proved": true}`),
	}))
}

// keys returns what the changes of the only source lead to, in order.
func keys(c *flowstate.Changes) string {
	var tuples []string
	for _, tuple := range c.Sources[0].Keys {
		var values []string
		for _, v := range tuple {
			if v.Null {
				values = append(values, "null")
			} else {
				values = append(values, v.Text)
			}
		}
		tuples = append(tuples, strings.Join(values, "|"))
	}
	slices.Sort(tuples)
	return fmt.Sprint(tuples)
}

func TestChangesLeadToKeys(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int, note text)")
	c.capture("source", []string{"day", "amount"}, nil)
	if got := c.changes(); got.HasCursor || got.CursorFingerprint != "" || len(got.Sources) != 1 || !got.Sources[0].Tracked {
		t.Errorf("before the first refresh: %+v", got)
	}
	c.take()
	c.prove(c.changes().Fingerprint, []string{"day"}, "select distinct c1 from {source} as l order by c1")
	got := c.changes()
	want := &flowstate.Changes{
		HasCursor: true, Fingerprint: got.Fingerprint, CursorFingerprint: got.Fingerprint, Proof: json.RawMessage(`{"proved": true}`),
		TargetTracked: true,
		Sources:       []flowstate.SourceChanges{{OID: c.oidOf("source"), Name: "public.source", Tracked: true, Route: -1, Keys: [][]pgsession.Value{}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c.must("insert into source values ('2024-01-02', 1), ('2024-01-01', 1), ('2024-01-02', 3), (null, 4)")
	got = c.changes()
	if s := got.Sources[0]; s.Rows != 4 || !s.Changed || s.Route != 0 || keys(got) != "[2024-01-01 2024-01-02 null]" {
		t.Errorf("got %+v", s)
	}
	c.take()
	if got := c.changes(); got.Sources[0].Changed {
		t.Errorf("after a refresh: %+v", got)
	}
	c.must("truncate source")
	if got := c.changes(); !got.Sources[0].Changed || got.Sources[0].Route != -1 {
		t.Errorf("after TRUNCATE: %+v", got)
	}
}

func TestARouteReadsTablesWithTheAuthorsRights(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, "select s.day, sum(s.amount) as amount from source s join dim d on d.store = s.store group by s.day",
		"create table source (day date, store int, amount int)", "create table dim (store int, name text)")
	c.must("insert into source values ('2024-01-01', 1, 1), ('2024-01-02', 2, 1)", "insert into dim values (1, 'a'), (2, 'b')")
	c.capture("source", []string{"day", "store"}, nil)
	c.capture("dim", []string{"store"}, nil)
	author := newRole(t, c.url, "author")
	c.must("create schema hers authorization "+author, "grant select, trigger on source, dim to "+author)
	c.take()
	hop := fmt.Sprintf(`select distinct s.day from {log:%d} as l join (
		select day, store from public.source union all select c1, c2 from {log:%d} as o) as s on s.store = l.c1 order by 1`,
		c.oidOf("dim"), c.oidOf("source"))
	proof := flowstate.StoredProof{Sources: []flowstate.ProvedSource{{Relation: c.oidOf("dim"), Routes: []flowstate.ProvedRoute{{
		Needs: []flowstate.LogColumns{
			{Relation: c.oidOf("dim"), Columns: []string{"store"}}, {Relation: c.oidOf("source"), Columns: []string{"day", "store"}},
		},
		SQL: hop,
	}}}}}
	c.must("update dim set name = 'c' where store = 2", "delete from source where store = 2")
	for _, owner := range []string{"postgres", author} {
		c.must("alter view " + c.lookup("daily").Table.Flow.View + " owner to " + owner)
		_, err := c.service.EnsureCapture(t.Context(), c.conn.Config().Database, flowstate.CaptureRequest{
			View: c.view, Author: owner, Sources: []flowstate.CaptureSource{{OID: c.oidOf("dim"), Columns: []string{"store"}}},
		})
		ok(t, err)
		ok(t, c.service.StoreProof(t.Context(), c.conn.Config().Database, c.view, c.changes().Fingerprint, proof))
		var dim flowstate.SourceChanges
		for _, s := range c.changes().Sources {
			if s.Name == "public.dim" {
				dim = s
			}
		}
		if dim.Route != 0 || len(dim.Keys) != 1 || dim.Keys[0][0].Text != "2024-01-02" {
			t.Errorf("as %s: %+v", owner, dim)
		}
	}

	// A route has the author's rights also if none of the names that the tables
	// have now is in it.
	ok(t, c.service.StoreProof(t.Context(), c.conn.Config().Database, c.view, c.changes().Fingerprint, flowstate.StoredProof{
		Sources: []flowstate.ProvedSource{{Relation: c.oidOf("dim"), Routes: []flowstate.ProvedRoute{{
			Needs: proof.Sources[0].Routes[0].Needs[:1], SQL: "select current_user",
		}}}},
	}))
	for _, s := range c.changes().Sources {
		if s.Name == "public.dim" && (len(s.Keys) != 1 || s.Keys[0][0].Text != author) {
			t.Errorf("a route ran as %+v, want %q", s.Keys, author)
		}
	}
	ok(t, c.service.StoreProof(t.Context(), c.conn.Config().Database, c.view, c.changes().Fingerprint, proof))

	// Planning the route calls a function of the source's owner.
	c.must("grant usage on schema hers to public",
		`create function hers.evil(int) returns bool language plpgsql immutable as
			$$begin perform set_config('test.run_by', current_user, false); return true; end$$`,
		"create index evil on source (day) where hers.evil(1)", "set test.run_by = ''")
	c.changes()
	if got := c.value("show test.run_by"); got != author {
		t.Errorf("a function of a source was run by %q, want %q", got, author)
	}
}

func TestTransactionsAreTakenInOnceTheyCommit(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	c.capture("source", []string{"day"}, []string{"day", "amount"})
	c.take()
	c.prove(c.changes().Fingerprint, []string{"day"}, "select distinct l.c1 from {source} as l")
	check := func(want string) {
		t.Helper()
		if got := keys(c.changes()); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	late, rolledBack := connect(t, c.url, ""), connect(t, c.url, "")
	late.must("begin", "insert into source values ('2024-01-01', 1)")
	rolledBack.must("begin", "insert into source values ('2024-01-09', 1)")
	c.must("insert into source values ('2024-01-02', 1)")
	check("[2024-01-02]")
	c.take()
	check("[]")
	late.must("savepoint one", "insert into source values ('2024-01-08', 1)", "rollback to one",
		"savepoint two", "insert into source values ('2024-01-03', 1)", "release two", "commit")
	rolledBack.must("rollback")
	check("[2024-01-01 2024-01-03]")
	c.take()
	check("[]")

	// A transaction whose number is older than the cursor, and writes later.
	late.must("begin", "select pg_current_xact_id()")
	c.take()
	late.must("insert into source values ('2024-01-04', 1)", "commit")
	check("[2024-01-04]")
}

func TestARefreshInATransactionThatGoesOnWriting(t *testing.T) {
	t.Parallel()
	for _, isolation := range []string{"read committed", "repeatable read"} {
		t.Run(isolation, func(t *testing.T) {
			t.Parallel()
			c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
			c.capture("source", []string{"day"}, []string{"day", "amount"})
			c.take()
			c.prove(c.changes().Fingerprint, []string{"day"}, "select distinct l.c1 from {source} as l")
			other := connect(t, c.url, "")
			c.must("begin isolation level "+isolation, "insert into source values ('2024-01-01', 1)")
			other.must("insert into source values ('2024-01-05', 1)") // a later number that is committed
			if got := keys(c.changes()); !strings.Contains(got, "2024-01-01") {
				t.Errorf("got %s without the transaction's own", got)
			}
			c.lock(c.oid)
			id := c.start(c.oid, flowstate.KindWindow)
			_, err := flowstate.ReadChanges(t.Context(), c, c.oid, id)
			ok(t, err)
			other.must("insert into source values ('2024-01-06', 1)") // between reading and writing
			c.plan(id, "true")
			ok(t, flowstate.Finish(t.Context(), c, id, flowstate.Outcome{}))
			c.must("insert into source values ('2024-01-02', 1)", "commit")
			got := keys(c.changes())
			for _, day := range []string{"2024-01-02", "2024-01-06"} {
				if !strings.Contains(got, day) {
					t.Errorf("got %s, want %s", got, day)
				}
			}
		})
	}
}

func TestTwoFlowsShareALog(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, region int, amount int, note text)")
	c.capture("source", []string{"day"}, []string{"day", "amount"})
	c.take()
	first := c.changes()
	c.must("create table regions (region int, notes text)")
	view := c.newView("select region, string_agg(note, '' order by note) as notes from source group by region")
	ok(t, flowstate.Create(t.Context(), c, flowstate.StreamingTable{
		Target: rewrite.Name{Schema: "public", Table: "regions"}, Settings: settings,
		Flow: &flowstate.Flow{Name: "regions", View: view, Predicate: "true", Condition: "true", Query: "…"},
	}))
	regions := &captured{session: c.session, url: c.url, service: c.service, oid: c.oidOf("regions"), view: c.oidOf(view)}
	if got := regions.changes().Sources[0]; got.Obstacle != "its changes are not recorded" {
		t.Errorf("got %+v", got)
	}
	regions.capture("source", []string{"region"}, []string{"region", "note"})
	if got := c.changes(); got.Fingerprint != first.Fingerprint || !got.Sources[0].Tracked {
		t.Errorf("another flow alarms the first: %+v", got.Sources[0])
	}
	regions.take()
	c.must("insert into source values ('2024-01-01', 7, 1, 'a')", "update source set note = 'b'")
	c.prove(c.changes().Fingerprint, []string{"day"}, "select distinct l.c1 from {source} as l")
	regions.prove(regions.changes().Fingerprint, []string{"region"}, "select distinct l.c2 from {source} as l")
	c.refresh(c.oid, flowstate.KindWindow, "true")
	if got := c.changes(); got.Sources[0].Changed {
		t.Errorf("after its refresh the first flow has %+v", got.Sources[0])
	}
	if got := keys(regions.changes()); got != "[7]" {
		t.Errorf("the second flow has %s", got)
	}
	if got := c.rows("select tracked_sources, untracked_sources from rwproxy.flows order by 1"); fmt.Sprint(got) != "[{public.source}|{} {public.source}|{}]" {
		t.Errorf("flows show %v", got)
	}
}

func TestWritesOfOthersToATargetAreTold(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	c.capture("source", []string{"day"}, nil)
	c.take()
	external := func() string {
		t.Helper()
		got := c.changes()
		if !got.TargetTracked {
			t.Fatal("the target is not tracked")
		}
		if got.External == "" {
			return fmt.Sprint(got.ExternalUnknown)
		}
		return strings.Join(c.rows("select * from "+got.External+" as e where day > '2023-01-01' order by 1"), " ")
	}
	refresh := func(during ...string) {
		t.Helper()
		c.must("begin")
		c.lock(c.oid)
		id := c.start(c.oid, flowstate.KindWindow)
		c.plan(id, "true")
		c.must(during...)
		ok(t, flowstate.Finish(t.Context(), c, id, flowstate.Outcome{}))
		c.must("commit")
		c.unlock(c.oid)
	}
	refresh("insert into daily values ('2024-01-01', 1)", "delete from daily", "insert into daily values ('2024-01-02', 2)")
	if got := external(); got != "false" {
		t.Errorf("a refresh's own writes: %s", got)
	}
	c.must("update daily set amount = 3", "insert into daily values (null, 1), ('2024-01-07', 1)")
	if got := external(); got != "2024-01-02 2024-01-07" {
		t.Errorf("others' writes: %s", got)
	}
	refresh()
	if got := external(); got != "false" {
		t.Errorf("after a refresh: %s", got)
	}
	c.must("begin")
	c.lock(c.oid)
	id := c.start(c.oid, flowstate.KindWindow)
	c.plan(id, "true")
	ok(t, flowstate.Finish(t.Context(), c, id, flowstate.Outcome{}))
	c.must("insert into daily values ('2024-01-09', 1)", "commit")
	if got := external(); got != "2024-01-09" {
		t.Errorf("after the refresh in its transaction: %s", got)
	}
	refresh()
	c.must("truncate daily")
	if got := external(); got != "true" {
		t.Errorf("after TRUNCATE: %s", got)
	}
	refresh()

	// A trigger that writes to the target while the refresh does.
	c.must(`create function more() returns trigger language plpgsql as
		'begin insert into daily values (date ''2024-02-01'', 0); return null; end'`,
		"create trigger more after insert on daily for each statement when (pg_trigger_depth() = 0) execute function more()")
	refresh("insert into daily values ('2024-01-02', 2)")
	c.take()
	refresh("insert into daily values ('2024-01-02', 2)")
	if got := external(); got != "2024-02-01" {
		t.Errorf("a trigger's writes during a refresh: %s", got)
	}
}

func TestTheFingerprintTellsWhatMatters(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, "select day, f(sum(amount)) + h.extra as amount from source s cross join hidden h group by day, h.extra",
		"create function f(bigint) returns bigint language sql immutable as 'select $1'",
		"create table source (day date, amount int, note text)", "create table base (extra int)",
		"create view hidden as select extra from base", "create table other (id int primary key)")
	c.capture("source", []string{"day"}, nil)
	c.capture("base", nil, nil)
	c.take()
	last := c.changes().Fingerprint
	role := newRole(t, c.url, "reader")
	for _, sql := range []string{
		"grant select on source, daily to " + role, "comment on table source is 'x'", "analyze source", "vacuum source, daily",
		"create statistics source_statistics on day, amount from source", "create index on source (day)",
		"insert into source values ('2024-01-01', 1, 'n')", "insert into daily values ('2024-01-01', 1)", "vacuum freeze source",
		"alter table other add column x int", "create view elsewhere as select day from source",
	} {
		c.must(sql)
		if got := c.changes().Fingerprint; got != last {
			t.Errorf("%s moves the fingerprint", sql)
		}
	}
	c.take()
	if got := c.changes().Fingerprint; got != last {
		t.Error("a refresh moves the fingerprint")
	}
	for _, sql := range []string{
		"alter table source add column x int", "alter table source rename column note to remark", "alter table source rename column remark to note",
		"alter table source alter column note type varchar(10)", "alter table source alter column note set not null",
		"alter table source add primary key (note)", "create unique index on source (day)", "alter table source add check (amount > 0)",
		"alter table source disable trigger all", "alter table source enable trigger all",
		"create or replace view hidden as select extra + 1 as extra from base", "create or replace function f(bigint) returns bigint language sql immutable as 'select $1 + 1'",
		"alter table base enable row level security", "alter table base set unlogged", "alter table base rename to basis",
		"vacuum full basis", "alter table daily add column x int default 1", "alter table daily alter column x set default 2",
		"create function g() returns trigger language plpgsql as 'begin return new; end'; create trigger g before insert on daily for each row execute function g()",
		"create or replace function g() returns trigger language plpgsql as 'begin return null; end'",
		"create rule r as on insert to daily do also nothing", "alter schema public rename to elsewhere", "alter schema elsewhere rename to public",
	} {
		for _, statement := range strings.Split(sql, "; create") {
			if !strings.HasPrefix(statement, "c") && !strings.HasPrefix(statement, "a") && !strings.HasPrefix(statement, "v") {
				statement = "create" + statement
			}
			c.must(statement)
		}
		got := c.changes().Fingerprint
		if got == last {
			t.Errorf("%s does not move the fingerprint", sql)
		}
		last = got
	}
}

func TestWhatCannotBeTracked(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)",
		"create extension postgres_fdw", "create server s foreign data wrapper postgres_fdw",
		"create foreign table distant (day date) server s", "create materialized view made as select 1 as day",
		"create unlogged table fleeting (day date)", "create table guarded (day date)", "alter table guarded enable row level security",
		"create table tree (day date) partition by range (day)", "create unlogged table leaf partition of tree default",
		"create table plain (day date)")
	author := newRole(t, c.url, "author")
	tracking := func(table string, pid int) flowstate.Tracking {
		t.Helper()
		got, err := c.service.EnsureCapture(t.Context(), c.conn.Config().Database, flowstate.CaptureRequest{
			View: c.view, Author: author, ClientPID: pid, Sources: []flowstate.CaptureSource{{OID: c.oidOf(table), Columns: []string{"day"}}},
		})
		ok(t, err)
		return got[0]
	}
	for table, want := range map[string][2]string{
		"distant":            {"it is a foreign table", "Copy"},
		"made":               {"it is a materialized view", "streaming table"},
		"fleeting":           {"it is an unlogged table, which is emptied after a crash", "ALTER TABLE public.fleeting SET LOGGED."},
		"guarded":            {"row-level security is enabled on it", "without"},
		"tree":               {"its partition public.leaf is an unlogged table, which is emptied after a crash", "SET LOGGED"},
		"pg_catalog.pg_proc": {"it is a table of the system's", "Copy"},
		"plain":              {"role \"" + author + "\" has no TRIGGER privilege on public.plain", "GRANT TRIGGER ON public.plain TO " + author + "."},
	} {
		if got := tracking(table, 0); got.Tracked || got.Obstacle != want[0] || !strings.Contains(got.Hint, want[1]) {
			t.Errorf("%s: %+v", table, got)
		}
	}
	c.must("grant trigger on plain to " + author)
	c.must("begin", "insert into plain values (now())")
	if got := tracking("plain", int(c.conn.PgConn().PID())); got.Obstacle != "the transaction that is open has written to it" {
		t.Errorf("%+v", got)
	}
	if got := tracking("plain", 0); got.Obstacle != "other transactions were writing to it and did not end" {
		t.Errorf("%+v", got)
	}
	c.must("rollback")
	if got := tracking("plain", 0); !got.Tracked || got.Name != "public.plain" {
		t.Errorf("%+v", got)
	}
	c.must("create publication p for table plain", "create subscription s connection 'dbname=nothing' publication p with (connect = false)")
	c.must("insert into pg_subscription_rel (srsubid, srrelid, srsubstate) select oid, 'source'::regclass, 'r' from pg_subscription where subname = 's'")
	if got := c.changes().Sources[0]; !strings.HasPrefix(got.Obstacle, "a subscription of logical replication writes to it") {
		t.Errorf("%+v", got)
	}
	c.must("alter subscription s set (slot_name = none)", "drop subscription s")
}

func TestTriggersThatWereOffAreNoticed(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	c.capture("source", []string{"day"}, nil)
	c.take()
	before := c.changes().Fingerprint
	c.must("alter table source disable trigger user", "insert into source values ('2024-01-01', 1)")
	if got := c.changes(); got.Sources[0].Tracked || got.Fingerprint == before {
		t.Errorf("disabled triggers: %+v", got.Sources[0])
	}
	for _, name := range []string{"insert", "update", "delete", "truncate"} {
		trigger := c.value("select tgname from pg_trigger where tgrelid = 'source'::regclass and tgname like '%' || $1", name)
		c.must("alter table source enable always trigger " + trigger)
	}
	if got := c.changes(); !got.Sources[0].Tracked || got.Fingerprint == before {
		t.Errorf("enabled again: %+v", got.Sources[0])
	}
	c.must("drop trigger " + c.value("select min(tgname) from pg_trigger where tgrelid = 'source'::regclass") + " on source")
	if got := c.changes().Sources[0]; got.Tracked {
		t.Errorf("a dropped trigger: %+v", got)
	}
	if got := c.capture("source", []string{"day"}, nil); !got.Tracked {
		t.Errorf("got %+v", got)
	}
	if got := c.changes().Sources[0]; got.Obstacle != "its changes were not recorded at the last refresh" {
		t.Errorf("installed since: %+v", got)
	}
	c.take()
	if got := c.changes().Sources[0]; !got.Tracked {
		t.Errorf("after the next refresh: %+v", got)
	}
}
