package refresh_test

import (
	"strings"
	"testing"
)

func TestAFlowWhoseSourceWasDroppedCanBeDefinedAgain(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("drop table sales cascade")
	for _, sql := range []string{
		"refresh streaming table by_day",
		"refresh streaming table by_day full",
		"create or refresh streaming table by_day",
	} {
		if d := s.fails("55000", sql); d.Hint == "" || d.Position == 0 {
			t.Errorf("%s: hint %q, position %d", sql, d.Hint, d.Position)
		}
	}
	s.expect("select * from by_day", "2024-01-01 5.00")
	s.expect("select kind, state from rwproxy.refreshes where state <> 'COMPLETED' order by requested_at", "window FAILED", "full FAILED")
	s.must("create table sales (day date, region text, amount numeric(8, 2))",
		`create or refresh streaming table by_day flow replace where day >= '2024-01-01' by name
		 select day, sum(amount) as amount from sales group by day`)
	s.expect("select * from by_day")
	s.must("drop table sales cascade", "drop table by_day")
	s.expect("select count(*) from rwproxy.flows", "0")
}

func TestAFailedRefreshKeepsItsPlanAndPostgresOwnWords(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (a int)", "insert into src values (1)",
		"create streaming table dst flow replace where a > 0 by name select a, 1 / (2 - a) as b from src",
		"insert into src values (2)")
	s.fails("22012", "refresh streaming table dst")
	s.expect("select state, technique, reason, window_predicate, error from rwproxy.refreshes order by requested_at desc limit 1",
		"FAILED INCREMENTAL null a > 0 division by zero")
	s.expect("select * from dst", "1 1")
}

func TestErrorsInAPredicateStandInTheUsersText(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	for sql, want := range map[string]struct{ code, at, message string }{
		"refresh streaming table by_day where day >=":                                   {"42601", "", "syntax error at the end of the predicate"},
		"refresh streaming table by_day where day >= $1":                                {"42P02", "$1", "there is no parameter $1"},
		"refresh streaming table by_day where generate_series(1, 2) = 1":                {"0A000", "generate_series", "set-returning functions are not allowed in a predicate"},
		"refresh streaming table by_day where nope = 1":                                 {"42703", "nope", `column "nope" does not exist`},
		"refresh streaming table by_day where sum(amount) > 1":                          {"42903", "sum", "aggregate functions are not allowed in a predicate"},
		"refresh streaming table by_day where amount":                                   {"42K09", "amount", "predicate must be type boolean, not type numeric"},
		"refresh streaming table by_day where day > '2024-01-01' or rank() over () = 1": {"42903", "rank", "window functions are not allowed in a predicate"},
	} {
		d := s.fails(want.code, sql)
		if d.Message != want.message || d.Position == 0 || !strings.HasPrefix(sql[d.Position-1:], want.at) {
			t.Errorf("%s\ngot %q at %d", sql, d.Message, d.Position)
		}
	}
}

func TestATemporarySourceIsRefusedInOneError(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create temporary table scratch (a int)")
	d := s.fails("42P16", "create streaming table dst flow replace where a > 0 by name select a from scratch")
	if d.Message != "a flow cannot read temporary tables" || d.Hint == "" {
		t.Errorf("got %v, hint %q", d, d.Hint)
	}
}

func TestHalfAPredicateInFrontOfTheQueryIsPlacedBehindIt(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	sql := "create or refresh streaming table by_day flow replace where day >=  by name select day from sales"
	d := s.fails("42601", sql)
	if got := sql[d.Position-1:]; !strings.HasPrefix(got, "by name") {
		t.Errorf("position %d, at %q", d.Position, got)
	}
}
