package flowstate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// shared is a database in which role owner has a flow that stranger has no
// rights on.
type shared struct {
	url                    string
	super, owner, stranger *session
	ownerName              string
	strangerName           string
	oid                    uint32
}

func newShared(t *testing.T) *shared {
	t.Helper()
	url := installed(t)
	d := &shared{url: url, super: connect(t, url, ""), ownerName: newRole(t, url, "owner"), strangerName: newRole(t, url, "stranger")}
	d.super.must("grant create, usage on schema public to public")
	d.owner, d.stranger = connect(t, url, d.ownerName), connect(t, url, d.strangerName)
	d.oid = d.owner.dailyTable()
	return d
}

var dailyName = rewrite.Name{Schema: "public", Table: "daily"}

func TestTablesAndFunctionsAreClosed(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	open := d.super.rows(`
		select c.relname
		  from pg_class c
		 where c.relnamespace = 'rwproxy'::regnamespace
		   and c.relkind in ('r', 'v', 'S')
		   and (has_table_privilege($1, c.oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')
		        or c.relkind = 'S' and has_sequence_privilege($1, c.oid, 'USAGE'))
		 order by 1`, d.strangerName)
	if got := fmt.Sprint(open); got != "[event_log flows refreshes schema_version streaming_tables updates]" {
		t.Errorf("everybody has privileges on %s", got)
	}
	if got := d.super.value("select has_table_privilege($1, 'rwproxy.schema_version', 'INSERT, UPDATE, DELETE')", d.strangerName); got != "f" {
		t.Error("everybody may write the version")
	}
	for _, schema := range []string{"rwproxy", "rwproxy_compat", "rwproxy_log"} {
		if got := d.super.value("select has_schema_privilege($1, $2, 'CREATE')", d.strangerName, schema); got != "f" {
			t.Errorf("everybody may create in schema %s", schema)
		}
	}
	executable := d.super.rows(`
		select p.oid::regprocedure from pg_proc p
		 where p.pronamespace = 'rwproxy'::regnamespace
		   and has_function_privilege($1, p.oid, 'EXECUTE')
		 order by p.proname`, d.strangerName)
	const readers = "[rwproxy.cancel_refresh(uuid) rwproxy.event_log(regclass) rwproxy.is_streaming_table(oid) rwproxy.readable_table(oid) rwproxy.table_history(regclass)]"
	if got := fmt.Sprint(executable); got != readers {
		t.Errorf("everybody may execute %v", got)
	}
	columns := d.super.rows(`
		select a.attname, privilege
		  from pg_attribute a, unnest(array['SELECT', 'INSERT', 'UPDATE']) as privilege
		 where a.attrelid = 'rwproxy.request'::regclass and a.attnum > 0
		   and has_column_privilege($1, a.attrelid, a.attnum, privilege)
		 order by 1, 2`, d.strangerName)
	if got := fmt.Sprint(columns); got != "[arguments|INSERT result|SELECT step|INSERT]" {
		t.Errorf("on rwproxy.request everybody has %s", got)
	}
	definers := d.super.rows(`
		select p.proname from pg_proc p
		 where p.pronamespace = 'rwproxy'::regnamespace and p.prosecdef
		   and coalesce(p.proconfig::text, '') not like '%search_path=pg_catalog, pg_temp%'`)
	if len(definers) > 0 {
		t.Errorf("functions with the owner's rights and the caller's search_path: %v", definers)
	}
	definers = d.super.rows("select proname from pg_proc where pronamespace = 'rwproxy'::regnamespace and prosecdef order by 1")
	if got := fmt.Sprint(definers); got != "[is_streaming_table run_step]" {
		t.Errorf("%s have the owner's rights, want the one behind rwproxy.request and one that tells yes or no", got)
	}
}

func TestAStrangerSeesNothing(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	d.owner.refresh(d.oid, flowstate.KindWindow, "true")
	for _, view := range []string{"flows", "refreshes", "event_log", "streaming_tables"} {
		if got := d.owner.value("select count(*) > 0 from rwproxy." + view); got != "t" {
			t.Errorf("the owner sees nothing in rwproxy.%s", view)
		}
		if got := d.stranger.value("select count(*) from rwproxy." + view); got != "0" {
			t.Errorf("a stranger sees %s rows in rwproxy.%s", got, view)
		}
		d.super.must("grant select on daily to " + d.strangerName)
		if got := d.stranger.value("select count(*) > 0 from rwproxy." + view); got != "t" {
			t.Errorf("a role that may SELECT the table sees nothing in rwproxy.%s", view)
		}
		d.super.must("revoke select on daily from " + d.strangerName)
	}
	_, err := flowstate.Lookup(t.Context(), d.stranger, dailyName)
	refused(t, err, "42501", "permission denied for table daily")

	ok(t, flowstate.Drop(t.Context(), d.owner, d.oid, false))
	d.owner.must("drop table daily")
	if got := d.owner.value("select count(*) from rwproxy.refreshes"); got != "1" {
		t.Error("the owner does not see the history of a dropped table")
	}
	for _, view := range []string{"refreshes", "event_log"} {
		if got := d.stranger.value("select count(*) from rwproxy." + view); got != "0" {
			t.Errorf("a stranger sees %s rows of a dropped table in rwproxy.%s", got, view)
		}
	}
}

func TestAFunctionInAWhereClauseSeesNoHiddenRow(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	d.owner.refresh(d.oid, flowstate.KindWindow, "true")
	d.stranger.must("create function leak(text) returns bool language plpgsql cost 0.0000001 as " +
		"$$ begin raise exception 'leaked %', $1; end $$")
	for _, sql := range []string{
		"select from rwproxy.flows where leak(query)",
		"select from rwproxy.refreshes where leak(window_predicate)",
		"select from rwproxy.event_log where leak(message)",
	} {
		if got := d.stranger.rows(sql); len(got) > 0 {
			t.Errorf("%s returned rows", sql)
		}
	}
}

func TestAStrangerChangesNothing(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	table := flowstate.StreamingTable{Target: dailyName, Settings: settings}
	d.owner.must("create table other (day date, amount bigint)", "grant select on orders to public")
	mine := d.stranger.flow("mine")
	withFlow := table
	withFlow.Flow = mine
	onOther := withFlow
	onOther.Target.Table = "other"
	start := flowstate.Refresh{Target: d.oid, Kind: flowstate.KindWindow, Cause: flowstate.CauseStatement}
	d.stranger.lock(d.oid)

	_, err := flowstate.Start(t.Context(), d.stranger, start)
	refused(t, err, "42501", "permission denied for table daily")
	refused(t, flowstate.Create(t.Context(), d.stranger, onOther), "42501", "must be owner of table other")
	refused(t, flowstate.Replace(t.Context(), d.stranger, d.oid, withFlow), "42501", "must be owner of table daily")
	refused(t, flowstate.AddFlow(t.Context(), d.stranger, d.oid, *mine, settings, ""), "42501", "must be owner of table daily")
	refused(t, flowstate.Drop(t.Context(), d.stranger, d.oid, false), "42501", "must be owner of table daily")
	refused(t, flowstate.Fail(t.Context(), d.stranger, flowstate.Failure{OID: d.oid, Error: pgdiag.New("XX000", "x"), StartedAt: time.Now()}),
		"42501", "permission denied for table daily")

	for _, partial := range []string{"select, insert", "select, delete", "insert, delete"} {
		d.super.must("revoke all on daily from "+d.strangerName, "grant "+partial+" on daily to "+d.strangerName)
		_, err := flowstate.Start(t.Context(), d.stranger, start)
		refused(t, err, "42501", "permission denied for table daily")
	}
	d.super.must("grant select, insert, delete on daily to " + d.strangerName)
	d.stranger.start(d.oid, flowstate.KindWindow)
	refused(t, flowstate.Drop(t.Context(), d.stranger, d.oid, false), "42501", "must be owner of table daily")
}

func TestAFlowsViewMustBeTheCallersOwn(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	d.super.must("grant create on schema public to public")
	d.stranger.must("create table mine (day date, amount bigint)", "create view public.elsewhere as select 1 as day")
	table := flowstate.StreamingTable{Target: rewrite.Name{Schema: "public", Table: "mine"}, Settings: settings}
	table.Flow = &flowstate.Flow{Name: "mine", View: d.owner.lookup("daily").Table.Flow.View}
	refused(t, flowstate.Create(t.Context(), d.stranger, table), "42501", "must be owner of view")
	table.Flow.View = "public.elsewhere"
	refused(t, flowstate.Create(t.Context(), d.stranger, table), "42809", "is not the view of a flow")
	table.Flow.View = "rwproxy_flows.missing"
	refused(t, flowstate.Create(t.Context(), d.stranger, table), "42P01", "the view of the flow does not exist")

	twice := d.owner.lookup("daily").Table.Flow
	d.owner.must("create table second (day date, amount bigint)")
	refused(t, flowstate.Create(t.Context(), d.owner, flowstate.StreamingTable{
		Target: rewrite.Name{Schema: "public", Table: "second"}, Settings: settings, Flow: twice,
	}), "42710", "the view is that of another flow")
}

func TestRolesActAsPostgresLetsThem(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	group := newRole(t, d.url, "team")
	d.super.must("alter table daily owner to "+group, "grant "+group+" to "+d.strangerName)
	d.stranger.lock(d.oid)
	id := d.stranger.start(d.oid, flowstate.KindWindow)
	if got := d.stranger.value("select requested_by from rwproxy.refreshes where refresh_id = $1::uuid", id); got != d.strangerName {
		t.Errorf("requested by %s, want the member itself", got)
	}
	d.stranger.must("set role " + group)
	refused(t, flowstate.Plan(t.Context(), d.stranger, id, flowstate.PlanRecord{}), "42501", "permission denied for refresh")
	id = d.stranger.start(d.oid, flowstate.KindWindow)
	if got := d.stranger.value("select requested_by from rwproxy.refreshes where refresh_id = $1::uuid", id); got != group {
		t.Errorf("requested by %s, want the role that was set", got)
	}

	d.super.must("grant select, insert, delete on daily to "+d.ownerName, "set role "+d.ownerName)
	refused(t, flowstate.Drop(t.Context(), d.super, d.oid, false), "42501", "must be owner of table daily")
	d.super.must("reset role")
	d.super.must("create schema theirs authorization "+d.ownerName, "alter table daily set schema theirs")
	ok(t, flowstate.Drop(t.Context(), d.owner, d.oid, false)) // the owner of the schema may drop what is in it
}

// A role's code runs in other roles' sessions: what it asks for then must be
// judged by its own rights.
func TestCodeInAnothersSessionActsForItsAuthor(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	drop := fmt.Sprintf(`insert into rwproxy.request (step, arguments) values ('drop_table', '{"target": %d}')`, d.oid)
	d.stranger.must(
		"create function attack() returns int language plpgsql as $$ begin "+drop+"; return 1; end $$",
		"create function wrapper() returns int language plpgsql security definer as $$ begin "+drop+"; return 1; end $$",
		"create function expression(i int) returns int immutable language sql as 'select 1'",
		"create table bait as select 1 as i", "create index on bait (expression(i))",
		"create materialized view bait_view as select expression(1)",
		"create or replace function expression(i int) returns int immutable language plpgsql as $$ begin return public.attack(); end $$")
	for name, sql := range map[string]string{
		"a security definer function": "select wrapper()",
		"an index expression":         "reindex table bait",
		"a materialized view":         "refresh materialized view bait_view",
	} {
		_, err := d.super.Exec(t.Context(), sql)
		var refusal *pgdiag.Diagnostic
		if !errors.As(err, &refusal) || refusal.Message != "must be owner of table daily" {
			t.Errorf("%s in a superuser's session: got error %v, want that of the author", name, err)
		}
	}
	if d.super.lookup("daily").Table == nil {
		t.Error("the flow is gone")
	}
}

func TestTheCallerCannotBeForged(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	arguments := fmt.Sprintf(`{"target": %d}`, d.oid)
	_, err := d.stranger.Exec(t.Context(),
		"insert into rwproxy.request (caller, step, arguments) values ('postgres', 'drop_table', $1::jsonb)", arguments)
	if got := pgdiag.Code(err); got != "42501" {
		t.Errorf("with the caller given: %v, want 42501", err)
	}
	d.stranger.must("create view public.forged as select caller, step, arguments from rwproxy.request",
		"alter view public.forged alter caller set default 'postgres'")
	_, err = d.stranger.Exec(t.Context(), "insert into public.forged (step, arguments) values ('drop_table', $1::jsonb)", arguments)
	if got := pgdiag.Code(err); got != "42501" {
		t.Errorf("with a view's default for the caller: %v, want 42501", err)
	}
	d.super.must("set role " + d.strangerName)
	_, err = d.super.Exec(t.Context(), "insert into rwproxy.request (step, arguments) values ('drop_table', $1::jsonb)", arguments)
	if got := pgdiag.Code(err); got != "42501" {
		t.Errorf("as a superuser who set the role: %v, want 42501", err)
	}
}

func TestForgedRefreshIDsAreRefused(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	d.owner.lock(d.oid)
	id := d.owner.start(d.oid, flowstate.KindWindow)
	d.owner.plan(id, "true")
	second := connect(t, d.url, d.ownerName)
	for _, s := range []*session{d.stranger, second} {
		refused(t, flowstate.Plan(t.Context(), s, id, flowstate.PlanRecord{}), "42501", "permission denied for refresh")
		refused(t, flowstate.Finish(t.Context(), s, id, flowstate.Outcome{}), "42501", "permission denied for refresh")
	}
	failure := flowstate.Failure{RefreshID: id, OID: d.oid, Error: pgdiag.New("XX000", "x"), StartedAt: time.Now()}
	refused(t, flowstate.Fail(t.Context(), d.stranger, failure), "42501", "permission denied for refresh")
	refused(t, flowstate.Fail(t.Context(), second, failure), "55006", "runs in another session")
	ok(t, flowstate.Finish(t.Context(), d.owner, id, flowstate.Outcome{}))
}

func TestOnlyTheServiceRecordsWhatAnotherRoleDid(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	failure := flowstate.Failure{
		OID: d.oid, Kind: flowstate.KindWindow, Cause: flowstate.CauseStatement, RequestedBy: d.ownerName,
		Error: pgdiag.New("08006", "connection lost"), StartedAt: time.Now(),
	}
	ok(t, flowstate.Fail(t.Context(), d.super, failure))
	if got := d.super.value("select requested_by from rwproxy.refreshes"); got != d.ownerName {
		t.Errorf("the service's record says %s, want %s", got, d.ownerName)
	}
	d.super.must("grant select, insert, delete on daily to " + d.strangerName)
	ok(t, flowstate.Fail(t.Context(), d.stranger, failure))
	if got := d.super.value("select requested_by from rwproxy.refreshes order by requested_at desc, requested_by = $1 limit 1", d.ownerName); got != d.strangerName {
		t.Errorf("a stranger's record says %s, want the stranger", got)
	}
}

func TestAnUnknownStepAndBlindTriggersAreErrors(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	for _, step := range []any{"nonsense", nil} {
		_, err := d.stranger.Exec(t.Context(), "insert into rwproxy.request (step, arguments) values ($1, '{}')", step)
		if got := pgdiag.Code(err); got != "22023" {
			t.Errorf("step %v: %v, want 22023", step, err)
		}
	}
	d.super.must("set session_replication_role = replica")
	refused(t, flowstate.Drop(context.Background(), d.super, d.oid, false), "55000", "do not fire")
}
