package refresh_test

import (
	"testing"
)

func TestADateWordThatTheViewWouldFreezeIsRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (d date, word text)")
	d := s.fails("0A000", `create streaming table dst flow replace where d > '2024-01-01' by name select d from src where d < 'today'`)
	if d.Position != 100 {
		t.Errorf("position %d, want 100", d.Position)
	}
	s.fails("0A000", `create streaming table dst flow replace where d > 'yesterday' by name select d from src`)
	s.must(`create streaming table dst flow replace where word <> 'today' by name select d, word from src where word <> 'now'`)
	s.expect("select count(*) from rwproxy.flows", "1")
}

func TestATypeChangeLeavesDataAndDefinition(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	before := s.rows("select query from rwproxy.flows")
	s.fails("42804", `create or refresh streaming table by_day flow replace where day >= '2024-01-01' by name
		select day, sum(amount)::text as amount from sales group by day`)
	s.expect("select * from by_day", "2024-01-01 5.00")
	s.expect("select query from rwproxy.flows", before...)
	s.must("refresh streaming table by_day")
}

func TestADeclaredTypeMayBeSpeltDifferently(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (a int)",
		"create streaming table dst (a bigint) flow replace where a > 0 by name select a from src",
		"create or refresh streaming table dst (a int8, b decimal(4,1)) flow replace where a > 0 by name select a from src")
	s.expect("select attname, format_type(atttypid, atttypmod) from pg_attribute where attrelid = 'dst'::regclass and attnum > 0 order by attnum",
		"a bigint", "b numeric(4,1)")
	s.fails("42804", "create or refresh streaming table dst (a int) flow replace where a > 0 by name select a from src")
}

func TestRolesThatCouldReadTheOldViewCanReadTheNewOne(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("do $$ begin if not exists (select from pg_roles where rolname = 'grants_reader') then create role grants_reader; end if; end $$")
	view := s.rows("select c.oid::regclass from pg_class c where relnamespace = 'rwproxy_flows'::regnamespace")[0]
	s.must("grant select on "+view+" to grants_reader",
		`create or refresh streaming table by_day flow replace where day >= '2024-01-01' by name
		 select day, sum(amount) as amount, count(*) as n from sales group by day`)
	s.expect("select c.oid::regclass::text <> '"+view+"', has_table_privilege('grants_reader', c.oid, 'select') from pg_class c where relnamespace = 'rwproxy_flows'::regnamespace",
		"t t")
	s.must("drop table by_day")
}

func TestAFlowKeepsTheSettingsOfItsAuthor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	author := d.connect()
	author.must("set timezone = 'Pacific/Kiritimati'", "create schema mine", "set search_path = mine",
		"create function threshold() returns int language sql immutable as 'select 10'",
		"create table src (at timestamptz, n int)",
		"insert into src values ('2024-01-01 11:00+00', 11), ('2024-01-01 09:00+00', 12), ('2024-01-01 09:00+00', 1)",
		`create streaming table dst flow replace where day >= '2024-01-02' and n > threshold() by name
		 select at::date as day, n from src`)
	author.expect("select * from dst", "2024-01-02 11")
	other := d.connect()
	other.must("set timezone = 'UTC'", "refresh streaming table mine.dst")
	other.expect("select * from mine.dst", "2024-01-02 11")
	other.expect("select current_setting('TimeZone'), current_setting('search_path')", `UTC "$user", public`)
}

func TestSettingsArePutBackInsideATransaction(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	author := d.connect()
	author.must("set timezone = 'Asia/Tokyo'")
	sales(author)
	s := d.connect()
	s.must("set timezone = 'UTC'", "begin", "set local datestyle = 'SQL, DMY'")
	s.joined = true
	s.must("refresh streaming table by_day")
	s.expect("select current_setting('TimeZone'), current_setting('DateStyle')", "UTC SQL, DMY")
	s.must("rollback")
}

func TestDatabricksFunctionsResolveOnlyWherePostgresLacksThem(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create function date_add(date, int) returns date language sql immutable as 'select $1 + 1000 * $2'",
		"create table src (d date)", "insert into src values ('2024-01-01')",
		"create streaming table dst flow replace where true by name select d, date_add(d, 1) as later from src")
	s.expect("select * from dst", "2024-01-01 2026-09-27")
}

func TestAnUnusableQueryCreatesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ code, query string }{
		"an unknown table":           {"42P01", "select * from nowhere"},
		"an unknown column":          {"42703", "select nope from src"},
		"two columns of one name":    {"42701", "select d, d from src"},
		"a statement that writes":    {"0A000", "with w as (insert into src values (null) returning d) select d from w"},
		"a parameter":                {"42P02", "select d from src where d = $1"},
		"a view option behind it":    {"42601", "select d from src with check option"},
		"a temporary table":          {"42P16", "select d from scratch"},
		"a failing row":              {"22012", "select d, 1 / 0 as n from src"},
		"a predicate column lacking": {"42703", "select 1 as other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newDatabase(t).connect()
			s.must("create table src (d date)", "insert into src values ('2024-01-01')", "create temporary table scratch (d date)")
			s.fails(c.code, "create streaming table dst flow replace where d is not null by name "+c.query)
			s.expect("select to_regclass('dst')", "null")
			s.expect("select count(*) from pg_class where relnamespace = to_regnamespace('rwproxy_flows')", "0")
			s.expect("select count(*) from rwproxy.flows", "0")
		})
	}
}
