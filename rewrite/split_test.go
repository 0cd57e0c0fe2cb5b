package rewrite_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rwproxy/rwproxy/rewrite"
)

// statements are texts that Postgres runs, cut into their statements.
var statements = [][]string{
	{"select 1"},
	{"select ';'", "select \";\" from (values (1)) as v (\";\")"},
	{"select $$;$$", "select $a$ ; $$ $a$", "select E'\\';'", "select /* ; */ 1 -- ;"},
	{"create table a (x int)", "create table b (x int)", "create rule r as on insert to a do also (insert into b values (new.x); delete from b)", "insert into a values (1)"},
	{"create function f() returns int language sql begin atomic select 1; select case when true then 2 else 3 end; end", "select f()"},
	{"CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1 AS end; SELECT 2 AS \"case\"; END", "select 3"},
	{"create procedure p() language sql begin atomic select case case 1 when 1 then 2 end when 2 then 3 end; end", "call p()"},
	{"create function begin() returns int language sql return 1", "select begin()"},
	{"begin", "select 1", "end"},
	{"select case when true then 1 end", "select 2"},
	{"create table function (begin int, atomic int)", "select begin, atomic from function"},
	{"create function g(begin int) returns int language sql as 'select begin; select 1;'", "select g(1)"},
	{"create table x (y int)", "-- ;\n/* ; */ drop table x"},
}

func splitTexts(sql string) []string {
	var got []string
	for _, span := range rewrite.Split(sql, rewrite.Lexical{}) {
		if sql[span.Offset:span.Offset+len(span.Text)] != span.Text {
			got = append(got, "MISPLACED")
		}
		got = append(got, span.Text)
	}
	return got
}

func TestATextIsCutIntoTheStatementsThatPostgresRuns(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, want := range statements {
		sql := strings.Join(want, " \n;;")
		if diff := cmp.Diff(want, splitTexts(sql)); diff != "" {
			t.Errorf("%s\n-want +got\n%s", sql, diff)
		}
		results, err := c.PgConn().Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
		if len(results) != len(want) {
			t.Errorf("%s\nPostgres ran %d statements instead of %d", sql, len(results), len(want))
		}
		execute(t, c, "drop table if exists a, b, function; drop function if exists f, g, begin; drop procedure if exists p")
	}
}

func TestEmptyStatementsAreDropped(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"", " ", ";", " ; ;\n", "-- a\n;/* b; */", "-- a;"} {
		if got := splitTexts(sql); len(got) != 0 {
			t.Errorf("%q: got %q", sql, got)
		}
	}
}

func TestATextThatPostgresCannotReadEndsInOneStatement(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string][]string{
		"select 1; select 'a; select 2":                    {"select 1", "select 'a; select 2"},
		"select (1; select 2":                              {"select (1; select 2"},
		"select 1); select 2":                              {"select 1)", "select 2"},
		"select 1; /* a; select 2":                         {"select 1", "/* a; select 2"},
		"create function f() begin atomic select 1; ":      {"create function f() begin atomic select 1;"},
		"select 1; refresh table t where (a; drop table b": {"select 1", "refresh table t where (a; drop table b"},
	} {
		if diff := cmp.Diff(want, splitTexts(sql)); diff != "" {
			t.Errorf("%s\n-want +got\n%s", sql, diff)
		}
	}
}

func TestABacktickQuotesInOurStatementsOnly(t *testing.T) {
	t.Parallel()
	sql := "refresh table `a;b`; select 1 ` 2; select '`'; drop table `;`"
	want := []string{"refresh table `a;b`", "select 1 ` 2", "select '`'", "drop table `;`"}
	if diff := cmp.Diff(want, splitTexts(sql)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestJoinedStatementsAreCutApartAgain(t *testing.T) {
	t.Parallel()
	var all []string
	for _, group := range statements {
		for _, statement := range group {
			if !strings.HasSuffix(statement, "-- ;") {
				all = append(all, statement)
			}
		}
	}
	for _, c := range parseCases(t) {
		if !strings.Contains(c.want, "42601") && !strings.Contains(c.sql, ";") && !strings.Contains(c.sql, "--") &&
			!strings.HasPrefix(c.name, "not_ours/") && c.want != "not ours" {
			all = append(all, c.sql)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.SampledFrom(all), 1, 8).Draw(t, "statements")
		separator := rapid.SampledFrom([]string{";", " ; ", ";;\n"}).Draw(t, "separator")
		if diff := cmp.Diff(want, splitTexts(strings.Join(want, separator))); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
}

func FuzzSplit(f *testing.F) {
	for _, group := range statements {
		f.Add(strings.Join(group, ";"), false)
		f.Add(strings.Join(group, "';"), true)
	}
	f.Fuzz(func(t *testing.T, sql string, escapes bool) {
		o := rewrite.Lexical{BackslashEscapes: escapes}
		end := 0
		for _, span := range rewrite.Split(sql, o) {
			if span.Offset < end || span.Text == "" || sql[span.Offset:span.Offset+len(span.Text)] != span.Text {
				t.Fatalf("%q: %+v is out of place", sql, span)
			}
			end = span.Offset + len(span.Text)
			again := rewrite.Split(span.Text, o)
			if len(again) != 1 || again[0].Text != span.Text {
				t.Fatalf("%q: the statement %q splits into %+v", sql, span.Text, again)
			}
		}
	})
}
