package jobs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// fires has the triggers looked at when the database's clock shows a time of
// one day, and expects the refreshes of some tables to be enqueued, in the order
// in which they may begin. It runs them, and goes on until none is due.
func (c *calendar) fires(at string, waves ...string) {
	c.t.Helper()
	for i := 0; ; i++ {
		c.look("2027-01-01 " + at)
		ready := []string{}
		queue, err := flowstate.ReadQueue(c.t.Context(), c, 100)
		if err != nil {
			c.t.Fatal(err)
		}
		for _, job := range queue.Ready {
			ready = append(ready, job.Name)
		}
		got, want := strings.Join(ready, " "), ""
		if i < len(waves) {
			want = waves[i]
		}
		if sorted(got) != sorted(want) {
			c.t.Fatalf("at %s, look %d: %q may begin, want %q", at, i+1, got, want)
		}
		if got == "" {
			return
		}
		for _, job := range queue.Ready {
			c.work(job)
		}
	}
}

// work runs a job in the session's own role.
func (c *calendar) work(job flowstate.Job) {
	c.t.Helper()
	never := func(string, int) (time.Duration, bool) { return 0, false }
	if err := c.engine.RunQueued(c.t.Context(), c, job, never); err != nil {
		c.t.Logf("%s: %v", job.Name, err)
	}
}

// calm looks until changes notify again, and returns when to look next then.
// Until then a look is wanted every two seconds.
func (c *calendar) calm(at string) (next string) {
	c.t.Helper()
	eventually(c.t, "changes notify again", func() bool {
		next = c.look(at)
		return next != c.at.Add(2*time.Second).Format("2006-01-02 15:04:05.999")
	})
	return next
}

func sorted(words string) string {
	list := strings.Fields(words)
	slices.Sort(list)
	return strings.Join(list, " ")
}

func TestAChangeTriggersOneRefresh(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t trigger on update"+flow)
	c.fires("00:00:00")
	c.must("insert into source values (2)")
	c.fires("00:00:01", "t")
	c.must("insert into source values (3)", "update source set id = 4 where id = 3", "delete from source where id = 4")
	c.fires("00:00:02", "t")
	c.must("truncate source")
	c.fires("00:00:03", "t")
	c.must("update source set id = 1 where false", "begin", "insert into source values (1)", "rollback")
	c.fires("00:00:04")
	c.must("insert into source values (5)")
	c.run("refresh streaming table t")
	c.fires("00:00:05")
}

func TestATriggerTakesInWhatChangedBeforeItWasSet(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t"+flow)
	c.fires("00:00:00")
	c.must("insert into source values (2)")
	c.fires("00:00:01")
	c.run("alter streaming table t add trigger on update")
	c.fires("00:00:02", "t")
	c.must("insert into source values (3)")
	c.run("alter streaming table t drop schedule")
	c.fires("00:00:03")
}

func TestATriggerWaitsForItsInterval(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t trigger on update at most every interval 10 minutes"+flow)
	c.fires("00:00:00")
	c.must("insert into source values (2)")
	c.fires("00:00:01", "t")
	c.must("insert into source values (3)")
	c.fires("00:00:02")
	if next := c.calm("2027-01-01 00:00:03"); next != "2027-01-01 00:10:01" {
		t.Errorf("look again %s", next)
	}
	if got := c.value("select next_run_at at time zone 'UTC' from rwproxy.flows"); got != "2027-01-01 00:10:01" {
		t.Errorf("next_run_at is %s", got)
	}
	c.fires("00:10:00.9")
	c.fires("00:10:01", "t")
	if got := c.value("select next_run_at from rwproxy.flows"); got != "null" {
		t.Errorf("next_run_at is %s", got)
	}
	// A clock that is set back makes it wait for no longer than the interval.
	c.must("insert into source values (4)")
	if next := c.calm("2026-12-01 00:00:00"); next != "2026-12-01 00:10:00" {
		t.Errorf("look again %s", next)
	}
}

func TestARefreshThatFailsIsTriggeredAgainByAnotherChangeOnly(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t trigger on update flow replace where true by name select 1 / id as one from source")
	c.fires("00:00:00")
	c.must("insert into source values (0)")
	c.fires("00:00:01", "t")
	c.fires("00:10:00")
	c.must("insert into source values (0)")
	c.fires("00:10:01", "t")
	c.must("delete from source where id = 0")
	c.fires("00:10:02", "t")
	if got := c.value("select string_agg(state, ' ' order by requested_at) from rwproxy.refreshes where cause = 'trigger'"); got != "FAILED FAILED COMPLETED" {
		t.Errorf("the refreshes are %s", got)
	}
}

func TestChangesDuringARefreshTriggerAnother(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t trigger on update"+flow)
	c.fires("00:00:00")
	refreshing := connect(t, c.url)
	refreshing.must(fmt.Sprintf("select pg_advisory_lock(%d, 't'::regclass::oid::integer)", flowstate.LockClass))
	c.must("insert into source values (2)")
	c.fires("00:00:01")
	if next := c.look("2027-01-01 00:00:02"); next != "2027-01-01 00:00:04" {
		t.Errorf("look again %s", next)
	}
	refreshing.must("select pg_advisory_unlock_all()")
	c.fires("00:00:04", "t")
}

func TestChainsAreTriggeredInOrder(t *testing.T) {
	t.Parallel()
	from := func(table string) string {
		return " trigger on update flow replace where true by name select id from " + table
	}
	c := newCalendar(t,
		"create streaming table a"+from("source"),
		"create streaming table b"+from("a"),
		"create streaming table side"+from("source"),
		"create view sides as select id from side union all select id from a",
		"create streaming table last"+from("sides"),
		"create streaming table far trigger on update flow replace where true by name select s.id from source s join b using (id)")
	c.fires("00:00:00")
	c.must("insert into source values (2)")
	c.fires("00:00:01", "a side", "b last", "far")
	c.must("insert into a values (7)") // by hand
	c.fires("00:00:02", "b last", "far")
	// What does not change stops the chain.
	c.must("update source set id = id")
	c.fires("00:00:03")
}

func TestAFlowDoesNotWaitForEverForThoseThatItReads(t *testing.T) {
	t.Parallel()
	c := newCalendar(t,
		"create streaming table a trigger on update"+flow,
		"create streaming table b trigger on update flow replace where true by name select s.id from source s join a using (id)")
	c.fires("00:00:00")
	c.must("insert into source values (2)")
	c.look("2027-01-01 00:00:01") // a is in the queue and does not come to run
	c.look("2027-01-01 00:00:50")
	c.queuedTables("a")
	c.look("2027-01-01 00:01:01")
	c.queuedTables("a", "b")
}

func (c *calendar) queuedTables(want ...string) {
	c.t.Helper()
	got := c.value("select string_agg(target_table, ' ' order by target_table) from rwproxy.refreshes where state = 'QUEUED'")
	if got != strings.Join(want, " ") {
		c.t.Errorf("%s wait in the queue, want %v", got, want)
	}
}

func TestGarbageThatIsCollectedLosesNoTrigger(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t trigger on update"+flow, "create streaming table other"+flow)
	c.fires("00:00:00")
	c.must("insert into source values (2)")
	c.run("refresh streaming table other")
	service, err := flowstate.NewService(c.url)
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	if err := service.CollectGarbage(t.Context(), c.Database()); err != nil {
		t.Fatal(err)
	}
	c.fires("00:00:01", "t")
	if err := service.CollectGarbage(t.Context(), c.Database()); err != nil {
		t.Fatal(err)
	}
	c.fires("00:00:02")
}

func TestASourceOfTheSameTransactionIsTrackedAfterIt(t *testing.T) {
	t.Parallel()
	c := newCalendar(t)
	c.must("begin", "create table fresh (id integer)", "insert into fresh values (1)")
	c.joined(func() {
		c.run("create streaming table t trigger on update flow replace where true by name select id from fresh")
	})
	c.must("commit")
	c.fires("00:00:00", "t")
	c.must("insert into fresh values (2)")
	c.fires("00:00:01", "t")
	if got := c.value("select count(*) from t"); got != "2" {
		t.Errorf("t has %s rows", got)
	}
}

func TestPartitionsTriggerToo(t *testing.T) {
	t.Parallel()
	c := newCalendar(t,
		"create table parted (id integer) partition by range (id)",
		"create table parted_1 partition of parted for values from (0) to (10)",
		"create table parted_2 partition of parted for values from (10) to (20)",
		"create streaming table t trigger on update flow replace where true by name select id from parted",
		"create streaming table first trigger on update flow replace where true by name select id from parted_1")
	c.fires("00:00:00")
	c.must("insert into parted_2 values (12)")
	c.fires("00:00:01", "t first") // they share a log
	c.must("truncate parted_1")
	c.fires("00:00:02", "t first")
}

// notified returns whether the channel of the queue is notified by a statement
// of another session.
func (c *calendar) notified(sql string) bool {
	c.t.Helper()
	listener := connect(c.t, c.url)
	listener.must("listen " + flowstate.QueueChannel)
	defer listener.conn.Close(context.Background())
	connect(c.t, c.url).must(sql, "notify "+flowstate.QueueChannel+", 'end'")
	for {
		n, err := listener.conn.WaitForNotification(c.t.Context())
		if err != nil {
			c.t.Fatal(err)
		}
		if n.Payload == "end" {
			return false
		}
		if n.Payload == "" {
			return true
		}
	}
}

func TestOnlyChangesThatATriggerWaitsForNotify(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t"+flow, "create table apart (id integer)",
		"create streaming table other flow replace where true by name select id from apart")
	notifies := func(sql string, want bool) {
		t.Helper()
		c.calm("2027-01-01 00:00:00")
		if got := c.notified(sql); got != want {
			t.Errorf("%s: notifies %t", sql, got)
		}
	}
	c.fires("00:00:00")
	notifies("insert into source values (2)", false)
	c.run("alter streaming table t add trigger on update")
	c.fires("00:00:01", "t")
	for _, sql := range []string{
		"insert into source values (3)", "update source set id = 4 where id = 3", "delete from source where id = 4",
		"truncate source", "copy source from program 'echo 1'",
	} {
		notifies(sql, true)
	}
	notifies("delete from source where false", false)
	notifies("insert into t values (3)", false)
	notifies("insert into apart values (3)", false)
	c.fires("00:00:02", "t")
	c.run("alter streaming table t alter schedule every 1 day")
	c.look("2027-01-01 00:00:03")
	c.fires("00:00:04")
	c.run("create streaming table third trigger on update flow replace where true by name select id from apart")
	c.fires("00:00:05")
	notifies("insert into source values (3)", false)
	notifies("insert into apart values (3)", true)
}

func TestWhoDidNotNotifyYetIsWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t"+flow)
	writer := connect(t, c.url)
	writer.must("begin", "insert into source values (2)")
	c.run("alter streaming table t add trigger on update")
	if next := c.look("2027-01-01 00:00:00"); next != "2027-01-01 00:00:02" {
		t.Errorf("look again %s", next)
	}
	writer.must("commit")
	c.fires("00:00:02", "t")
	if next := c.calm("2027-01-01 00:00:04"); next != "never" {
		t.Errorf("look again %s", next)
	}
}

func TestSchedulesAndTriggersRunByThemselves(t *testing.T) {
	one := newInstance(t, pgtest.Server(t).URL("postgres"), 2)
	newInstance(t, pgtest.Server(t).URL("postgres"), 2)
	f := newFlows(t, one, 0)
	f.through(one,
		"create streaming table ticking schedule cron '* * * * * ?' at time zone 'UTC'"+flow,
		"create streaming table first trigger on update"+flow,
		"create streaming table second trigger on update flow replace where true by name select id from first")
	f.until("select count(*) >= 3 from rwproxy.refreshes where target_table = 'ticking' and cause = 'schedule' and state = 'COMPLETED'", "t")
	for n := range 3 {
		f.must(fmt.Sprintf("insert into source values (%d)", 100+n))
		f.until(fmt.Sprintf("select exists (select from second where id = %d)", 100+n), "t")
	}
	f.through(one, "alter streaming table ticking drop schedule")
	f.until("select count(*) from rwproxy.refreshes where state in ('QUEUED', 'RUNNING')", "0")
	if got := f.value("select string_agg(distinct state, ' ') from rwproxy.refreshes"); got != "COMPLETED" {
		t.Errorf("refreshes are %s", got)
	}
}

func TestChangesThatDoNotCeaseDoNotNotify(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t trigger on update at most every interval 10 minutes"+flow)
	c.calm("2027-01-01 00:00:00")
	for n := range 3 { // each is looked at, at once
		c.must(fmt.Sprintf("insert into source values (%d)", n))
		c.look("2027-01-01 00:00:01")
	}
	if c.notified("insert into source values (10)") {
		t.Error("a change notifies although more of them are looked for")
	}
	// An open transaction that has not notified is waited for.
	writer := connect(t, c.url)
	writer.must("begin", "insert into source values (11)")
	c.look("2027-01-01 00:00:02") // sees the one before
	c.look("2027-01-01 00:00:04") // sees none, and lets changes notify
	for range 3 {
		if next := c.look("2027-01-01 00:00:06"); next != "2027-01-01 00:00:08" {
			t.Errorf("look again %s", next)
		}
	}
	writer.must("commit")
	if !c.notified("insert into source values (12)") {
		t.Error("a change does not notify although nobody looks for it")
	}
}

func TestWritersThatPrepareTheirTransactionsAreNotDisturbed(t *testing.T) {
	server, err := embedded.Start(t.Context(), embedded.Config{
		DataDir: pgtest.TempDir(t), Trust: true, Settings: map[string]string{"fsync": "off", "max_prepared_transactions": "5"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	i := newInstance(t, server.URL("postgres"), 2)
	f := newFlowsIn(t, i, server.URL("postgres"), 0)
	f.through(i, "create streaming table t trigger on update"+flow)
	f.must("begin", "insert into source values (7)", "prepare transaction 'one'", "commit prepared 'one'")
	f.until("select exists (select from t where id = 7)", "t")
}

func TestAnOpenTransactionHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table a trigger on update"+flow, "create streaming table b trigger on update"+flow,
		"create streaming table nightly schedule cron '0 30 2 * * ?' at time zone 'UTC'"+flow)
	c.fires("00:00:00")
	c.queued("00:00:00", 0)
	other := connect(t, c.url)
	alter := `insert into rwproxy.request (step, arguments) values ('alter_table', jsonb_build_object(
		'action', 'alter_schedule', 'target', '%s'::regclass::oid::bigint, 'schedule', '%s'))`
	other.must("begin", fmt.Sprintf(alter, "a", "TRIGGER ON UPDATE AT MOST EVERY INTERVAL 60 SECOND"),
		fmt.Sprintf(alter, "nightly", "EVERY 1 DAYS"))
	c.must("insert into source values (2)")
	c.fires("02:30:01", "b")
	other.must("rollback")
	c.fires("02:30:02", "a nightly")
}
