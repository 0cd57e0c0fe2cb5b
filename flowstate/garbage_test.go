package flowstate_test

import (
	"fmt"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
)

func (c *captured) collect() {
	c.t.Helper()
	ok(c.t, c.service.CollectGarbage(c.t.Context(), c.conn.Config().Database))
}

func TestGarbageIsWhatEveryFlowHasSeen(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	c.capture("source", []string{"day"}, []string{"day", "amount"})
	log := c.value("select log from rwproxy.capture where relation = 'source'::regclass")
	count := func(want string) {
		t.Helper()
		c.collect()
		if got := c.value("select count(*) from " + log); got != want {
			t.Errorf("%s rows are logged, want %s", got, want)
		}
	}
	c.must("insert into source values ('2024-01-01', 1)")
	count("1") // a first refresh may be running
	c.take()
	count("0")
	late := connect(t, c.url, "")
	late.must("begin", "insert into source values ('2024-01-02', 1)")
	c.must("insert into source values ('2024-01-03', 1)")
	count("1")
	c.take()
	late.must("commit")
	count("1")
	if got := c.changes().Sources[0]; got.Rows != 1 {
		t.Errorf("of a transaction that committed late: %+v", got)
	}
	c.take()
	count("0")
	c.must("insert into source values ('2024-01-03', 1)")
	if got := c.changes().Sources[0]; got.Rows != 1 || !got.Tracked {
		t.Errorf("after the collection: %+v", got)
	}
}

func TestALogOfAFlowThatIsNotRefreshedStaysSmall(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	c.capture("source", []string{"day"}, []string{"day", "amount"})
	c.take()
	log := c.value("select log from rwproxy.capture where relation = 'source'::regclass")
	c.must("insert into " + log + " (xid, known, own, c1) select pg_current_xact_id(), 1, false, '2024-01-01' from generate_series(1, 250000)")
	c.collect()
	if got := c.rows("select known, own from " + log); fmt.Sprint(got) != "[0|f]" {
		t.Errorf("got %d rows, want one that says that anything changed", len(got))
	}
	if got := c.changes().Sources[0]; got.Rows != 1 {
		t.Errorf("got %+v", got)
	}
	c.take()
	if got := c.changes().Sources[0]; got.Rows != 0 {
		t.Errorf("after a refresh: %+v", got)
	}
}

func TestCaptureGoesWithTheLastFlow(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int, note text) partition by range (day)",
		"create table rest partition of source default", "create table former partition of source for values from ('2024-01-01') to ('2024-02-01')")
	c.capture("source", []string{"day"}, []string{"day", "amount"})
	const triggers = "select tgrelid::regclass || ' ' || count(*) from pg_trigger where tgname like 'rwproxy%' group by tgrelid order by 1"
	c.must("alter table source detach partition former")
	c.collect()
	if got := fmt.Sprint(c.rows(triggers)); got != "[daily 4 rest 4 source 4]" {
		t.Errorf("triggers: %s", got)
	}

	// A definition that was rolled back, and one that is not yet committed.
	c.must("create table copies (day date)")
	other := connect(t, c.url, "")
	other.must("begin")
	view := other.oidOf(other.newView("select day, note from source"))
	uncommitted := &captured{session: c.session, url: c.url, service: c.service, view: view}
	uncommitted.capture("source", []string{"day", "note"}, nil)
	c.collect()
	const needs = "select view = $1::oid from rwproxy.capture_need where relation = 'source'::regclass order by 1"
	if got := fmt.Sprint(c.rows(needs, view)); got != "[f t]" {
		t.Errorf("while a flow is being defined, needs are %s", got)
	}
	columns := "select columns, reads from rwproxy.capture where relation = 'source'::regclass"
	if got := c.value(columns); got != "{1,3}|null" {
		t.Errorf("captured: %s", got)
	}
	other.must("rollback")
	c.collect()
	if got := fmt.Sprint(c.rows(needs, view)); got != "[f]" {
		t.Errorf("after the rollback, needs are %s", got)
	}
	if got := c.value(columns); got != "{1}|{1,2}" {
		t.Errorf("captured: %s", got)
	}
	c.must("insert into source values ('2024-01-01', 1)")

	// A writer is not waited for.
	ok(t, flowstate.Drop(t.Context(), c, c.oid, false))
	other.must("begin", "insert into source values ('2024-01-01', 1)")
	c.collect()
	if got := fmt.Sprint(c.rows(triggers)); got != "[rest 4 source 4]" {
		t.Errorf("while it is written to, triggers: %s", got)
	}
	other.must("commit")
	c.collect()
	if got := c.rows(triggers); len(got) > 0 {
		t.Errorf("triggers: %v", got)
	}
	if got := c.rows("select relname from pg_class where relnamespace = 'rwproxy_log'::regnamespace and relname like 'log%'"); len(got) > 0 {
		t.Errorf("logs: %v", got)
	}
	if got := c.rows("select proname from pg_proc where pronamespace = 'rwproxy_log'::regnamespace"); len(got) > 0 {
		t.Errorf("functions: %v", got)
	}
	c.must("insert into source values ('2024-01-01', 1)", "update source set amount = 2", "drop table source")
}

func TestADroppedSourceLeavesNothing(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	c.capture("source", []string{"day"}, nil)
	c.must("drop table source cascade", "drop table daily")
	ok(t, flowstate.Sweep(t.Context(), c))
	c.collect()
	if got := c.value("select count(*) from rwproxy.capture"); got != "0" {
		t.Errorf("%s captures are left", got)
	}
}

func TestUninstallingKeepsTheTables(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)", "insert into source values ('2024-01-01', 1)")
	c.capture("source", []string{"day"}, nil)
	c.must("insert into daily values ('2024-01-01', 1)", "create view mine as select * from rwproxy.flows")
	err := flowstate.Uninstall(t.Context(), c.conn)
	refused(t, err, "2BP01", "other objects depend on it")
	c.must("drop view mine")
	ok(t, flowstate.Uninstall(t.Context(), c.conn))
	if got := c.rows("select nspname from pg_namespace where nspname like 'rwproxy%'"); len(got) > 0 {
		t.Errorf("schemas %v are left", got)
	}
	if got := c.value("select count(*) from pg_trigger where tgname like 'rwproxy%'"); got != "0" {
		t.Errorf("%s triggers are left", got)
	}
	c.must("insert into source values ('2024-01-02', 1)", "update daily set amount = 2")
	if got := c.value("select count(*) from daily"); got != "1" {
		t.Errorf("daily has %s rows", got)
	}
	ok(t, flowstate.Uninstall(t.Context(), c.conn))
	ok(t, flowstate.Install(t.Context(), c.conn))

	// Somebody has dropped the other schemas by hand.
	c.must("create view rwproxy_flows.again as "+sumOfSource, "drop schema rwproxy, rwproxy_flows, rwproxy_compat cascade")
	ok(t, flowstate.Install(t.Context(), c.conn))
}

func TestOldRefreshesLeaveTheHistory(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)")
	c.take()
	c.take()
	c.take()
	history := func(want string) {
		t.Helper()
		c.collect()
		got := c.value(`
			select count(*) || ' refreshes, ' || count(e.refresh_id) || ' with events, ' ||
			       count(*) filter (where r.id = (select last_refresh_id from rwproxy.streaming_table)) || ' the last'
			  from rwproxy.refresh r
			  left join (select distinct refresh_id from rwproxy.event) e on e.refresh_id = r.id`)
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c.must("insert into rwproxy.refresh select (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid(), 'state', 'QUEUED', 'ended_at', null))).* from rwproxy.refresh r limit 1",
		"update rwproxy.refresh set requested_at = requested_at - interval '40 days', ended_at = ended_at - interval '40 days' where id <> (select id from rwproxy.refresh where state = 'COMPLETED' order by requested_at limit 1)")
	history("4 refreshes, 3 with events, 1 the last")
	c.must("insert into rwproxy.update select r.id, r.table_id, r.owner, 'API_CALL', r.requested_by, r.requested_at, null, r.ended_at, 'COMPLETED', null, '{}' from rwproxy.refresh r where r.state <> 'QUEUED'",
		"select rwproxy.add_group_progress(u.id, 'COMPLETED') from rwproxy.update u")
	c.service.HistoryDays = 41
	history("4 refreshes, 3 with events, 1 the last")
	c.service.HistoryDays = 30
	history("3 refreshes, 2 with events, 1 the last")
	if got := c.value("select count(*) from rwproxy.event e where refresh_id is not null and not exists (select from rwproxy.refresh r where r.id = e.refresh_id)"); got != "0" {
		t.Errorf("%s events are left of refreshes that are gone", got)
	}
	got := c.value("select (select count(*) from rwproxy.update) || ' updates, ' || count(*) || ' of their events' from rwproxy.event where refresh_id is null and origin ? 'update_id'")
	if got != "2 updates, 2 of their events" {
		t.Errorf("got %s", got)
	}
}
