package flowstate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
)

// captured is a database with a flow from table source into daily, whose
// changes are recorded.
type captured struct {
	*session
	url     string
	service *flowstate.Service
	oid     uint32 // of daily
	view    uint32
}

// newCaptured runs the statements, which create table source, and makes a flow
// of query with columns day and amount.
func newCaptured(t *testing.T, query string, statements ...string) *captured {
	t.Helper()
	return newCapturedIn(t, installed(t), query, statements...)
}

// newCapturedIn is newCaptured in a database that has rwproxy's schemas.
func newCapturedIn(t *testing.T, url, query string, statements ...string) *captured {
	t.Helper()
	c := &captured{session: connect(t, url, ""), url: url, service: newService(t, url)}
	c.must(statements...)
	c.must("create table daily (day date, amount bigint)")
	ok(t, flowstate.Create(t.Context(), c, flowstate.StreamingTable{
		Target:    dailyName,
		Statement: "CREATE STREAMING TABLE daily FLOW …",
		Settings:  settings,
		Flow: &flowstate.Flow{
			Name: "daily", View: c.newView(query), Predicate: "day > '2024-01-01'", Condition: "day > '2024-01-01'",
			Query: query, PredicateColumns: []string{"day"},
		},
	}))
	target := c.lookup("daily")
	c.oid, c.view = target.OID, target.Table.Flow.ViewOID
	return c
}

// oidOf returns the OID of a relation.
func (s *session) oidOf(relation string) uint32 {
	s.t.Helper()
	var oid uint32
	_, err := fmt.Sscan(s.value("select $1::regclass::oid", relation), &oid)
	ok(s.t, err)
	return oid
}

// capture has the changes of a table recorded for the flow.
func (c *captured) capture(table string, columns, reads []string) flowstate.Tracking {
	c.t.Helper()
	tracking, err := c.service.EnsureCapture(c.t.Context(), c.conn.Config().Database, flowstate.CaptureRequest{
		View: c.view, Author: "postgres", ClientPID: int(c.conn.PgConn().PID()),
		Sources: []flowstate.CaptureSource{{OID: c.oidOf(table), Columns: columns, Reads: reads}},
	})
	ok(c.t, err)
	return tracking[0]
}

// take refreshes the flow, so that later changes are told.
func (c *captured) take() {
	c.t.Helper()
	c.refresh(c.oid, flowstate.KindWindow, "true")
}

func (c *captured) changes() *flowstate.Changes {
	c.t.Helper()
	changes, err := flowstate.ReadChanges(c.t.Context(), c, c.oid, "")
	ok(c.t, err)
	return changes
}

// logged returns the log of a table since the cursor: how many columns are
// known, and their values.
func (c *captured) logged(table string) []string {
	c.t.Helper()
	log := c.value("select log from rwproxy.capture where relation = rwproxy.capture_root($1::regclass)", table)
	columns := c.value("select coalesce(string_agg(', c' || u, '' order by position), '') from rwproxy.capture, unnest(columns) with ordinality as u (u, position) where log = $1::regclass", log)
	return c.rows("select known" + columns + " from " + log +
		" where not pg_visible_in_snapshot(xid, (select cursor from rwproxy.streaming_table)) order by 1, 2, 3")
}

const sumOfSource = "select day, sum(amount) as amount from source group by day"

func TestStatementsAreLogged(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int, note text)")
	if got := c.capture("source", []string{"day", "amount"}, []string{"day", "amount"}); !got.Tracked {
		t.Fatalf("got %+v", got)
	}
	c.must("insert into source values ('2024-01-01', 1, 'a'), ('2024-01-02', 2, 'b')")
	c.take()
	for _, step := range []struct{ sql, want string }{
		{"insert into source values ('2024-01-03', 3)", "[2|2024-01-03|3]"},
		{"update source set amount = 20 where day = '2024-01-02'", "[2|2024-01-02|2 2|2024-01-02|20]"},
		{"update source set note = 'c'", "[]"},
		{"update source set amount = amount", "[]"},
		{"delete from source where day = '2024-01-03'", "[2|2024-01-03|3]"},
		{"delete from source where false", "[]"},
		{"update source set day = null where amount = 1", "[2|2024-01-01|1 2|null|1]"},
		{"truncate source", "[0|null|null]"},
	} {
		c.must(step.sql)
		if got := fmt.Sprint(c.logged("source")); got != step.want {
			t.Errorf("%s\ngot  %s\nwant %s", step.sql, got, step.want)
		}
		c.take()
	}
}

// mergeFrom15 is a MERGE where Postgres has it, since version 15.
const mergeFrom15 = `do $do$ begin
	if current_setting('server_version_num')::int >= 150000 then
		execute $$merge into source using (values (date '2024-01-02', 9)) as v (day, amount) on source.day = v.day
			when matched then update set amount = v.amount
			when not matched then insert values (v.day, v.amount)$$;
	else
		update source set amount = 9 where day = '2024-01-02';
	end if;
end $do$`

func TestEveryWayToWriteIsLogged(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table days (day date primary key)",
		"create table source (day date primary key references days on delete cascade on update cascade, amount int)",
		"insert into days select date '2024-01-01' + i from generate_series(0, 9) i")
	c.capture("source", []string{"day", "amount"}, []string{"day", "amount"})
	c.must("insert into source values ('2024-01-01', 1), ('2024-01-02', 2)")
	c.take()
	for _, step := range []struct{ sql, want string }{
		{"copy source from program 'echo \"2024-01-03,3\"' csv", "[2|2024-01-03|3]"},
		{mergeFrom15, "[2|2024-01-02|2 2|2024-01-02|9]"},
		{
			"insert into source values ('2024-01-03', 4), ('2024-01-04', 4) on conflict (day) do update set amount = 40",
			"[2|2024-01-03|3 2|2024-01-03|40 2|2024-01-04|4]",
		},
		{"insert into source values ('2024-01-03', 4) on conflict do nothing", "[]"},
		{"delete from days where day = '2024-01-04'", "[2|2024-01-04|4]"},
		{"update days set day = '2024-02-01' where day = '2024-01-03'", "[2|2024-01-03|40 2|2024-02-01|40]"},
		{
			"with moved as (delete from source where amount = 9 returning *) insert into source select '2024-01-05', amount from moved",
			"[2|2024-01-02|9 2|2024-01-05|9]",
		},
		{"truncate days cascade", "[0|null|null]"},
	} {
		c.must(step.sql)
		if got := fmt.Sprint(c.logged("source")); got != step.want {
			t.Errorf("%s\ngot  %s\nwant %s", step.sql, got, step.want)
		}
		c.take()
	}
	c.must("set session_replication_role = replica", "insert into source values ('2024-01-06', 6)", "reset session_replication_role")
	if got := fmt.Sprint(c.logged("source")); got != "[2|2024-01-06|6]" {
		t.Errorf("in a replica's session: %s", got)
	}
}

func TestManyRowsAreLoggedByFewerColumns(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, store numeric, amount int)")
	c.capture("source", []string{"day", "store"}, []string{"day", "store", "amount"})
	c.take()
	const rows = "select date '2024-01-01' + i %% %d, i %% %d, 1 from generate_series(1, 40000) i"
	count := func(want string) {
		t.Helper()
		log := c.value("select log from rwproxy.capture where relation = 'source'::regclass")
		got := c.value("select string_agg(known || ':' || n, ' ' order by known) from (select known, count(*) as n from " + log +
			" where not pg_visible_in_snapshot(xid, (select cursor from rwproxy.streaming_table)) group by 1) as l")
		if got != want {
			t.Errorf("got %s rows by the columns known, want %s", got, want)
		}
		c.take()
	}
	c.must("insert into source " + fmt.Sprintf(rows, 2, 1000))
	count("2:1000")
	c.must("insert into source " + fmt.Sprintf(rows, 3, 39999))
	count("1:3")
	c.must("insert into source " + fmt.Sprintf(rows, 39999, 1))
	count("0:1")
	c.must("truncate source", "insert into source "+fmt.Sprintf(rows, 4, 16000))
	c.take()
	c.must("update source set store = store + 1")
	count("1:4")
	c.must("update source set store = store + 0.0 where store <= 100") // 1.0 is not 1
	count("2:200")
	c.must("delete from source")
	count("2:16000")

	// A plan that was made for few rows serves very many.
	c.must("insert into source "+fmt.Sprintf(rows, 2, 9), "insert into source select date '2024-01-01', i % 5, 1 from generate_series(1, 200000) i")
	count("2:23")
	c.must("update source set amount = amount + 1 where day = '2024-01-01'")
	count("2:9")
}

func TestTableTreesAreLoggedInOneLog(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource,
		"create table source (amount int, gone int, day date) partition by range (day)",
		"alter table source drop column gone",
		"create table january partition of source for values from ('2024-01-01') to ('2024-02-01') partition by list (amount)",
		"create table ones partition of january for values in (1)",
		"create table others partition of january default",
		"create table february (day date, amount int)",
		"alter table source attach partition february for values from ('2024-02-01') to ('2024-03-01')")
	c.capture("source", []string{"day", "amount"}, []string{"day", "amount"})
	c.take()
	for _, step := range []struct{ sql, want string }{
		{"insert into source (day, amount) values ('2024-01-03', 1), ('2024-02-01', 2)", "[2|2024-01-03|1 2|2024-02-01|2]"},
		{"insert into ones (day, amount) values ('2024-01-04', 1)", "[2|2024-01-04|1]"},
		{"insert into february values ('2024-02-02', 5)", "[2|2024-02-02|5]"},
		{"update source set amount = 2 where day = '2024-01-04'", "[2|2024-01-04|1 2|2024-01-04|2]"},
		{"update january set amount = 1 where day = '2024-01-04'", "[2|2024-01-04|1 2|2024-01-04|2]"},
		{"update source set day = '2024-02-04' where day = '2024-01-04'", "[2|2024-01-04|1 2|2024-02-04|1]"},
		{"delete from february where amount = 5", "[2|2024-02-02|5]"},
		{"truncate february", "[0|null|null]"},
	} {
		c.must(step.sql)
		if got := fmt.Sprint(c.logged("source")); got != step.want {
			t.Errorf("%s\ngot  %s\nwant %s", step.sql, got, step.want)
		}
		c.take()
	}

	before := c.changes().Fingerprint
	c.must("create table march partition of source for values from ('2024-03-01') to ('2024-04-01')")
	if got := c.changes(); got.Fingerprint == before || got.Sources[0].Tracked {
		t.Errorf("with a new partition: %+v", got.Sources[0])
	}
	if got := c.capture("source", []string{"day", "amount"}, []string{"day", "amount"}); !got.Tracked {
		t.Errorf("got %+v", got)
	}
	c.take()
	c.must("insert into march values (3, '2024-03-03')")
	if got := c.changes(); !got.Sources[0].Tracked || got.Sources[0].Rows != 1 {
		t.Errorf("after a write to the new partition: %+v", got.Sources[0])
	}
	c.take()
	before = c.changes().Fingerprint
	c.must("alter table source detach partition february", "insert into february values ('2024-02-07', 7)",
		"alter table source attach partition february for values from ('2024-02-01') to ('2024-03-01')")
	if got := c.changes(); got.Fingerprint == before {
		t.Error("a partition that was detached and attached again is not noticed")
	}
}

func TestAPartitionsChangesThroughItsParentAreItsOwn(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table parent (gone int, amount int, day date) partition by range (day)",
		"create table source (day date, amount int)",
		"alter table parent drop column gone", "alter table parent attach partition source default")
	c.capture("source", []string{"day"}, []string{"day", "amount"})
	c.take()
	c.prove(c.changes().Fingerprint, []string{"day"}, "select distinct l.c1 from {source} as l")
	c.must("insert into parent (day, amount) values ('2024-01-01', 1)", "insert into source values ('2024-01-02', 1)")
	if got := c.changes(); keys(got) != "[2024-01-01 2024-01-02]" {
		t.Errorf("got %+v", got.Sources)
	}
}

func TestChildrenAreLoggedWithTheirParent(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int)",
		"create table child (note text) inherits (source)")
	c.capture("source", []string{"day", "amount"}, []string{"day", "amount"})
	c.take()
	for _, step := range []struct{ sql, want string }{
		{"insert into child values ('2024-01-03', 1, 'a')", "[2|2024-01-03|1]"},
		{"update child set note = 'b'", "[]"},
		{"update source set amount = 2", "[2|2024-01-03|1 2|2024-01-03|2]"},
		{"delete from source", "[2|2024-01-03|2]"},
	} {
		c.must(step.sql)
		if got := fmt.Sprint(c.logged("source")); got != step.want {
			t.Errorf("%s\ngot  %s\nwant %s", step.sql, got, step.want)
		}
		c.take()
	}
	if got := c.capture("child", []string{"day"}, nil); got.Obstacle != "it inherits from another table" {
		t.Errorf("got %+v", got)
	}
}

func TestWritesSucceedWhateverTheColumnsAre(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ü", 31) + "x"
	c := newCaptured(t, "select day, amount from source",
		"create extension citext", "create domain small as numeric(6, 1) check (value < 1000)",
		"create type mood as enum ('ok', 'sad')", "create type pair as (a int, b text)",
		`create table source (day date, amount int, j json, x xml, p point, tags text[], c citext, s small, m mood, pr pair,
			"t" text, "x.y, o." int, "own" int, "a""b; --" int, "`+long+`" int, r int4range, b bpchar, ch char(3), i interval,
			f float8, jb jsonb, g int generated always as (amount * 2) stored, numbers numeric[])`)
	all := c.rows("select attname from pg_attribute where attrelid = 'source'::regclass and attnum > 0 order by attnum")
	if got := c.capture("source", all, nil); !got.Tracked {
		t.Fatalf("got %+v", got)
	}
	c.take()
	insert := `insert into source select '2024-01-01', 1, '{"a": 1}', '<a/>', '(1,2)', '{a,b}', 'Ab', 1.25, 'ok', '(1,x)',
		't', 1, 2, 3, 4, '[1,2)', 'b ', 'c', '30 days', '-0', '{"a": 1.0}', default_g, '{1.0}' from `
	insert = strings.Replace(insert, ", default_g", "", 1)
	insert = strings.Replace(insert, "insert into source", `insert into source (day, amount, j, x, p, tags, c, s, m, pr, t, "x.y, o.", own,
		"a""b; --", "`+long+`", r, b, ch, i, f, jb, numbers)`, 1)
	for _, sql := range []string{
		insert + "generate_series(1, 1)", insert + "generate_series(1, 10)", insert + "generate_series(1, 100)",
		`update source set j = '{"a": 2}' where ctid = (select min(ctid) from source)`,
		"update source set x = '<b/>'", "update source set f = 0, i = '1 month', b = 'b'", "update source set p = '(2,3)'",
		"delete from source where ctid = (select min(ctid) from source)", "delete from source",
	} {
		c.must(sql)
		if got := c.changes().Sources[0]; !got.Changed {
			t.Errorf("%s\nis not logged", sql)
		}
		c.take()
	}
	c.must(insert+"generate_series(1, 20)", "update source set f = 0.0, amount = amount")
	c.take()
	c.must("update source set j = j, f = f")
	if got := c.changes().Sources[0]; got.Changed {
		t.Error("an UPDATE of nothing is logged")
	}
}

func TestWritesSucceedAfterColumnsChange(t *testing.T) {
	t.Parallel()
	for _, change := range []string{
		"alter table source rename column day to tag",
		"alter table source drop column day",
		"alter table source alter column day type text",
		"alter table source alter column amount type text",
		"alter table source rename column amount to betrag",
		"alter table source drop column amount",
		"alter table source rename column note to day2",
	} {
		t.Run(change, func(t *testing.T) {
			t.Parallel()
			c := newCaptured(t, sumOfSource, "create table source (note text, day date, amount int)",
				"insert into source select 'a', '2024-01-01', i from generate_series(1, 100) i")
			c.capture("source", []string{"day"}, []string{"day", "amount"})
			other := connect(t, c.url, "") // has its plans
			for _, s := range []*session{c.session, other} {
				s.must("insert into source values ('b', '2024-01-02', 1)", "update source set amount = amount + 1",
					"update source set amount = 7 where note = 'b'", "delete from source where note = 'b'")
			}
			c.take()
			c.must("drop view rwproxy_flows."+c.value("select relname from pg_class where oid = $1", c.view), change)
			for _, s := range []*session{c.session, other} {
				s.must("insert into source select from generate_series(1, 1)", "insert into source select from generate_series(1, 100)",
					"delete from source where ctid = (select min(ctid) from source)",
					"delete from source where ctid in (select ctid from source limit 30)")
			}
			known := "0"
			if strings.Contains(change, "day2") || strings.Contains(change, "amount type") {
				known = "1"
			}
			if got := fmt.Sprint(c.rows("select distinct known from " + c.value("select log from rwproxy.capture where relation = 'source'::regclass") +
				" where not pg_visible_in_snapshot(xid, (select cursor from rwproxy.streaming_table))")); got != "["+known+"]" {
				t.Errorf("known are %s columns, want %s", got, known)
			}
		})
	}
}
