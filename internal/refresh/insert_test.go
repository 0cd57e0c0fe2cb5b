package refresh_test

import (
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/rewrite"
)

// facts is a table of facts and one of what is to replace some of them.
func facts(t *testing.T) *session {
	t.Helper()
	s := newDatabase(t).connect()
	s.must(
		"create table facts (id int, day date, region text, amount numeric(8,2))",
		`insert into facts values (1, '2024-01-30', 'n', 10), (2, '2024-01-31', 'n', 20), (3, '2024-02-01', 's', 30),
			(4, '2024-02-02', null, 40), (5, null, 'n', 50)`,
		"create table source (id int, day date, region text, amount numeric(8,2))",
		"insert into source values (6, '2024-02-01', 'n', 60), (7, '2024-02-03', 's', 70)",
	)
	return s
}

// ids are those of the facts.
const ids = "select coalesce(string_agg(id::text, ' ' order by id), 'none') from facts"

// insert runs an INSERT that has to succeed and checks its tag.
func (s *session) insert(tag, sql string) {
	s.t.Helper()
	statement, err := rewrite.Parse(sql, rewrite.Lexical{})
	if err != nil {
		s.t.Fatalf("%s\n%v", sql, err)
	}
	result, err := s.engine.Run(s.t.Context(), s, statement)
	if err != nil || result.Tag != tag {
		s.t.Fatalf("%s\ngot %q, %v, want %q", sql, result.Tag, err, tag)
	}
}

// failsAt runs a statement that has to fail at a place of its text.
func (s *session) failsAt(code, message, sql, at string) {
	s.t.Helper()
	d := s.fails(code, sql)
	if !strings.Contains(d.Message, message) {
		s.t.Errorf("%s\ngot %q, want %q", sql, d.Message, message)
	}
	if got := string([]rune(sql)[max(d.Position-1, 0):]); d.Position == 0 || !strings.HasPrefix(got, at) {
		s.t.Errorf("%s\n%s\ngot position %d (%s), want %s", sql, d.Message, d.Position, got, at)
	}
}

func TestReplaceWhereReplacesTheRowsOfItsPredicate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sql, tag, left string }{
		{"insert into facts replace where day >= '2024-02-01' select * from source", "2", "1 2 5 6 7"},
		{"insert into table facts replace where day >= '2024-02-01' table source", "2", "1 2 5 6 7"},
		{"insert into facts by name replace where day >= '2024-02-01' select amount, id, day from source", "2", "1 2 5 6 7"},
		{"insert into facts (day, id) replace where day >= '2024-02-01' select day, id from source", "2", "1 2 5 6 7"},
		{"insert into facts replace where day >= '2024-02-01' values (8, '2024-02-08', 'x', '1.5')", "1", "1 2 5 8"},
		{"insert into facts replace where facts.day >= '2024-02-01' select * from source", "2", "1 2 5 6 7"},
		{"insert into public.facts as f replace where f.day == date '2024-02-01' values (9, date '2024-02-01', 'n', 1)", "1", "1 2 4 5 9"},
		{"with x as (select * from source) insert into facts replace where day > '2024-01-31' select * from x where id = 6", "1", "1 2 5 6"},
		{"with x as (select 6 as id), z as (select 1) insert into facts replace where day > '2024-01-31' " +
			"with y as (select source.* from source, x where source.id = x.id) select * from y", "1", "1 2 5 6"},
		{"insert into facts replace where day >= '2024-02-01' (select * from source union all select 8, '2024-02-02', 'n', 1)", "3", "1 2 5 6 7 8"},
		{"insert into facts replace where day >= '2024-02-01' select id, day, region, sum(amount) from source group by all", "2", "1 2 5 6 7"},
		{"insert into facts replace where `region` <=> null select id, day, null, amount from source", "2", "1 2 3 5 6 7"},
		// A predicate that is NULL selects no row of the table.
		{"insert into facts replace where region = 'n' select 6, null, 'n', 1", "1", "3 4 6"},
		{"insert into facts replace where not region = 'n' select 6, null, 's', 1", "1", "1 2 4 5 6"},
		// An empty source deletes.
		{"insert into facts replace where region = 'n' select * from source where false", "0", "3 4"},
		{"insert into facts replace where true select * from source where false", "0", "none"},
		// A condition without a column is not checked.
		{"insert into facts replace where 1 = 2 select * from source", "2", "1 2 3 4 5 6 7"},
		{"insert into facts replace where false select * from source", "2", "1 2 3 4 5 6 7"},
		{"insert into facts replace where 1 = 1 select * from source", "2", "6 7"},
		{"insert into facts replace where day > '2024-01-31' and 1 = 2 select * from source", "2", "1 2 3 4 5 6 7"},
		{"insert into facts replace where (day > '2024-01-31' and (1 = 2 and true)) select * from source", "2", "1 2 3 4 5 6 7"},
		// The source reads the table that is replaced.
		{"insert into facts replace where day > '2024-01-31' select id + 10, day, region, amount from facts where day > '2024-01-31'", "2", "1 2 5 13 14"},
		{"insert into facts replace where true select * from facts where id < 3", "2", "1 2"},
		{"insert into facts replace where day = '2024-02-02' select count(*), date '2024-02-02', null, sum(amount) from facts", "1", "1 2 3 5 5"},
	} {
		s := facts(t)
		s.insert("INSERT 0 "+c.tag, c.sql)
		if got := s.rows(ids)[0]; got != c.left {
			t.Errorf("%s\ngot %s, want %s", c.sql, got, c.left)
		}
	}
}

func TestReplaceWhereRefusesARowOutsideItsPredicate(t *testing.T) {
	t.Parallel()
	s := facts(t)
	for _, c := range []struct{ sql, check, row, at string }{
		{
			"insert into facts replace where day > '2024-02-01' select * from source",
			"day > '2024-02-01'", "id = 6, day = 2024-02-01, region = n, amount = 60.00", "day > ",
		},
		{
			"insert into facts replace where day >= '2024-02-01' and region = 's' select * from source",
			"region = 's'", "id = 6, day = 2024-02-01, region = n, amount = 60.00", "region = 's'",
		},
		{
			"insert into facts replace where (day between '2024-01-01' and '2024-12-31' and (region = 'n')) select * from source",
			"region = 'n'", "id = 7, day = 2024-02-03, region = s, amount = 70.00", "region = 'n'",
		},
		{
			"insert into facts replace where region = 'n' or day > '2024-02-03' select * from source",
			"region = 'n' or day > '2024-02-03'", "id = 7, day = 2024-02-03, region = s, amount = 70.00", "region = 'n'",
		},
		{
			"insert into facts replace where `region` == 'n' values (1, '2024-01-01', null, 1)",
			`"region" = 'n'`, "id = 1, day = 2024-01-01, region = null, amount = 1.00", "`region`",
		},
		{
			"insert into facts by name replace where region = 'n' select 1 as id",
			"region = 'n'", "id = 1, region = null", "region = 'n'",
		},
		{
			"insert into facts replace where case when id = 1 and region = 'n' then false end select 1, null, 'n', null",
			"case when id = 1 and region = 'n' then false end", "id = 1, day = null, region = n, amount = null", "case",
		},
		// What is stored counts, not what the query returned.
		{
			"insert into facts replace where amount = 1.005 values (1, null, null, 1.005)",
			"amount = 1.005", "id = 1, day = null, region = null, amount = 1.01", "amount",
		},
	} {
		s.failsAt("44000", "written data does not conform to partial table overwrite condition or constraint", c.sql, c.at)
		d := s.fails("44000", c.sql)
		if want := "DELTA_REPLACE_WHERE_MISMATCH: CHECK constraint EXPRESSION(" + c.check + ") violated by row with values: " + c.row; d.Detail != want {
			t.Errorf("%s\ngot  %s\nwant %s", c.sql, d.Detail, want)
		}
	}
	s.expect(ids, "1 2 3 4 5")
}

func TestTheCheckCanBeTurnedOff(t *testing.T) {
	t.Parallel()
	s := facts(t)
	const sql = "insert into facts replace where day = '2024-02-01' select * from source"
	s.must("set spark.databricks.delta.replaceWhere.constraintCheck.enabled = false")
	s.insert("INSERT 0 2", sql)
	s.expect(ids, "1 2 4 5 6 7")
	s.must("reset spark.databricks.delta.replaceWhere.constraintCheck.enabled")
	s.fails("44000", sql)
	s.must("set spark.databricks.delta.replacewhere.constraintcheck.enabled = 'maybe'")
	s.fails("22023", sql)
	s.must("reset all", "set spark.databricks.delta.replaceWhere.dataColumns.enabled = off")
	s.fails("0A000", sql)
}

func TestASettingMattersOnlyToTheInsertThatReadsIt(t *testing.T) {
	t.Parallel()
	s := facts(t)
	s.must("set spark.databricks.delta.replaceWhere.constraintCheck.enabled = 'maybe'",
		"set spark.databricks.delta.replaceWhere.dataColumns.enabled = off")
	s.insert("INSERT 0 2", "insert into facts by name select * from source")
	s.insert("INSERT 0 2", "insert into facts replace using (id) select * from source")
	s.insert("INSERT 0 2", "insert overwrite facts select * from source")
	s.fails("22023", "insert into facts replace where true select * from source")
	s.must("reset all", "set spark.sql.sources.partitionOverwriteMode = 'maybe'")
	s.insert("INSERT 0 2", "insert into facts replace where true select * from source")
	s.fails("22023", "insert overwrite facts select * from source")
}

func TestTheErrorsOfAPredicatePointIntoTheStatement(t *testing.T) {
	t.Parallel()
	s := facts(t)
	for _, c := range []struct{ code, message, predicate, at string }{
		{"0AKDC", "a predicate cannot hold a subquery", "id in (select id from source)", "select"},
		{"42703", `column "dy" does not exist`, "dy = '2024-02-01'", "dy"},
		{"42703", "column s.day cannot be resolved", "s.day = '2024-02-01'", "s.day"},
		{"42K09", "predicate must be type boolean", "id + 1", "id + 1"},
		{"42903", "aggregate functions are not allowed", "sum(id) > 1", "sum"},
		{"42883", "operator does not exist", "region = 1", "="},
		{"22007", "invalid input syntax for type date", "day = 'yesterdey'", "'yesterdey'"},
		{"42601", "syntax error", "day = and id = 1", "and"},
		{"42703", "cannot be resolved", "facts.day > '2024-01-01' and x.id = 1", "x.id"},
	} {
		s.failsAt(c.code, c.message, "/* äöü */ insert into facts replace where "+c.predicate+" select * from source", c.at)
	}
	s.failsAt("42703", "column facts.id cannot be resolved", "insert into facts as f replace where facts.id = 1 select * from source", "facts.id")
	s.expect(ids, "1 2 3 4 5")
}

func TestTheErrorsOfTheQueryPointIntoTheStatement(t *testing.T) {
	t.Parallel()
	s := facts(t)
	for _, c := range []struct{ code, message, sql, at string }{
		{"42P01", `relation "nowhere" does not exist`, "insert into nowhere replace where a = 1 select 1", "nowhere"},
		{"42P01", `relation "nowhere" does not exist`, "insert into facts replace where id = 1 select * from nowhere", "nowhere"},
		{"42P01", `relation "nowhere" does not exist`, "with ä as (select * from nowhere) insert into facts replace where id = 1 select * from ä", "nowhere"},
		{"42703", `column "idd" does not exist`, "insert into facts replace where id = 1 select idd, day, region, amount from source", "idd"},
		{"42804", `column "day" is of type date but expression is of type integer`, "insert into facts replace where id = 1 select id, id, region, amount from source", "id, region"},
		{"22P02", "invalid input syntax for type integer", "insert into facts replace where id = 1 values ('one', null, null, null)", "'one'"},
		{"21S01", "more expressions than target columns", "insert into facts replace where id = 1 select *, 1 from source", "select"},
		{"21S01", "more target columns than expressions", "insert into facts replace where id = 1 select id, day, region from source", "select"},
		{"21S01", "more expressions than target columns", "insert into facts (id) replace where id = 1 select 1, 2", "select"},
		{"21S01", "more target columns than expressions", "insert into facts (id, day) replace where id = 1 values (1)", "values"},
		{"42703", `column "name" of relation "facts" does not exist`, "insert into facts (id, name) replace where id = 1 select 1, 2", "name"},
		{"42701", `column "id" specified more than once`, "insert into facts (id, ID) replace where id = 1 select 1, 2", "ID"},
		{"42KDG", `column "nome" of the query is not a column of "facts"`, "insert into facts by name replace where id = 1 select 1 as id, 2 as nome", "select"},
		{"42711", `the query returns column "id" more than once`, "insert into facts by name replace where id = 1 select 1 as id, 2 as id", "select"},
		{"42KDG", `column "column1"`, "insert into facts by name replace where id = 1 values (1)", "values"},
		{"21S01", "more expressions than target columns", "insert into facts by name replace where id = 1 select 1 a, 2 b, 3 c, 4 d, 5 e", "select"},
		{"42601", "must return columns", "insert into facts replace where id = 1 select from source", "select"},
		{"42P02", "there is no parameter $1", "insert into facts replace where id = $1 select * from source", "$1"},
		{"0A000", "cross-database", "insert into elsewhere.public.facts replace where id = 1 select * from source", "elsewhere"},
		{"42803", "aggregate", "insert into facts replace where id = 1 select id, day, region, sum(amount) from source group by id, day", "region"},
	} {
		s.failsAt(c.code, c.message, c.sql, c.at)
	}
	s.expect(ids, "1 2 3 4 5")
}
