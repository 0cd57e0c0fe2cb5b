package refresh_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sales is a source, and a flow on it whose window is the year 2024.
func sales(s *session) {
	s.must(
		"create table sales (day date, region text, amount numeric(8, 2))",
		"insert into sales values ('2023-12-31', 'n', 1), ('2024-01-01', 'n', 2), ('2024-01-01', 's', 3), (null, 'n', 4)",
		`create streaming table by_day flow replace where day >= '2024-01-01' by name
		 select day, sum(amount) as amount from sales group by day`,
	)
}

func (s *session) expect(sql string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.rows(sql)); diff != "" {
		s.t.Errorf("%s (-want +got)\n%s", sql, diff)
	}
}

func TestARefreshReplacesTheWindowAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.expect("select * from by_day", "2024-01-01 5.00")
	s.must(
		"insert into by_day values ('2023-05-05', 7), (null, 8), ('2024-06-06', 9)",
		"update sales set amount = 10 where region = 's'",
		"refresh streaming table by_day",
	)
	s.expect("select * from by_day order by day", "2023-05-05 7", "2024-01-01 12.00", "null 8")
}

func TestAFullRefreshLeavesNothingButTheWindow(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("insert into by_day values ('2023-05-05', 7), (null, 8)", "refresh streaming table by_day full")
	s.expect("select * from by_day", "2024-01-01 5.00")
	s.expect("select kind, reason from rwproxy.refreshes order by started_at desc limit 1", "full FULL_REFRESH")
}

func TestAnOverrideReplacesItsOwnWindowOnly(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must(
		"update sales set amount = amount * 10",
		"refresh streaming table by_day where day between '2023-12-01' and '2023-12-31'",
	)
	s.expect("select * from by_day order by day", "2023-12-31 10.00", "2024-01-01 5.00")
}

func TestAColumnIsCastBeforeThePredicateSeesIt(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table readings (at timestamp, v numeric)",
		"insert into readings values ('2024-01-01 23:59:59', 1.25), ('2024-01-02 00:00:00', 2.35)",
		`create streaming table stored (at date, v numeric(6, 1)) flow replace where at <= '2024-01-01' or v = 2.4 by name
		 select at, v from readings`,
	)
	want := []string{"2024-01-01 1.3", "2024-01-02 2.4"}
	s.expect("select * from stored order by at", want...)
	s.must("refresh streaming table stored")
	s.expect("select * from stored order by at", want...)
}

func TestAValueThatIsTooLongFailsInsteadOfBeingCut(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table words (w text)", "insert into words values ('short')",
		"create domain word as varchar(6)",
		`create streaming table plain (w varchar(6)) flow replace where w is not null by name select w from words`,
		`create streaming table domained (w word) flow replace where w is not null by name select w from words`,
		"insert into words values ('too long for it')")
	for _, table := range []string{"plain", "domained"} {
		s.fails("22001", "refresh streaming table "+table)
		s.expect("select * from "+table, "short")
	}
}

func TestARowThatATriggerMovesOutOfTheWindowIsRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must(
		`create function backdate() returns trigger language plpgsql as $$ begin new.day := new.day - 400; return new; end $$`,
		"create trigger moves before insert on by_day for each row execute function backdate()",
	)
	s.fails("44000", "refresh streaming table by_day")
	s.expect("select * from by_day", "2024-01-01 5.00")
}

func TestAPredicateOnAColumnThatTheTargetComputesIsRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("alter table by_day add column year int generated always as (extract(year from day)) stored",
		"refresh streaming table by_day")
	s.expect("select * from by_day", "2024-01-01 5.00 2024")
	d := s.fails("42703", "refresh streaming table by_day where year = 2024")
	if !strings.Contains(d.Detail, "does not return it") {
		t.Errorf("detail: %q", d.Detail)
	}
	s.expect("select * from by_day", "2024-01-01 5.00 2024")
}

func TestADefaultOfTheTargetFillsAColumnThatTheQueryLacks(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (a int)", "insert into src values (1)",
		`create streaming table dst (a int, b int default 7, c int) flow replace where c is null by name select a from src`,
		"refresh streaming table dst")
	s.expect("select * from dst", "1 7 null")
}

func TestBothSidesOfARefreshSeeOneClock(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (at timestamptz)", "insert into src values (now() - interval '1 hour')",
		"create streaming table dst flow replace where at >= now() - interval '1 day' and at::date <= current_date by name select at from src",
		"refresh streaming table dst")
	s.expect("select count(*) from dst", "1")
	window := s.rows("select window_predicate from rwproxy.refreshes order by started_at desc limit 1")[0]
	for _, clock := range []string{"now", "current_date"} {
		if strings.Contains(window, clock) {
			t.Errorf("the window still asks the clock: %s", window)
		}
	}
}
