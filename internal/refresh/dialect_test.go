package refresh_test

import (
	"strings"
	"testing"
)

const visits = `create table visits (day date, user_name text, pages integer, seconds bigint, price numeric(10, 2))`

func TestAFlowMeansWhatItsTablesDialectSays(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(visits, "insert into visits values ('2024-01-31', 'ann', 7, 2, 1.50), ('2024-02-01', null, 8, 3, 2.50)",
		`create streaming table spark (day date, rate double, at timestamp, last string) tblproperties ('rwproxy.dialect' = 'databricks')
			flow replace where day >= cast('2024-1-31' as date) - interval 0 days by name
			select day + interval 1 day as day, sum(pages) / sum(seconds) as rate, cast('2024-01-01 00:00:00' as timestamp) as at,
				max_by(concat(user_name, '\\x'), pages) as last
			from visits group by all`,
		`create streaming table plain (day date, rate double, at timestamp) flow replace where true by name
			select day, min(pages) / min(seconds) as rate, timestamp '2024-01-01' as at from visits group by all`)
	s.expect("select day, rate, last from spark order by day", `2024-02-01 3.5 ann\x`, "2024-02-02 2.6666666666666665 null")
	s.expect("select day, rate from plain order by day", "2024-01-31 3", "2024-02-01 2")
	s.expect("select attrelid::regclass, format_type(atttypid, atttypmod) from pg_attribute where attname = 'at' and attrelid = any ('{spark,plain}'::regclass[]) order by 1",
		"spark timestamp with time zone", "plain timestamp without time zone")
	// An override is in the flow's dialect, whoever refreshes.
	s.must("insert into visits values ('2024-02-01', null, 9, 3, 2.50)",
		"set rwproxy.dialect = postgres",
		"refresh streaming table spark where day = date '2024-02-01' + interval 1 day")
	s.expect("select rate from spark order by day", "3.5", "2.8333333333333335")
}

func TestTheSessionsDialectIsKeptWithTheFlow(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	s.must("create table src (n integer)", "insert into src values (7)",
		"set rwproxy.dialect = 'databricks'",
		"create streaming table kept flow replace where n > 0 by name select n, n / 2 as half from src",
		"create streaming table won tblproperties ('rwproxy.dialect' = 'postgres') flow replace where n > 0 by name select n, n / 2 as half from src",
		"create streaming table later",
		"create flow later as insert into later by name replace where n > 0 select n, 2 ^ n as x from src",
		"set rwproxy.dialect = 'postgres'")
	other := d.connect()
	other.must("refresh streaming table kept", "refresh streaming table won", "refresh streaming table later")
	other.expect("select kept.half, won.half, x from kept, won, later", "3.5 3 5")
	other.must("create or refresh streaming table kept flow replace where n > 0 by name select n, 2 ^ n as power from src")
	other.expect("select half, power from kept", "null 128")
}

func TestAnInsertIsReadInTheSessionsDialect(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table halves (n integer, half double precision)", "insert into halves values (7, 0), (8, 0), (2, 0)",
		"set rwproxy.dialect = 'databricks'",
		"insert into halves replace where n / 2 >= 3.5D select n, n / 2 from (values (7), (9)) v (n)")
	s.expect("select * from halves order by n", "2 0", "7 3.5", "9 4.5")
	s.must("set rwproxy.dialect = 'postgres'", "insert into halves replace where n / 2 >= 3 select n, n / 2 from (values (7)) v (n)")
	s.expect("select * from halves order by n", "2 0", "7 3")
	s.must("set rwproxy.dialect = 'databricks'")
	const refused = "insert into halves replace where n > 0 select n, n / 2.5 from (values (7)) v (n)"
	d := s.fails("0A000", refused)
	if d.Message != "/ between integer and numeric is not supported with rwproxy.dialect = 'databricks'" || d.Position != strings.Index(refused, "/ 2.5")+1 {
		t.Errorf("got %+v at %d", d, d.Position)
	}
}

func TestAnUnknownDialectIsRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (n integer)", "set rwproxy.dialect = 'oracle'")
	d := s.fails("22023", "create streaming table t flow replace where n > 0 by name select n from src")
	if d.Message != "invalid value for rwproxy.dialect: 'oracle'" || d.Hint != "It is postgres or databricks." {
		t.Errorf("got %+v", d)
	}
}

func TestWhatADialectCannotBeExactForIsRefusedAtItsPlace(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(visits, "set rwproxy.dialect = 'databricks'")
	for _, c := range []struct{ predicate, query, message, at string }{
		{"true", "select day, sum(price) / count(*) as mean from visits group by all", "/ between numeric and bigint", "/ count"},
		{"true", "select day, cast(price / 2D as string) as text from visits", "a text made of double precision", "cast(price"},
		{"true", "select day - date '2024-01-01' as days from visits", "- between date and date", "- date"},
		{"true", "select price / pages as x from visits qualify row_number() over (order by day) = 1", "/ between numeric and integer", "/ pages"},
		{"price / 2 > 1", "select price from visits", "/ between numeric and integer", "/ 2"},
		{"day - day = 0", "select day from visits", "- between date and date", "- day"},
	} {
		statement := "create streaming table t flow replace where " + c.predicate + " by name " + c.query
		d := s.fails("0A000", statement)
		if d.Message != c.message+" is not supported with rwproxy.dialect = 'databricks'" || d.Hint == "" ||
			d.Position == 0 || !strings.HasPrefix(statement[d.Position-1:], c.at) {
			t.Errorf("%s\ngot %+v", statement, d)
		}
	}
}

// Without a dialect of its own a flow writes what psql prints for its query.
func TestTheDefaultDialectWritesWhatPostgresPrints(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	const query = `select 7 / 2 as a, 2 ^ 3 as b, log(100) as c, concat('a', null) as d, 'a\nb' as e, (array[1, 2])[1] as f,
		date '2024-02-01' - date '2024-01-01' as g, round(2.5::float8) as h, extract(dow from date '2024-01-07') as i,
		cast(2.7 as int) as j, regexp_replace('aa', 'a', 'b') as k, initcap('a-b') as l, substring('abc', 0, 2) as m,
		(select x from (values (1), (null)) v (x) order by x limit 1) as n, avg(x) as o, 1.0 / 3 as p
		from (values (1), (2)) v (x)`
	s.must("create streaming table t flow replace where true by name " + query)
	s.expect("select * from t", s.rows(query)...)
}

func TestConstraintsOfATableMeanWhatItsDialectSays(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("set time zone 'UTC'", "create table src (k integer)", "insert into src values (1)", "set rwproxy.dialect = 'databricks'",
		`create streaming table spark (
				k int not null check (k / 2 = 0.5D), half double default 7 / 2 not null, cut int default 7 / 2 comment 'cut', at string default date '2024-01-31',
				tab string default 'a\tb', bits int default (2 ^ 3) check (bits <> 8), n decimal(3, 1) default null,
				zone string default current_timezone(), constraint tabbed check (tab = "a\tb" and substring(tab, -1) = 'b'))
			flow replace where true by name select k from src`,
		`create streaming table plain (k int, half double default 7 / 2, tab text default 'a\tb') tblproperties ('rwproxy.dialect' = 'postgres')
			flow replace where true by name select k from src`)
	s.expect(`select k, half, cut, at, tab = e'a\tb', bits, n, zone from spark`, "1 3.5 3 2024-01-31 t 1 null UTC")
	s.expect(`select k, half, tab from plain`, `1 3 a\tb`)
	s.fails("23514", "insert into spark by name select 2 as k")
	s.must("create or refresh streaming table spark (k int, half double, cut int, at string, tab string, bits int, n decimal(3, 1), zone string, more int default 9 / 2) flow replace where true by name select k from src")
	s.expect("select more from spark", "4")

	for _, c := range []struct{ columns, code, message, at string }{
		{"k int, n tinyint", "0A000", "the type TINYINT under the dialect of Databricks is not supported in a REPLACE WHERE flow", "tinyint"},
		{"k int default 127Y", "0A000", "the type TINYINT under the dialect of Databricks is not supported in a REPLACE WHERE flow", "127Y"},
		{"k int check (initcap('x') = 'X')", "0A000", "the function initcap under the dialect of Databricks is not supported in a REPLACE WHERE flow", "initcap"},
		{"k int, constraint c check (k > to_number('1', '9'))", "0A000", "the function to_number under the dialect of Databricks is not supported in a REPLACE WHERE flow", "to_number"},
	} {
		statement := "create streaming table refused (" + c.columns + ") flow replace where true by name select k from src"
		d := s.fails(c.code, statement)
		if d.Message != c.message || d.Position == 0 || !strings.HasPrefix(statement[d.Position-1:], c.at) {
			t.Errorf("%s\ngot %+v", statement, d)
		}
	}
	// What SHOW CREATE TABLE prints makes the same table again.
	s.must(`create streaming table kept (b bigint check (b > 1.5 and b < cast('1e12' as decimal(20, 1))), back string default 'a\\b')
		flow replace where true by name select 99999999999L as b`)
	s.recreate("kept")
	s.recreate("spark")
	s.expect(`select half, cut, at, tab = e'a\tb', more from spark`, "3.5 3 2024-01-31 t 4")
	s.expect("select * from kept", `99999999999 a\b`)
}

func TestAFunctionThatDatabricksAloneHasIsHintedAtOrRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (a text)")
	const create = "create streaming table dst flow replace where true by name select contains(a, 'b') as found from src"
	s.failsAt("42883", "function contains(text, unknown) does not exist", create, "contains(")
	if d := s.fails("42883", create); d.Hint != "Databricks has a function contains. Use strpos(text, part) > 0." {
		t.Errorf("the hint is %q", d.Hint)
	}
	s.must("set rwproxy.dialect = 'databricks'")
	s.failsAt("0A000", "the function contains is not supported", create, "contains(")
}
