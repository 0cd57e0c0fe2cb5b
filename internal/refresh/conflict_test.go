package refresh_test

import (
	"testing"
	"time"
)

// whileWaiting runs do as soon as the session waits for a lock, and returns
// what statement ended with.
func (d *database) whileWaiting(s *session, statement string, do func()) error {
	d.t.Helper()
	pid := s.rows("select pg_backend_pid()")[0]
	ended := make(chan error, 1)
	go func() { ended <- s.run(statement) }()
	watcher := d.connect()
	deadline := time.Now().Add(time.Minute)
	for watcher.rows("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and pid = " + pid)[0] == "0" {
		if time.Now().After(deadline) {
			d.t.Fatal("the session never waits for a lock")
		}
		time.Sleep(5 * time.Millisecond)
	}
	do()
	return <-ended
}

func TestARefreshThatMeetsAnotherWriterTriesAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, writer := d.connect(), d.connect()
	sales(s)
	s.must("insert into sales values ('2024-01-01', 'w', 1)")
	writer.must("begin", "update by_day set amount = 0")
	err := d.whileWaiting(s, "refresh streaming table by_day", func() { writer.must("commit") })
	if err != nil {
		t.Fatal(err)
	}
	s.expect("select * from by_day", "2024-01-01 6.00")
	s.expect("select state, reason from rwproxy.refreshes order by requested_at",
		"COMPLETED FIRST_REFRESH", "COMPLETED EXTERNAL_CHANGE_IN_REPLACE_WINDOW")
}

func TestARefreshThatMeetsAnInsertedKeyTriesAgainOnce(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, writer := d.connect(), d.connect()
	sales(s)
	s.must("alter table by_day add unique (day)", "delete from by_day")
	writer.must("begin", "insert into by_day values ('2024-01-01', 0)")
	err := d.whileWaiting(s, "refresh streaming table by_day", func() { writer.must("commit") })
	if err != nil {
		t.Fatal(err)
	}
	s.expect("select * from by_day", "2024-01-01 5.00")

	s.must("alter table by_day add column one int default 1 unique", "insert into sales values ('2024-02-02', 'n', 1)")
	before := len(s.rows("select id from rwproxy.event_log where event_type = 'planning_information'"))
	s.fails("23505", "refresh streaming table by_day")
	if after := len(s.rows("select id from rwproxy.event_log where event_type = 'planning_information'")); after != before {
		t.Errorf("%d plans are recorded that were rolled back", after-before)
	}
	s.expect("select day, amount from by_day", "2024-01-01 5.00")
}

func TestASecondRefreshWaitsAndSeesTheFirst(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, first := d.connect(), d.connect()
	sales(s)
	first.must("begin")
	first.joined = true
	first.must("update sales set amount = amount + 1", "refresh streaming table by_day")
	err := d.whileWaiting(s, "refresh streaming table by_day", func() { first.must("commit") })
	if err != nil {
		t.Fatal(err)
	}
	s.expect("select * from by_day", "2024-01-01 7.00")
	// What the first one wrote in the same transaction is taken in once more.
	s.expect("select rows_deleted, rows_inserted from rwproxy.refreshes where technique = 'INCREMENTAL'", "1 1", "1 1")
}

func TestATruncatedSourceIsNeverReadAsEmptyHalfWay(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, writer := d.connect(), d.connect()
	sales(s)
	writer.must("begin", "truncate sales", "insert into sales values ('2024-03-03', 'n', 6)")
	err := d.whileWaiting(s, "refresh streaming table by_day", func() { writer.must("commit") })
	if err != nil {
		t.Fatal(err)
	}
	s.expect("select * from by_day", "2024-03-03 6.00")
}

func TestAFlowWhoseTargetIsDroppedMeanwhileSaysSo(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s, other := d.connect(), d.connect()
	sales(s)
	other.must("begin")
	other.joined = true
	other.must("refresh streaming table by_day", "drop table by_day")
	err := d.whileWaiting(s, "refresh streaming table by_day", func() { other.must("commit") })
	if got := s.fails("42P01", "refresh streaming table by_day"); err == nil || err.Error() != got.Error() {
		t.Errorf("got %v, want %v", err, got)
	}
}

func TestAnOldSnapshotIsToldThatRwproxyIsNew(t *testing.T) {
	t.Parallel()
	s := newDatabase(t).connect()
	s.must("create table src (a int)", "begin isolation level serializable", "select 1 from src")
	s.joined = true
	s.fails("40001", "create streaming table dst flow replace where a > 0 by name select a from src")
	s.must("rollback", "begin isolation level serializable", "create streaming table dst flow replace where a > 0 by name select a from src", "commit")
	s.expect("select count(*) from dst", "0")
}
