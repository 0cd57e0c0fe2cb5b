package refresh_test

import (
	"fmt"
	"testing"
)

// replacements are statements that have to replace the row of owner one.
var replacements = []string{
	"insert overwrite kept values ('one', 9)",
	"insert into kept replace where owner = 'one' values ('one', 9)",
	"insert into kept replace using (owner) values ('one', 9)",
	"insert into kept as t replace on t.owner = s.owner (select 'one' as owner, 9 as n) as s",
}

func TestRowsThatRowSecurityHidesAreNeverLeftBesideNewOnes(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, limited := d.connect(), d.connect()
	role := "row_security_reader"
	s.must(fmt.Sprintf("do $$ begin if not exists (select from pg_roles where rolname = '%[1]s') then create role %[1]s; end if; end $$", role),
		"create table kept (owner text, n int)", "insert into kept values ('one', 1), ('two', 2)", "alter table kept enable row level security",
		"create policy reading on kept for select using (true)", "create policy writing on kept for insert with check (true)",
		"create policy deleting on kept for delete using (owner = 'two')", "grant select, insert, delete on kept to "+role)
	limited.must("set role " + role)
	for _, sql := range replacements {
		limited.fails("42501", sql)
		s.expect("select * from kept order by n", "one 1", "two 2")
	}
	// What replaces nothing is a plain INSERT, and the owner is not limited.
	limited.must("insert into table kept select 'three', 3")
	s.must(replacements[1])
	s.expect("select * from kept order by n", "two 2", "three 3", "one 9")
	limited.must("reset role")
	s.must("drop owned by " + role)
}

func TestARuleNeverLeavesRowsOrLosesThem(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table kept (owner text, n int)", "insert into kept values ('one', 1)")
	for _, rule := range []string{"on delete to kept where old.n = 1 do instead nothing", "on insert to kept do instead nothing"} {
		s.must("create rule other as " + rule)
		for _, sql := range replacements {
			s.fails("0A000", sql)
			s.expect("select * from kept", "one 1")
		}
		s.must("drop rule other on kept")
	}
	s.must(replacements[0])
	s.expect("select * from kept", "one 9")
}
