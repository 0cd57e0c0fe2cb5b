package refresh_test

import (
	"testing"
)

// differing is a table whose refreshes recompute the window, as a diff, and
// which remembers what was written to it.
func differing(s *session, columns, rows string) {
	s.must(
		"create table source ("+columns+")",
		"insert into source values "+rows,
		`create streaming table target tblproperties ('rwproxy.apply' = 'diff', 'rwproxy.refresh_policy' = 'full')
		 flow replace where id >= 0 by name select * from source`,
		"create table written (what text, id int)",
		`create function remember() returns trigger language plpgsql as $$
		 begin
		     insert into written values (tg_op, case when tg_op = 'DELETE' then old.id else new.id end);
		     return null;
		 end $$`,
		"create trigger remember after insert or delete on target for each row execute function remember()",
		// Creating the trigger has changed the definition.
		"refresh streaming table target",
		"delete from written",
	)
}

func (s *session) equalToSource() {
	s.t.Helper()
	s.expect(`select count(*) from (
		(select t::text from target t except all select s::text from source s where id >= 0)
		union all
		(select s::text from source s where id >= 0 except all select t::text from target t)) as differing`, "0")
}

func TestADiffWritesOnlyTheRowsThatDiffer(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	differing(s, "id int, v numeric, j json",
		"(1, 1.0, '{}'), (2, 2, null), (2, 2, null), (2, 2, null), (3, null, '[]'), (3, null, '[]'), (4, 4, '4'), (-1, 0, null)")
	s.must("refresh streaming table target")
	s.expect("select count(*) from written", "0")
	s.must(
		"update source set v = 1.00 where id = 1",                                     // equal, but not the same
		"delete from source where ctid = (select min(ctid) from source where id = 2)", // one of three copies
		"insert into source values (3, null, '[]')",                                   // one more copy
		`update source set j = '{ }' where id = 4`,                                    // json has no equality
		"insert into source values (-2, 0, null)",                                     // not in the window
		"refresh streaming table target",
	)
	s.expect("select what, id, count(*) from written group by what, id order by id, what",
		"DELETE 1 1", "INSERT 1 1", "DELETE 2 1", "INSERT 3 1", "DELETE 4 1", "INSERT 4 1")
	s.equalToSource()
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes order by started_at desc limit 1", "3 3")
}

func TestADiffMovesAUniqueKeyFromOneRowToAnother(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	differing(s, "id int, name text", "(1, 'a'), (2, 'b')")
	s.must(
		"create unique index on target (name)",
		"update source set name = case name when 'a' then 'b' else 'a' end",
		"refresh streaming table target",
	)
	s.equalToSource()
}

func TestADiffLeavesRowsOutsideTheWindow(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	differing(s, "id int, name text", "(1, 'a'), (2, 'b')")
	s.must("insert into target values (-5, 'outside')", "delete from source where id = 1", "refresh streaming table target")
	s.expect("select * from target order by id", "-5 outside", "2 b")
	s.must("refresh streaming table target full")
	s.expect("select * from target order by id", "2 b")
}

func TestADiffFailsWhenATriggerKeepsRows(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	differing(s, "id int, name text", "(1, 'a'), (2, 'b')")
	s.must(
		"create function keep() returns trigger language plpgsql as 'begin return null; end'",
		"create trigger keep before delete on target for each row execute function keep()",
		"delete from source where id = 1",
	)
	s.fails("55000", "refresh streaming table target")
	s.expect("select count(*) from target", "2")
}

func TestAFlowReadByAnotherOneIsRecomputedWithoutWritingWhatIsThere(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	revenue(s, "tblproperties ('rwproxy.refresh_policy' = 'full')")
	s.must("refresh streaming table revenue")
	s.expect("select rows_deleted > 0 from rwproxy.refreshes order by started_at desc limit 1", "t")
	s.must("create streaming table monthly flow replace where true by name select shop, sum(amount) as amount from revenue group by shop")
	s.must("refresh streaming table revenue")
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes order by started_at desc limit 1", "0 0")
	s.refreshed("monthly", "NO_OP -")
}
