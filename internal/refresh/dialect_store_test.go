package refresh_test

import (
	"strings"
	"testing"
)

// Databricks stores what a cast gives: it cuts a fraction off and fails where
// the value does not fit.
func TestAFlowInTheDialectOfDatabricksStoresWhatDatabricksStores(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (k integer, n numeric(10, 2), f double precision, d date, at timestamptz, ok boolean)",
		"set time zone 'UTC'", "set rwproxy.dialect = 'databricks'",
		"insert into src values (1, 2.7, -2.7, '2024-01-31', '2024-01-31 10:00', true), (2, 1.5, 0.30000000000000004, null, null, null)",
		`create streaming table stored (k int, n int, f bigint, m decimal(20, 18), t1 string, t2 string, t3 string, t4 string)
			flow replace where n = 2 by name
			select k, n, f, f as m, n as t1, d as t2, at as t3, ok as t4 from src`)
	// The predicate sees 2, not 2.7 and not 3.
	s.expect("select * from stored", "1 2 -2 -2.700000000000000000 2.70 2024-01-31 2024-01-31 10:00:00 true")
	s.must("refresh streaming table stored where n = 1")
	s.expect("select n, f, m from stored order by k desc", "1 0 0.300000000000000040", "2 -2 -2.700000000000000000")
	s.must("insert into src values (3, 99999999.99, 3e9, null, null, null)")
	s.fails("22003", "create streaming table overflow (f int) flow replace where true by name select f from src")
	s.must("create streaming table plain (n int) tblproperties ('rwproxy.dialect' = 'postgres') flow replace where true by name select n from src where k < 3")
	s.expect("select n from plain order by n", "2", "3")

	for _, c := range []struct{ columns, query, message string }{
		{"(x string)", "select f as x from src", `storing double precision as text in column "x"`},
		{"(x string)", "select sum(n) as x from src", `storing numeric as text in column "x"`},
		{"(x string)", "select at - at as x from src", `storing interval as text in column "x"`},
		{"(x string)", "select array(1) as x", `storing integer[] as text in column "x"`},
		{"(x array<int>)", "select array(2.7) as x", `storing numeric[] as integer[] in column "x"`},
	} {
		statement := "create streaming table refused " + c.columns + " flow replace where true by name " + c.query
		d := s.fails("0A000", statement)
		if d.Message != c.message+" is not supported with rwproxy.dialect = 'databricks'" || d.Hint == "" || d.Position != strings.Index(statement, "select")+1 {
			t.Errorf("%s\ngot %+v", statement, d)
		}
	}
}

func TestAnInsertInTheDialectOfDatabricksStoresWhatDatabricksStores(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (k integer, f double precision)", "insert into src values (1, 2.7), (2, -2.7)",
		"create domain whole as integer",
		"create table stored (k whole default 9, n integer default 5, t text)",
		"set rwproxy.dialect = 'databricks'")
	for _, c := range []struct {
		statement string
		want      []string
	}{
		{"insert into stored replace where n in (2, -2) select k, f as n, k as t from src", []string{"1 2 1", "2 -2 2"}},
		{"insert into stored by name replace using (n) select 2.2D as n, date '2024-01-31' as t", []string{"2 -2 2", "9 2 2024-01-31"}},
		{"insert overwrite stored values (1.9, 2.9, 'x'), (default, default, null)", []string{"1 2 x", "9 5 null"}},
		{"insert overwrite stored values (7, 2.9D, true)", []string{"7 2 true"}},
		{"insert into stored as o replace on (o.n = i.n) (select 8 as k, 2.999999999999999999 as n, '' as t) as i", []string{"8 2 "}},
		{"insert overwrite stored partition (n = 4.9) select 1.5 as k, 't' as t", []string{"1 4 t", "8 2 "}},
		{"insert into stored by name select 3.5 as k, 6.5 as n", []string{"1 4 t", "3 6 null", "8 2 "}},
		{"insert overwrite stored values ('7', '8', 'y')", []string{"7 8 y"}},
	} {
		s.must(c.statement)
		s.expect("select * from stored order by k, n", c.want...)
	}
	s.fails("22003", "insert overwrite stored select k, 3e9 as n, 'x' as t from src")
	s.fails("42804", "insert overwrite stored select k, 'x'::string as n, 'x' as t from src")
	s.fails("0A000", "insert overwrite stored select k, 1 as n, f as t from src")
	s.must("set rwproxy.dialect = 'postgres'", "insert overwrite stored select k, f as n, f as t from src")
	s.expect("select * from stored order by k", "1 3 2.7", "2 -3 -2.7")
}
