package refresh_test

import (
	"strings"
	"testing"
)

func TestTheClockIsReadAlikeUnderEveryDateStyle(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	for _, style := range []string{"ISO, DMY", "SQL, DMY", "SQL, MDY", "Postgres, DMY", "German, DMY"} {
		s.must("drop table if exists src, dst cascade", "set timezone = 'Asia/Kolkata'", "set datestyle = '"+style+"'",
			"create table src (id int, at timestamptz, d date)",
			"insert into src select g, now() - g * interval '10 minutes', current_date - g from generate_series(0, 40) g",
			"create streaming table dst flow replace where at >= now() - interval '1 hour' and d > current_date - 4 by name select * from src")
		s.expect("select count(*) from dst", "4")
		s.expect("select count(*) from src where at >= now() - interval '65 minutes' and d > current_date - 4", "4")
	}
}

func TestAnAuthorsFunctionsNeverRunInStatementsOfOurs(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	author := d.connect()
	author.must("create schema evil", "create table evil.seen (what text)", "create table src (x int, w text)", "insert into src values (1, 'a')")
	for _, signature := range []string{
		"format_type(oid, int)", "format_type(oid, integer, text)", "set_config(text, text, bool)", "quote_ident(text)",
		"quote_ident(name)", "current_setting(text)", "col_description(oid, int)", "col_description(oid, smallint)",
		"row_security_active(oid)", "pg_get_viewdef(oid)", "pg_get_viewdef(regclass)", "version()",
	} {
		result := map[string]string{"set_config": "text", "row_security_active": "bool"}[strings.SplitN(signature, "(", 2)[0]]
		if result == "" {
			result = "text"
		}
		author.must("create function evil." + signature + " returns " + result + ` language plpgsql as
			$$ begin insert into evil.seen values ('` + signature + `'); return null; end $$`)
	}
	author.must(
		`create function evil.equal(oid, regclass) returns bool language plpgsql as $$ begin insert into evil.seen values ('='); return true; end $$`,
		"create operator evil.= (leftarg = oid, rightarg = regclass, function = evil.equal)",
		"set search_path = evil, public, pg_catalog",
		"create streaming table evil.dst flow replace where x > 0 by name select x, w from public.src",
		"truncate evil.seen")
	other := d.connect()
	other.must("begin")
	other.joined = true
	other.must("refresh streaming table evil.dst", "refresh streaming table evil.dst where x = 1", "refresh streaming table evil.dst full")
	other.expect("select current_setting('search_path')", `"$user", public`)
	other.expect("select * from evil.seen")
	other.must("commit")
}

func TestAFlowMeansTheSameUnderOtherSettings(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	author := d.connect()
	author.must("create table src (v int, f float8, b bytea, at text)", "insert into src values (null, 1 / 3.0::float8, 'x', '2024-01-01 00:00 IST')",
		`create streaming table dst flow replace where v is null and (v = null) is null and f::text = (1 / 3.0::float8)::text and b::text = '\x78'
		 and at::timestamptz = '2023-12-31 22:00 UTC' by name select v, f, b, at from src`)
	author.expect("select count(*) from dst", "1")
	other := d.connect()
	other.must("set transform_null_equals = on", "set extra_float_digits = 0", "set bytea_output = escape", "set timezone_abbreviations = 'India'", "refresh streaming table dst full")
	other.expect("select count(*) from dst", "1")
	other.expect("select current_setting('transform_null_equals')", "on")
}

func TestComparisonsUseTheCollationOfTheTarget(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(`create table src (name text collate "C")`, "insert into src values ('a'), ('B')",
		`create streaming table dst (name text collate "en-US-x-icu") flow replace where name < 'a' by name select name from src`,
		"refresh streaming table dst", "refresh streaming table dst")
	s.expect("select * from dst")
	s.must("refresh streaming table dst where name > 'a'", "refresh streaming table dst where name > 'a'")
	s.expect("select * from dst", "B")
}

func TestAColumnThatTheTableLostIsNotLeftOut(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("alter table by_day rename column amount to total")
	s.fails("42703", "refresh streaming table by_day")
	s.expect("select * from by_day", "2024-01-01 5.00")
}

func TestRowsThatADeleteKeepsAreNotDoubled(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("create function keep() returns trigger language plpgsql as 'begin return null; end'",
		"create trigger keep before delete on by_day for each row execute function keep()")
	s.fails("55000", "refresh streaming table by_day")
	s.must("drop trigger keep on by_day", "create rule keep as on delete to by_day do instead nothing")
	s.fails("0A000", "refresh streaming table by_day")
	s.expect("select * from by_day", "2024-01-01 5.00")
}

func TestAFlowCannotReadItsOwnTarget(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("create view looking as select * from by_day")
	for _, source := range []string{"by_day", "looking"} {
		s.fails("42P17", "create or refresh streaming table by_day flow replace where day >= '2024-01-01' by name select day, amount from "+source)
	}
	s.must("refresh streaming table by_day")
	s.expect("select * from by_day", "2024-01-01 5.00")
}

func TestADroppedFlowIsWaitedForAndGone(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, other := d.connect(), d.connect()
	sales(s)
	other.must("begin")
	other.joined = true
	other.must("drop table by_day")
	err := d.whileWaiting(s, "refresh streaming table by_day", func() { other.must("commit") })
	if want := s.fails("42P01", "refresh streaming table by_day"); err == nil || err.Error() != want.Error() {
		t.Errorf("got %v, want %v", err, want)
	}
}

func TestAViewOnAFlowsViewGoesWithCascade(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	view := s.rows("select c.oid::regclass from pg_class c where relnamespace = 'rwproxy_flows'::regnamespace")[0]
	s.must("create view dependent as select * from " + view)
	s.fails("2BP01", "drop table by_day")
	s.must("begin")
	s.joined = true
	s.must("drop table by_day cascade", "commit")
	s.expect("select to_regclass('dependent')", "null")
}

func TestATableCanTakeTheNameOfOneThatWasRenamed(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("alter table by_day rename to by_day_old",
		"create streaming table by_day flow replace where day >= '2024-01-01' by name select day from sales",
		"refresh streaming table by_day_old")
	s.expect("select flow_name from rwproxy.flows order by 1", "by_day", "by_day_old")
}

func TestACommitThatFailsIsNotRolledBackAgain(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("alter table by_day add unique (amount) deferrable initially deferred",
		"insert into sales values ('2024-05-05', 'n', 5)")
	s.fails("23505", "refresh streaming table by_day")
	s.expect("select * from by_day", "2024-01-01 5.00")
	s.expect("select state from rwproxy.refreshes order by requested_at", "COMPLETED", "FAILED")
}

func TestAStatementTimeoutCountsForTheWholeRefresh(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (a int)", "insert into src values (1)",
		"create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(0.4); return null; end'",
		"create streaming table dst flow replace where a > 0 by name select a from src",
		"create trigger slow after insert or delete on dst for each statement execute function slow()",
		"set statement_timeout = '600ms'")
	s.fails("57014", "refresh streaming table dst")
	s.must("set statement_timeout = '60s'", "refresh streaming table dst")
	s.expect("show statement_timeout", "1min")
}

func TestARefreshThatGivesUpWaitingIsRecorded(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, other := d.connect(), d.connect()
	sales(s)
	other.must("begin")
	other.joined = true
	other.must("refresh streaming table by_day")
	s.must("set lock_timeout = '50ms'")
	s.fails("55P03", "refresh streaming table by_day")
	other.must("rollback")
	s.expect("select state, error from rwproxy.refreshes where state <> 'COMPLETED'", "FAILED canceling statement due to lock timeout")
}

func TestASuperuserWhoChangesAFlowLeavesItToItsOwner(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	s.must("do $$ begin if not exists (select from pg_roles where rolname = 'flow_owner') then create role flow_owner; end if; end $$",
		"grant create on schema public to flow_owner", "create table src (a int)", "insert into src values (1)", "grant select on src to flow_owner",
		"create streaming table installed flow replace where a > 0 by name select a from src")
	owner := d.connect()
	owner.must("set role flow_owner", "create streaming table dst flow replace where a > 0 by name select a from src")
	s.must("create or refresh streaming table dst flow replace where a > 0 by name select a, 2 as b from src")
	owner.must("refresh streaming table dst")
	owner.expect("select * from dst", "1 2")
	owner.must("drop table dst", "reset role", "revoke all on schema public, rwproxy_flows from flow_owner", "drop table src cascade")
}
