package refresh_test

import (
	"strings"
	"testing"
)

func TestATimeZoneThatDoesNotExistIsRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	d := s.fails("22023", "create streaming table dst schedule cron '0 0 9 * * ?' at time zone 'Mars'")
	if d.Position != 69 {
		t.Errorf("position %d", d.Position)
	}
	s.must("create streaming table dst")
	s.fails("22023", "create or refresh streaming table dst schedule cron '0 0 9 * * ?' at time zone 'Mars'")
}

func TestACronExpressionIsCheckedWhereItIsWritten(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create streaming table dst schedule every 1 day")
	for cron, message := range map[string]string{
		"0 * * * *":        "invalid cron expression: it has 5 fields instead of 6 or 7",
		"0 0 9 * * *":      "invalid cron expression: one of day of month and day of week is to be ?, the other not",
		"0 60 * * * ?":     `invalid cron expression: "60" is no minute`,
		"0 0 9 ? * MON#6":  `invalid cron expression: "MON#6" is no day of week`,
		"0 0 9 31 2 ?":     "the cron expression never runs",
		"0 0 9 1 1 ? 2024": "the cron expression never runs",
	} {
		d := s.fails("22023", "alter streaming table dst alter schedule cron '"+cron+"' at time zone 'UTC'")
		if d.Message != message || d.Position != 47 {
			t.Errorf("%s: got %q at %d", cron, d.Message, d.Position)
		}
	}
	// What is wrong with the expression is said before what is with the zone.
	if d := s.fails("22023", "create streaming table other schedule cron 'x' at time zone 'Mars'"); d.Position != 44 {
		t.Errorf("got %+v", d)
	}
}

func TestATimeZoneOfAScheduleHasKnownRules(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create streaming table dst schedule every 1 day")
	stored := func(want string) {
		t.Helper()
		s.expect("select schedule from rwproxy.streaming_tables", want)
	}
	s.must("alter streaming table dst alter schedule cron '0 0 9 * * ?' at time zone 'europe/BERLIN'")
	stored("CRON '0 0 9 * * ?' AT TIME ZONE 'Europe/Berlin'")
	s.must("set time zone 2", "alter streaming table dst alter schedule cron '0 0 9 * * ?'")
	stored("CRON '0 0 9 * * ?' AT TIME ZONE '<+02>-02'")
	d := s.fails("22023", "alter streaming table dst alter schedule cron '0 0 9 * * ?' at time zone 'PST'")
	if d.Position != 74 || d.Message != `time zone "PST" cannot be that of a schedule` {
		t.Errorf("got %+v", d)
	}
	s.must("set time zone 'CET-1CEST,M3.5.0,M10.5.0/3'")
	if d := s.fails("22023", "alter streaming table dst alter schedule cron '0 0 9 * * ?'"); d.Position != 47 {
		t.Errorf("got %+v", d)
	}
}

func TestATriggerThatWouldNeverFireIsRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table plain (id integer)", "create materialized view mat as select 1 as id",
		"create unlogged table unlogged (id integer)", "create view mixed as select id from plain union all select id from mat")
	for query, message := range map[string]string{
		"select id from mat":                        "changes of public.mat cannot trigger a refresh",
		"select id from mixed":                      "changes of public.mat cannot trigger a refresh",
		"select id from unlogged":                   "changes of public.unlogged cannot trigger a refresh",
		"select oid::bigint from pg_class":          "changes of pg_class cannot trigger a refresh",
		"select 1 as id":                            "the flow's query reads no table whose changes could trigger a refresh",
		"select id from plain, (select from mat) m": "changes of public.mat cannot trigger a refresh",
	} {
		d := s.fails("0A000", "create streaming table dst trigger on update flow replace where true by name "+query)
		if d.Message != message || !strings.HasSuffix(d.Hint, "se SCHEDULE instead of TRIGGER.") || d.Position != 28 {
			t.Errorf("%s: got %+v", query, d)
		}
	}
	s.must(
		"create streaming table dst flow replace where true by name select id from mat",
		"create streaming table bare (id integer) trigger on update")
	if d := s.fails("0A000", "alter streaming table dst add trigger on update"); d.Position != 31 || d.Detail != "They cannot be recorded: it is a materialized view." {
		t.Errorf("got %+v", d)
	}
	s.fails("0A000", "create or refresh streaming table dst trigger on update flow replace where true by name select id from mat")
	s.fails("0A000", "create flow f as insert into bare by name replace where true select id from mat")
	s.must("create or refresh streaming table dst trigger on update flow replace where true by name select id from plain")
	// What becomes of a source later does not stand in the way of other changes.
	s.must("alter table plain set unlogged", "alter streaming table dst set tblproperties ('a' = 'b')")
}

func TestTriggersThatWouldFireWithoutEndAreRefused(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must(
		"create table source (id integer)",
		"create streaming table a trigger on update flow replace where true by name select id from source",
		"create streaming table b trigger on update flow replace where true by name select id from a")
	d := s.fails("42P17", "create or refresh streaming table a trigger on update flow replace where true by name select id from b")
	if d.Detail != "The tables are public.a, public.b." {
		t.Errorf("got %+v", d)
	}
	s.must("create or refresh streaming table a schedule every 1 day flow replace where true by name select id from b")
	s.fails("42P17", "alter streaming table a alter trigger on update")
}
