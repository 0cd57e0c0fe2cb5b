package refresh_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// lastRefresh is the technique and the reason of the last refresh of a table.
const lastRefresh = "select last_technique, coalesce(last_reason, '-') from rwproxy.flows where target_table = '%s'"

// refreshed refreshes a table and expects a technique and a reason, and the
// window to be what a full recompute would have written.
func (s *session) refreshed(table, want string) {
	s.t.Helper()
	s.must("refresh streaming table " + table)
	s.expect(fmt.Sprintf(lastRefresh, table), want)
	s.exact(table)
}

// exact expects a table's rows in its window to be those of its flow's query.
func (s *session) exact(table string) {
	s.t.Helper()
	row := s.rows("select t.last_window, t.view::text from rwproxy.streaming_table t where t.target = '" + table + "'::regclass")[0]
	cut := strings.LastIndex(row, " ")
	window, view := row[:cut], row[cut+1:]
	s.expect(fmt.Sprintf(`
		select count(*) from (
		    (select * from %[1]s where (%[3]s) except all select * from %[2]s where (%[3]s))
		    union all
		    (select * from %[2]s where (%[3]s) except all select * from %[1]s where (%[3]s))) as differing`, table, view, window), "0")
}

// revenue is a flow over many days of sales.
func revenue(s *session, properties string) {
	s.must(
		"create table sales (day date not null, shop int, amount int)",
		"insert into sales select date '2024-01-01' + n % 100, n % 7, n from generate_series(1, 5000) n",
		"create streaming table revenue "+properties+` flow replace where day >= '2024-02-01' by name
		 select day, shop, sum(amount) as amount, count(*) as sales from sales group by day, shop`,
		"analyze sales", "analyze revenue",
	)
}

func TestOnlyWhatChangedIsRecomputed(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.refreshed("revenue", "NO_OP -")
	s.must("update sales set amount = amount + 1 where day = '2024-02-10' and shop = 3")
	s.refreshed("revenue", "INCREMENTAL -")
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes where technique = 'INCREMENTAL'", "1 1")
	s.must(
		"delete from sales where day = '2024-02-11'",
		"insert into sales values ('2024-03-01', 1, 5), ('2024-01-05', 1, 5), ('2030-01-01', null, 1)",
	)
	s.refreshed("revenue", "INCREMENTAL -")
	s.refreshed("revenue", "NO_OP -")
}

func TestOfManyChangedRowsTheKeysOrTheWindowsColumnAreKnown(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table visit (id int primary key, day date not null)",
		"insert into visit select n, date '2024-01-01' + n / 10000 from generate_series(0, 99999) n",
		"create streaming table visits flow replace where day >= '2024-01-03' by name select id, day from visit",
		"analyze visit", "analyze visits",
		"update visit set id = -id where day = '2024-01-05'")
	s.refreshed("visits", "INCREMENTAL -")
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes where technique = 'INCREMENTAL'", "10000 10000")

	// So many that they are logged, but too many for the window to be narrowed by.
	s.must("update visit set id = -id where day = '2024-01-06' and id % 2 = 0")
	s.refreshed("visits", "INCREMENTAL -")
	s.expect("select applied_predicate like '%day%' and applied_predicate not like '%id%' from rwproxy.refreshes order by requested_at desc limit 1", "t")

	s.must("update visit set day = day where id % 100 = 0", "analyze visit")
	s.refreshed("visits", "NO_OP -")
	s.must("alter table visit add amount int default 0", "drop table visits",
		"create streaming table visits flow replace where day >= '2024-01-03' by name select id, day, amount from visit",
		"update visit set amount = 1 where id % 32 = 0")
	s.refreshed("visits", "INCREMENTAL -")
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes order by requested_at desc limit 1", "2500 2500")

	// Of every day some: each one's day says nothing.
	s.must("update visit set amount = 2 where id % 4 = 0")
	s.refreshed("visits", "FULL_RECOMPUTE TOO_MANY_CHANGES")
}

func TestAWindowIsNarrowedWhateverThePlannerThinksOfItsGroups(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table shop (shop int primary key, region int not null)",
		"insert into shop select n, n % 50 from generate_series(0, 199) n",
		"create table sale (day date not null, shop int not null)",
		"insert into sale select date '2024-01-01' + n / 5000, n % 200 from generate_series(0, 49999) n",
		"create index on sale (day)",
		`create streaming table regions flow replace where day >= '2024-01-05' by name
		 select day, region, count(*) as sales from sale join shop using (shop) group by day, region`,
		"analyze sale", "analyze shop", "analyze regions",
		"delete from sale where day = '2024-01-08' and shop = 7")
	s.refreshed("regions", "INCREMENTAL -")
}

func TestAChangeOutsideTheWindowIsReadAndWritesNothing(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("insert into sales values ('2024-01-05', 1, 5)", "insert into revenue values ('2024-01-05', 1, 5, 1)")
	s.refreshed("revenue", "INCREMENTAL -")
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes where technique = 'INCREMENTAL'", "0 0")
	s.expect("select count(*) from revenue where day = '2024-01-05'", "1")
}

func TestARolledBackChangeIsNone(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("begin", "insert into sales values ('2024-03-01', 1, 5)", "rollback")
	s.refreshed("revenue", "NO_OP -")
}

func TestAChangeThatCommitsLateIsTakenIn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, late := d.connect(), d.connect()
	revenue(s, "")
	late.must("begin", "insert into sales values ('2024-03-01', 1, 5)")
	s.must("insert into sales values ('2024-03-02', 1, 5)")
	s.refreshed("revenue", "INCREMENTAL -")
	late.must("commit")
	s.refreshed("revenue", "INCREMENTAL -")
	s.refreshed("revenue", "NO_OP -")
}

func TestTheWindowIsRecomputedForAReason(t *testing.T) {
	t.Parallel()
	change := "insert into sales values ('2024-03-01', 1, 5)"
	for _, c := range []struct {
		name   string
		setup  []string
		reason string
	}{
		{"somebody wrote to the window", []string{"update revenue set amount = 0 where day = '2024-02-05'"}, "EXTERNAL_CHANGE_IN_REPLACE_WINDOW"},
		{"somebody deleted from the window", []string{"delete from revenue where day = '2024-02-05'"}, "EXTERNAL_CHANGE_IN_REPLACE_WINDOW"},
		{"somebody truncated the target", []string{"truncate revenue"}, "EXTERNAL_CHANGE_IN_REPLACE_WINDOW"},
		{"a source was truncated", []string{"truncate sales", change}, "CHANGE_NOT_NARROWABLE"},
		{"a column of a source changed its type", []string{"alter table sales add column note text", change}, "DEFINITION_CHANGED"},
		{"a trigger was disabled for a while", []string{
			"alter table sales disable trigger all", change, "alter table sales enable trigger all",
		}, "DEFINITION_CHANGED"},
		{"a unique index was created", []string{"create unique index on sales (day, shop, amount)", change}, "DEFINITION_CHANGED"},
		{"everything changed", []string{"update sales set amount = amount + 1"}, "TOO_MANY_CHANGES"},
		{"the policy wants it", []string{"alter streaming table revenue set tblproperties ('rwproxy.refresh_policy' = 'full')"}, "REFRESH_POLICY"},
		{"the source got row-level security", []string{"alter table sales enable row level security", "refresh streaming table revenue", change}, "SOURCE_NOT_TRACKED"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newDatabase(t).connect()
			revenue(s, "")
			s.must(c.setup...)
			s.refreshed("revenue", "FULL_RECOMPUTE "+c.reason)
		})
	}
}

func TestATriggerThatStoresRowsUnderOtherKeysKeepsThemAll(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("create function merge_shops() returns trigger language plpgsql as 'begin new.shop := new.shop / 2; return new; end'",
		"create trigger merge before insert on revenue for each row execute function merge_shops()")
	s.must("refresh streaming table revenue")
	before := s.rows("select count(*) from revenue")[0]
	s.must("refresh streaming table revenue")
	s.expect(fmt.Sprintf(lastRefresh, "revenue"), "NO_OP -")
	s.must("update sales set amount = amount + 1 where day = '2024-02-10' and shop = 1", "refresh streaming table revenue")
	s.expect(fmt.Sprintf(lastRefresh, "revenue"), "FULL_RECOMPUTE CHANGE_NOT_NARROWABLE")
	s.expect("select count(*) from revenue", before)
}

func TestADatabaseMayPublishAllItsTables(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("alter table sales replica identity full", "alter table revenue replica identity full",
		"create publication everything for all tables",
		"update sales set amount = amount + 1 where day = '2024-02-10' and shop = 3")
	s.refreshed("revenue", "INCREMENTAL -")
	s.expect(`
		select count(*)
		  from pg_class c
		  join pg_namespace n on n.oid = c.relnamespace
		  left join pg_index i on i.indrelid = c.oid and i.indisprimary
		 where n.nspname in ('rwproxy', 'rwproxy_log') and c.relkind = 'r' and c.relreplident <> 'f' and i.indrelid is null`, "0")
}

func TestAnExternalChangeOutsideTheWindowDoesNotMatter(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("insert into revenue values ('2023-01-01', 1, 1, 1), (null, 1, 1, 1)", "update revenue set amount = 2 where day = '2023-01-01'")
	s.refreshed("revenue", "NO_OP -")
	s.expect("select count(*) from revenue where day = '2023-01-01' or day is null", "2")
}

func TestAQueryThatDependsOnTheClockIsRecomputed(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table sales (day date, amount int)",
		"create streaming table recent flow replace where day > '2024-01-01' by name select day, amount, current_date as today from sales",
	)
	s.refreshed("recent", "FULL_RECOMPUTE QUERY_NOT_DETERMINISTIC")
}

func TestAPredicateOnAnAggregateIsRecomputed(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table sales (day date, amount int)",
		"insert into sales select date '2024-01-01' + n % 100, n from generate_series(1, 1000) n",
		"create streaming table big flow replace where total > 100 by name select day, sum(amount) as total from sales group by day",
		"insert into sales values ('2024-01-05', 7)",
	)
	s.refreshed("big", "FULL_RECOMPUTE UNSUPPORTED_REPLACE_WHERE_PREDICATE")
}

func TestAFlowOnAFlowStaysIncremental(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must(
		`create streaming table by_day flow replace where day >= '2024-02-01' by name
		 select day, sum(amount) as amount from revenue group by day`,
		"analyze by_day",
		"update sales set amount = amount + 1 where day = '2024-02-10' and shop = 3",
	)
	s.refreshed("by_day", "NO_OP -")
	s.refreshed("revenue", "INCREMENTAL -")
	s.refreshed("by_day", "INCREMENTAL -")
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes where target_table = 'by_day' and technique = 'INCREMENTAL'", "1 1")
}

func TestAJoinIsNarrowedThroughTheTableItIsJoinedTo(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table shops (id int primary key, city text)",
		"insert into shops select n, 'city ' || n from generate_series(1, 50) n",
		"create table sales (day date not null, shop int, amount int)",
		"insert into sales select date '2024-01-01' + n / 50, n / 100, n from generate_series(1, 5000) n",
		`create streaming table lines flow replace where day >= '2024-01-01' by name
		 select s.day, s.amount, p.city from sales s join shops p on p.id = s.shop`,
		"analyze",
		"update shops set city = 'moved' where id = 3",
	)
	s.refreshed("lines", "INCREMENTAL -")
	s.must("update shops set city = 'again' where id = 3", "update sales set shop = 4 where shop = 3")
	s.refreshed("lines", "INCREMENTAL -")
}

func TestAFailingPolicyNamesTheReason(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "tblproperties ('rwproxy.refresh_policy' = 'incremental')")
	s.must("insert into sales values ('2024-03-01', 1, 5)")
	s.refreshed("revenue", "INCREMENTAL -")
	s.must("truncate sales")
	d := s.fails("55000", "refresh streaming table revenue")
	if !strings.Contains(d.Detail, "CHANGE_NOT_NARROWABLE") || !strings.Contains(d.Detail, "public.sales") {
		t.Error("the reason is not named:", d.Detail)
	}
	s.must("refresh streaming table revenue full")
	s.exact("revenue")
}

func TestAnOverrideLeavesTheChangesToTheNextRefresh(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("update sales set amount = 0 where day in ('2024-02-10', '2024-02-11')", "refresh streaming table revenue where day = '2024-02-10'")
	s.expect("select amount from revenue where day = '2024-02-10' and shop = 5", "0")
	s.refreshed("revenue", "INCREMENTAL -")
}

func TestAnOverrideThatMayHaveReplacedOtherRowsThanItDeletedIsNotBuiltUpon(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("create sequence turn",
		"create function stored() returns boolean stable language sql as 'select exists (select from revenue)'",
		"create function odd(date) returns boolean language sql as $$ select nextval('turn') % 2 = 1 $$",
		"create operator ?? (function = odd, rightarg = date)",
	)
	for _, where := range []string{
		"nextval('turn') % 2 = 1", `"random"() < 0.5`, "pg_catalog.random() < 0.5", "stored()", "?? day",
	} {
		s.must("refresh streaming table revenue where "+where, "refresh streaming table revenue where day = '2024-02-10'")
		s.refreshed("revenue", "FULL_RECOMPUTE PRIOR_REPLACE_WHERE_NOT_DETERMINISTIC")
		s.refreshed("revenue", "NO_OP -")
	}
	s.must("refresh streaming table revenue where day between current_date - 1 and now() or abs(shop) in (1, 2)")
	s.refreshed("revenue", "NO_OP -")
}

func TestARefreshInsideATransactionIsIncrementalAndRollsBackWithIt(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("begin", "update sales set amount = 0 where day = '2024-02-10'")
	s.joined = true
	s.must("refresh streaming table revenue")
	s.expect(fmt.Sprintf(lastRefresh, "revenue"), "INCREMENTAL -")
	s.exact("revenue")
	s.joined = false
	s.must("rollback")
	s.refreshed("revenue", "NO_OP -")
	s.must("begin", "update sales set amount = 0 where day = '2024-02-10'")
	s.joined = true
	s.must("refresh streaming table revenue", "update sales set amount = 1 where day = '2024-02-11'")
	s.joined = false
	s.must("commit")
	s.refreshed("revenue", "INCREMENTAL -")
}

func TestExplainSaysWhatARefreshWouldDoAndDoesNothing(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	s.must("update sales set amount = 0 where day = '2024-02-10' and shop = 3")
	before := s.rows("select count(*) from rwproxy.refreshes")
	lines := strings.Join(s.shown("explain refresh streaming table revenue"), "\n")
	for _, want := range []string{
		"Refresh of public.revenue: INCREMENTAL", "Window: day >= '2024-02-01'", "Source public.sales: changed:", "2024-02-10", "delete from", "insert into",
	} {
		if !strings.Contains(lines, want) {
			t.Errorf("%q is missing in\n%s", want, lines)
		}
	}
	s.expect("select count(*) from rwproxy.refreshes", before...)
	s.expect("select count(*) from revenue where day = '2024-02-10' and amount = 0", "0")
	if full := s.shown("explain refresh streaming table revenue full")[0]; full != "Refresh of public.revenue: FULL_RECOMPUTE (FULL_REFRESH)" {
		t.Error(full)
	}
	if json := s.shown("explain (format json) refresh streaming table revenue where day = '2024-02-10'")[0]; !strings.Contains(json, `"Reason": "UNSUPPORTED_REPLACE_WHERE_PREDICATE"`) {
		t.Error(json)
	}
	s.refreshed("revenue", "INCREMENTAL -")
}

func TestAPredicateThatDependsOnMoreThanTheRowAndTheClockIsNotDeterministic(t *testing.T) {
	t.Parallel()
	for predicate, want := range map[string]string{
		"day >= current_date - 7":                             "NO_OP -",
		"day >= now() - interval '7 days'":                    "NO_OP -",
		"day >= date_trunc('month', localtimestamp)":          "NO_OP -",
		"day >= current_setting('app.since', true)::date":     "FULL_RECOMPUTE REPLACE_WHERE_NOT_DETERMINISTIC",
		"current_user = 'postgres'":                           "FULL_RECOMPUTE REPLACE_WHERE_NOT_DETERMINISTIC",
		"day > now() - random() * interval '1 day'":           "FULL_RECOMPUTE REPLACE_WHERE_NOT_DETERMINISTIC",
		"age(day) < interval '7 days'":                        "FULL_RECOMPUTE REPLACE_WHERE_NOT_DETERMINISTIC",
		"day > (clock_timestamp() - interval '7 days')::date": "FULL_RECOMPUTE REPLACE_WHERE_NOT_DETERMINISTIC",
	} {
		t.Run(predicate, func(t *testing.T) {
			t.Parallel()
			s := newDatabase(t).connect()
			s.must("create table sales (day date, amount int)",
				"create streaming table copied flow replace where "+predicate+" by name select day, amount from sales",
				"refresh streaming table copied")
			s.expect(fmt.Sprintf(lastRefresh, "copied"), want)
		})
	}
}

func TestWhatNoFlowNeedsIsRemoved(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "")
	triggers := "select count(*) from pg_trigger where tgrelid = 'sales'::regclass"
	s.expect(triggers, "4")
	s.must("drop table revenue")
	deadline := time.Now().Add(time.Minute)
	for s.rows(triggers)[0] != "0" {
		if time.Now().After(deadline) {
			t.Fatal("the triggers stay")
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.expect("select count(*) from rwproxy.capture", "0")
}

func TestWhoeverDefinesAFlowIsToldWhatCannotBeTracked(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create unlogged table staging (day date)",
		"create streaming table staged flow replace where day > '2024-01-01' by name select day from staging")
	var said []string
	for _, n := range s.notices {
		said = append(said, n.Message+" "+n.Hint)
	}
	want := "changes of public.staging cannot be recorded: it is an unlogged table, which is emptied after a crash ALTER TABLE public.staging SET LOGGED."
	if !slices.Contains(said, want) {
		t.Errorf("%q is not among %q", want, said)
	}
	s.refreshed("staged", "FULL_RECOMPUTE SOURCE_NOT_TRACKED")
}

func TestWhatAQueryDependsOnBesidesItsTablesIsNoticed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		setup  []string
		value  string // of a row of src
		change string
		want   string
	}{
		{
			"a function that a function calls",
			[]string{
				"create function inner_one(int) returns int language sql immutable as 'select $1 + 1'",
				"create function outer_one(int) returns int language sql immutable as 'select public.inner_one($1)'",
			},
			"outer_one(n)", "create or replace function inner_one(int) returns int language sql immutable as 'select $1 + 1000'",
			"FULL_RECOMPUTE DEFINITION_CHANGED",
		},
		{
			"a function with names of the search_path",
			[]string{
				"create function inner_one(int) returns int language sql immutable as 'select $1 + 1'",
				"create function outer_one(int) returns int language sql immutable as 'select inner_one($1)'",
			},
			"outer_one(n)", "insert into src values (7)", "FULL_RECOMPUTE CHANGE_NOT_NARROWABLE",
		},
		{
			"an attribute of a composite type",
			[]string{"create type pair as (a int, b int)", "alter table src add column p pair default row(1, 2)"},
			"p::text", "alter type pair add attribute c int cascade", "FULL_RECOMPUTE DEFINITION_CHANGED",
		},
		{
			"the name of a relation",
			[]string{"create table named ()", "insert into src select 'named'::regclass::oid::int"},
			"n::oid::regclass::text", "alter table named rename to renamed", "FULL_RECOMPUTE QUERY_NOT_DETERMINISTIC",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newDatabase(t).connect()
			s.must("create table src (n int)", "insert into src values (1), (2)")
			s.must(c.setup...)
			s.must("create streaming table dst flow replace where n > 0 by name select n, "+c.value+" as v from src", c.change)
			s.refreshed("dst", c.want)
		})
	}
}

func TestAFunctionOfThePredicateIsPartOfTheDefinition(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (n int)", "insert into src values (1), (2)",
		"create function least_n() returns int language sql immutable return 2",
		"create streaming table dst flow replace where n >= least_n() by name select n from src")
	s.refreshed("dst", "NO_OP -")
	s.must("create or replace function least_n() returns int language sql immutable return 1")
	s.refreshed("dst", "FULL_RECOMPUTE DEFINITION_CHANGED")
	s.expect("select count(*) from dst", "2")
}

// A route that knows nothing of rows with NULL reaches all of them, also when it
// leads to no key.
func TestAChangeThatLeadsToNoKeyReachesTheRowsWithout(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table shop (shop int, city text)",
		"insert into shop values (1, 'a'), (2, 'b')",
		"create table sale (shop int, amount int)",
		"insert into sale select n % 2 + 1, n from generate_series(1, 100) n",
		`create streaming table cities flow replace where true by name
		 select city, count(*) as sales from sale left join shop using (shop) group by city`,
		"analyze",
		"insert into sale values (3, 1)")
	s.refreshed("cities", "INCREMENTAL -")
	s.expect("select sales from cities where city is null", "1")
	s.must("delete from sale where shop = 3")
	s.refreshed("cities", "INCREMENTAL -")
}
