package refresh_test

import (
	"strings"
	"testing"
)

func TestAlterChangesTheSchedule(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("set timezone = 'Europe/Berlin'", "create streaming table dst")
	schedule := func(want string) {
		t.Helper()
		s.expect("select schedule from rwproxy.streaming_tables", want)
	}
	s.fails("42704", "alter streaming table dst alter schedule every 1 day")
	s.fails("42704", "alter streaming table dst drop schedule")
	s.must("alter streaming table dst add schedule every 1 day")
	schedule("EVERY 1 DAYS")
	if d := s.fails("42710", "alter streaming table dst add trigger on update"); d.Position != 23 || d.Detail != "It is EVERY 1 DAYS." {
		t.Errorf("got %+v", d)
	}
	s.must("alter streaming table dst alter schedule cron '0 0 9 * * ?'")
	schedule("CRON '0 0 9 * * ?' AT TIME ZONE 'Europe/Berlin'")
	s.must("alter streaming table dst alter schedule cron '0 0 9 * * ?' at time zone 'UTC'")
	schedule("CRON '0 0 9 * * ?' AT TIME ZONE 'UTC'")
	d := s.fails("22023", "alter streaming table dst alter schedule cron '0 0 9 * * ?' at time zone 'Nowhere/Land'")
	if d.Position != 74 || !strings.Contains(d.Message, `time zone "Nowhere/Land" not recognized`) {
		t.Errorf("got %+v", d)
	}
	s.must("alter streaming table dst drop schedule")
	schedule("null")
}

func TestAlterChangesProperties(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("alter streaming table by_day set tblproperties ('pipelines.reset.allowed' = false, 'a' = '1', pipelines.nothing = 1)")
	s.show("show tblproperties by_day", "a|1", "pipelines.reset.allowed|false")
	if notice := s.notices[len(s.notices)-1]; notice.Severity != "WARNING" || !strings.Contains(notice.Message, "pipelines.nothing") {
		t.Errorf("got %+v", notice)
	}
	s.fails("42000", "refresh streaming table by_day full")
	if d := s.fails("42K0J", "alter streaming table by_day unset tblproperties ('a', 'b')"); d.Position != 51 {
		t.Errorf("position %d", d.Position)
	}
	s.must("alter streaming table by_day unset tblproperties if exists (pipelines.reset.allowed, b)",
		"refresh streaming table by_day full")
	s.show("show tblproperties by_day", "a|1")
}

func TestAlterCommentsAColumn(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must(`alter streaming table by_day alter column day comment 'it''s \ the day'`)
	s.expect("select col_description('by_day'::regclass, 1)", `it's \ the day`)
	if d := s.fails("42703", "alter streaming table by_day alter column nope comment 'x'"); d.Position != 43 {
		t.Errorf("position %d", d.Position)
	}
}

func TestANewOwnerIsTheAuthorToo(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	s.must("do $$ begin if not exists (select from pg_roles where rolname = 'alter_heir') then create role alter_heir login; end if; end $$",
		"grant create, usage on schema public to alter_heir", "grant select on sales to alter_heir",
		"alter streaming table by_day set owner to alter_heir")
	s.expect("select owner from rwproxy.streaming_tables", "alter_heir")
	s.expect("select owner from rwproxy.flows", "alter_heir")
	s.must("set role alter_heir", "refresh streaming table by_day", "reset role", "revoke select on sales from alter_heir")
	s.fails("42501", "refresh streaming table by_day") // the query has the author's rights

	s.must("grant select on sales to alter_heir", "set role alter_heir")
	s.fails("42501", "alter streaming table by_day owner to postgres")
	s.fails("42704", "alter streaming table by_day owner to nobody_at_all")
	s.must("reset role", "alter streaming table by_day owner to session_user")
	s.expect("select owner from rwproxy.flows", "postgres")
	s.must("drop table by_day", "drop owned by alter_heir")
}

func TestTheViewOfAnotherAuthorIsNotGivenAway(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	s.must("do $$ begin if not exists (select from pg_roles where rolname = 'alter_owner') then create role alter_owner login; end if; end $$",
		"do $$ begin if not exists (select from pg_roles where rolname = 'alter_group') then create role alter_group; end if; end $$",
		"grant alter_group to alter_owner", "grant create, usage on schema public to alter_owner, alter_group",
		"alter table by_day owner to alter_owner", "set role alter_owner")
	if d := s.fails("42501", "alter streaming table by_day owner to alter_group"); !strings.Contains(d.Detail, "postgres") || d.Hint == "" {
		t.Errorf("got %+v", d)
	}
	s.expect("select owner from rwproxy.streaming_tables", "alter_owner")
	s.must("reset role", "drop table by_day", "drop owned by alter_owner, alter_group")
}

func TestOnlyTheOwnerOfAStreamingTableAltersIt(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("do $$ begin if not exists (select from pg_roles where rolname = 'alter_reader') then create role alter_reader; end if; end $$",
		"grant usage on schema public to alter_reader", "grant select on by_day to alter_reader", "set role alter_reader")
	for _, action := range []string{
		"add schedule every 1 day", "set tblproperties ('a' = 'b')", "unset tblproperties if exists ('a')",
		"alter column day comment 'x'", "owner to alter_reader",
	} {
		s.fails("42501", "alter streaming table by_day "+action)
	}
	s.must("describe extended by_day", "show create table by_day")
	s.fails("42501", "select * from event_log(table(by_day))")
	s.must("reset role", "revoke select on by_day from alter_reader", "set role alter_reader")
	if d := s.fails("42501", "describe by_day"); d.Position != 10 {
		t.Errorf("position %d", d.Position)
	}
	s.must("reset role")
	s.fails("42601", "alter streaming table sales add schedule every 1 day")
	s.fails("42P01", "alter streaming table nowhere add schedule every 1 day")
	s.must("drop owned by alter_reader")
}

func TestAnAlterInsideATransactionIsRolledBack(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	sales(s)
	s.must("begin")
	s.joined = true
	s.must("alter streaming table by_day set tblproperties ('a' = 'b')", "alter streaming table by_day add schedule every 1 day", "rollback")
	s.joined = false
	s.expect("select properties, schedule from rwproxy.streaming_tables", "{} null")
}
