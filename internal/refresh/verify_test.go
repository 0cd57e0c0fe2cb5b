package refresh_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// verify verifies flows and returns table, outcome and counts of each.
func (s *session) verify(names ...string) []refresh.Verification {
	s.t.Helper()
	s.must("set search_path = pg_catalog")
	defer s.must("reset search_path")
	verifications, err := refresh.Verify(s.t.Context(), s.Session, names)
	if err != nil {
		s.t.Fatal(err)
	}
	return verifications
}

// orders is a flow over two tables.
func orders(t *testing.T) *session {
	t.Helper()
	s := newDatabase(t).connect()
	s.must(
		"create table orders (id int primary key, day date, amount numeric)",
		"insert into orders values (1, '2026-01-01', 10), (2, '2026-01-02', 20.0), (3, '2026-01-02', 20.0), (4, null, 5)",
		`create streaming table daily flow replace where day >= date '2026-01-02' or day is null by name
			select day, amount, count(*) as n from orders group by day, amount`)
	return s
}

func TestVerifyFindsWhatAnExactWindowLacksOrHasTooMuch(t *testing.T) {
	t.Parallel()
	s := orders(t)
	if got := s.verify()[0]; got.Outcome != refresh.VerifiedExact || !got.Good() {
		t.Errorf("after a refresh: %+v", got)
	}
	s.must(
		"insert into daily values ('2025-12-31', 1, 1)", // outside the window
		"delete from daily where day is null",
		"update daily set amount = 20.00 where day = '2026-01-02'", // equal, and another value
		"insert into daily select '2026-02-01', 7, 1 from generate_series(1, 5)")
	want := []refresh.Verification{{
		Table:       "public.daily",
		Outcome:     refresh.VerifiedDiffers,
		Reason:      "nothing that the flow reads has changed since the last refresh",
		Window:      "day >= date '2026-01-02' or day is null",
		Missing:     2,
		Extra:       6,
		MissingRows: []string{"(,5,1)", "(2026-01-02,20.0,2)"},
		ExtraRows:   []string{"(2026-01-02,20.00,2)", "(2026-02-01,7,1)"},
	}}
	if diff := cmp.Diff(want, s.verify("daily")); diff != "" {
		t.Error(diff)
	}
	s.must("refresh streaming table daily")
	if got := s.verify("public.daily")[0]; got.Outcome != refresh.VerifiedExact {
		t.Errorf("after the next refresh: %+v", got)
	}
}

func TestVerifyExpectsADifferenceOnceWhatTheFlowReadsHasChanged(t *testing.T) {
	t.Parallel()
	s := orders(t)
	s.must("insert into orders values (5, '2026-01-03', 1)")
	got := s.verify()[0]
	if got.Outcome != refresh.VerifiedBehind || !got.Good() || got.Missing != 1 || !strings.HasSuffix(got.Reason, ": public.orders") {
		t.Errorf("after a change of the source: %+v", got)
	}
	s.must("refresh streaming table daily",
		"insert into orders values (6, '2025-01-03', 1)") // outside the window
	if got := s.verify()[0]; got.Outcome != refresh.VerifiedExact {
		t.Errorf("after a change outside the window: %+v", got)
	}
}

func TestVerifySaysWhatItCannotTell(t *testing.T) {
	t.Parallel()
	s := orders(t)
	s.must(
		"create unlogged table visit (day date)",
		"create streaming table visits flow replace where true by name select day, count(*) as n from visit group by day",
		"create streaming table clock flow replace where true by name select now() as at",
		"create table gone (day date)",
		"create streaming table lost flow replace where true by name select day from gone",
		"create streaming table empty (day date)",
		"drop table gone cascade",
		"insert into visit values ('2026-01-01')")
	var got []string
	for _, v := range s.verify() {
		got = append(got, v.Table+": "+v.Outcome)
		if v.Good() != (v.Outcome == refresh.VerifiedExact) {
			t.Errorf("%+v is good: %v", v, v.Good())
		}
	}
	want := []string{"public.clock: unknown", "public.daily: exact", "public.lost: view gone", "public.visits: unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestVerifyReadsValuesAsTheyAreStored(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table item (name text, price float8)",
		"insert into item values ('a', 1.5), ('b', null)",
		`create streaming table stored (name char(5), price numeric(6, 2), "Remark ""x""" text, made timestamptz default now())
			flow replace where name <> 'c' by name select * from item`)
	if got := s.verify()[0]; got.Outcome != refresh.VerifiedExact {
		t.Errorf("%+v", got)
	}
}

func TestVerifyWritesNothingAndLeavesTheSessionAsItWas(t *testing.T) {
	t.Parallel()
	s := orders(t)
	settings := "select string_agg(name || setting, ',' order by name) from pg_settings where name <> 'search_path'"
	before := s.rows(settings)
	s.verify()
	if diff := cmp.Diff(before, s.rows(settings)); diff != "" {
		t.Error(diff)
	}
	if got := s.rows("select count(*) from pg_proc where proname = 'rwproxy_verify'"); got[0] != "0" {
		t.Error("the function is still there")
	}
	if got := s.rows("select count(*) from rwproxy.refreshes"); got[0] != "1" {
		t.Errorf("%s refreshes are recorded", got[0])
	}
}

// A flow's author must gain nothing from the rights of whoever verifies it.
func TestVerifyRunsAFlowsTextWithItsAuthorsRightsAlone(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"do $$ begin if not exists (select from pg_roles where rolname = 'verify_author') then create role verify_author; end if; end $$",
		"create schema theirs authorization verify_author",
		"set role verify_author",
		"create function theirs.who() returns text language sql immutable as 'select current_user::text'",
		"create table theirs.item (n int)",
		"insert into theirs.item values (1)",
		"create streaming table theirs.whose flow replace where true by name select n, theirs.who() as role from theirs.item",
		`create or replace function theirs.who() returns text language plpgsql immutable as $$
			begin
				perform set_config('role', 'none', false);
				return current_user;
			exception when others then
				return current_user || ' ' || sqlstate;
			end $$`,
		"reset role")
	got := s.verify("theirs.whose")[0]
	if diff := cmp.Diff([]string{`(1,"verify_author 42501")`}, got.MissingRows); diff != "" {
		t.Errorf("%s\n%+v", diff, got)
	}
}

func TestVerifyNamesWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	s := orders(t)
	for name, code := range map[string]string{"missing": "42704", "orders": "42704", "other.daily": "42704", "a b": "22023", "": "22023"} {
		_, err := refresh.Verify(t.Context(), s.Session, []string{"daily", name})
		if pgdiag.Code(err) != code {
			t.Errorf("%q: %v, want %s", name, err, code)
		}
	}
}
