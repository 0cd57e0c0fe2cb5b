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
	s.must("create streaming table any_one", // installs the functions
		"create table halves (n integer, half double precision)", "insert into halves values (7, 0), (8, 0), (2, 0)",
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
