package jobs

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/refresh"
	"github.com/rwproxy/rwproxy/rewrite"
)

// calendar is a database with flows, of which no instance takes care.
type calendar struct {
	*session
	url    string
	engine *refresh.Engine
	inside bool // a transaction is open
	scheduler
}

// Joined reports whether a transaction is open.
func (c *calendar) Joined() bool { return c.inside }

func newCalendar(t *testing.T, statements ...string) *calendar {
	t.Helper()
	url := pgtest.Database(t)
	service, err := flowstate.NewService(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	c := &calendar{session: connect(t, url), url: url, engine: refresh.New(service, zaptest.NewLogger(t), uncounted{})}
	c.unreadable = func(_ string, err error) { t.Error(err) }
	c.run("create table source (id integer)", "insert into source values (1)")
	c.run(statements...)
	return c
}

// run runs statements of rwproxy's and of Postgres's.
func (c *calendar) run(statements ...string) {
	c.t.Helper()
	for _, sql := range statements {
		statement, err := rewrite.Parse(sql, rewrite.Lexical{})
		if err != nil {
			c.t.Fatalf("%s\n%v", sql, err)
		}
		if statement == nil {
			c.must(sql)
			continue
		}
		result, err := c.engine.Run(c.t.Context(), c, statement)
		if err == nil && result.Forward {
			_, err = c.Exec(c.t.Context(), statement.Shadow())
		}
		if err != nil {
			c.t.Fatalf("%s\n%v", sql, err)
		}
	}
}

// joined runs do in the transaction that is open.
func (c *calendar) joined(do func()) {
	c.inside = true
	do()
	c.inside = false
}

const flow = " flow replace where true by name select id from source"

// look has the due enqueued when the database's clock shows a time, and
// returns when to look again.
func (c *calendar) look(at string) string {
	c.t.Helper()
	var err error
	if c.at, err = time.Parse("2006-01-02 15:04:05.999", at); err != nil {
		c.t.Fatal(err)
	}
	next, err := c.enqueueDue(c.t.Context(), c)
	if err != nil {
		c.t.Fatal(err)
	}
	if next.IsZero() {
		return "never"
	}
	return next.UTC().Format("2006-01-02 15:04:05.999")
}

// looks expects when to look again, and how many refreshes are enqueued then;
// they are taken out of the queue.
func (c *calendar) looks(at, next string, enqueued int) {
	c.t.Helper()
	if got := c.look(at); got != next {
		c.t.Errorf("at %s: look again %s, want %s", at, got, next)
	}
	c.queued(at, enqueued)
}

func (c *calendar) queued(at string, want int) {
	c.t.Helper()
	if got := c.value("select count(*) from rwproxy.refreshes where state = 'QUEUED'"); got != fmt.Sprint(want) {
		c.t.Errorf("at %s: %s refreshes are enqueued, want %d", at, got, want)
	}
	c.must("select rwproxy.cancel_refresh(refresh_id) from rwproxy.refreshes where state = 'QUEUED'")
}

func TestACronScheduleRunsAtItsTimes(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table nightly schedule cron '0 30 2 * * ?' at time zone 'Europe/Berlin'"+flow)
	c.looks("2027-03-26 12:00:00", "2027-03-27 01:30:00", 0)
	c.looks("2027-03-27 01:29:59.999", "2027-03-27 01:30:00", 0)
	c.looks("2027-03-27 01:30:00", "2027-03-28 01:30:00", 1)
	c.looks("2027-03-27 01:30:00.1", "2027-03-28 01:30:00", 0)
	// On the 28th clocks go from 2 to 3.
	c.looks("2027-03-28 01:30:00.5", "2027-03-29 00:30:00", 1)
	if got := c.value("select cause, kind, requested_by = current_user from rwproxy.refreshes where cause <> 'statement' limit 1"); got != "schedule|window|t" {
		t.Errorf("the refresh is %s", got)
	}
	if got := c.value("select next_run_at at time zone 'UTC' from rwproxy.flows"); got != "2027-03-29 00:30:00" {
		t.Errorf("next_run_at is %s", got)
	}
}

func TestRunsThatWereMissedAreOne(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table often schedule cron '0 0/10 * * * ?' at time zone 'UTC'"+flow)
	c.looks("2027-01-01 00:00:00", "2027-01-01 00:10:00", 0)
	c.looks("2027-01-03 12:34:56", "2027-01-03 12:40:00", 1)
}

func TestARunThatStillWaitsIsEnoughForTheNext(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table often schedule cron '0 0/10 * * * ?' at time zone 'UTC'"+flow)
	c.look("2027-01-01 00:00:00")
	c.look("2027-01-01 00:10:00")
	c.looks("2027-01-01 00:20:00", "2027-01-01 00:30:00", 1)
}

func TestEveryCountsFromWhenItWasSet(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t schedule every 2 hours"+flow)
	set := func() time.Time {
		seconds := c.value("select extract(epoch from set_at) from rwproxy.schedule")
		at, err := time.ParseDuration(seconds + "s")
		if err != nil {
			t.Fatal(err)
		}
		return time.Unix(0, 0).Add(at).UTC()
	}
	stamp := func(at time.Time) string { return at.Format("2006-01-02 15:04:05.999") }
	first := set().Truncate(time.Millisecond)
	if got := c.look(stamp(first)); got[:19] != stamp(set().Add(2 * time.Hour))[:19] {
		t.Errorf("set at %s, next at %s", set(), got)
	}
	// However late it is looked for, the next one is at an even hour after.
	if got := c.look(stamp(first.Add(7 * time.Hour))); got[:19] != stamp(set().Add(8 * time.Hour))[:19] {
		t.Errorf("set at %s, next at %s", set(), got)
	}
	c.queued("seven hours later", 1)
	c.run("create or refresh streaming table t schedule every 2 hours" + flow)
	if got := set().Truncate(time.Millisecond); got != first {
		t.Errorf("a schedule that stays was set at %s, not any more at %s", got, first)
	}
	c.run("alter streaming table t alter schedule every 3 hours")
	if got := set(); !got.After(first) {
		t.Errorf("another schedule was set at %s", got)
	}
	if got := c.value("select next_run_at from rwproxy.flows"); got != "null" {
		t.Errorf("the other schedule runs at %s", got)
	}
	c.run("alter streaming table t drop schedule")
	if got := c.value("select count(*) from rwproxy.schedule"); got != "0" {
		t.Errorf("%s schedules are left", got)
	}
	c.looks("2030-01-01 00:00:00", "never", 0)
}

func TestAClockThatIsSetBackNeitherRepeatsNorSilences(t *testing.T) {
	t.Parallel()
	c := newCalendar(t,
		"create streaming table daily schedule cron '0 0 2 * * ?' at time zone 'UTC'"+flow)
	c.looks("2027-06-10 01:00:00", "2027-06-10 02:00:00", 0)
	c.looks("2027-06-10 02:00:00.01", "2027-06-11 02:00:00", 1)
	// By less than a second: it has run.
	c.looks("2027-06-10 01:59:59.9", "2027-06-11 02:00:00", 0)
	// To the year before: it runs as that year's clock says, and not at once.
	c.looks("2026-06-10 01:00:00", "2026-06-10 02:00:00", 0)
	c.looks("2026-06-10 02:00:00", "2026-06-11 02:00:00", 1)
	// To the year after: once.
	c.looks("2027-06-10 13:00:00", "2027-06-11 02:00:00", 1)
	c.looks("2027-06-10 13:00:01", "2027-06-11 02:00:00", 0)
}

func TestAScheduleThatIsOverNeverRuns(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t schedule cron '0 0 0 1 1 ? 2090' at time zone 'UTC'"+flow)
	c.looks("2089-06-01 00:00:00", "2090-01-01 00:00:00", 0)
	c.looks("2090-01-01 00:00:00", "never", 1)
	c.looks("2095-01-01 00:00:00", "never", 0)
	if got := c.value("select next_run_at from rwproxy.flows"); got != "null" {
		t.Errorf("next_run_at is %s", got)
	}
}

func TestATableWithoutAFlowIsNotDue(t *testing.T) {
	t.Parallel()
	c := newCalendar(t, "create streaming table t (id integer) schedule cron '0 0 2 * * ?' at time zone 'UTC'")
	c.looks("2027-06-10 01:00:00", "never", 0)
	c.run("create flow f as insert into t by name replace where true select id from source")
	c.looks("2027-06-10 01:00:00", "2027-06-10 02:00:00", 0)
}

func TestOfManyInstancesOneEnqueuesARun(t *testing.T) {
	t.Parallel()
	const instances, runs = 4, 20
	c := newCalendar(t, "create streaming table a schedule cron '0/10 * * * * ?' at time zone 'UTC'"+flow,
		"create streaming table b schedule cron '5/10 * * * * ?' at time zone 'UTC'"+flow)
	sessions := make([]*session, instances)
	for i := range sessions {
		sessions[i] = connect(t, c.url)
	}
	start := time.Date(2027, 1, 1, 0, 0, 1, 0, time.UTC)
	for n := range runs + 1 {
		var all sync.WaitGroup
		for _, s := range sessions {
			all.Go(func() {
				one := scheduler{at: start.Add(time.Duration(n) * 10 * time.Second), unreadable: c.unreadable}
				if _, err := one.enqueueDue(t.Context(), s); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		c.must("select rwproxy.cancel_refresh(refresh_id) from rwproxy.refreshes where state = 'QUEUED'")
	}
	if got := c.value("select count(*), count(distinct target_table) from rwproxy.refreshes where cause = 'schedule'"); got != fmt.Sprintf("%d|2", 2*runs) {
		t.Errorf("%s refreshes, want %d of 2 tables", got, 2*runs)
	}
}

func TestJitterSpreadsTheRunsOfManyTables(t *testing.T) {
	t.Parallel()
	d := scheduler{jitter: 5 * time.Second, unreadable: func(_ string, err error) { t.Error(err) }}
	now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	starts := map[time.Time]bool{}
	for n := range 1000 {
		due := flowstate.DueSchedule{ID: fmt.Sprint("table ", n), Text: "CRON '0 0 2 * * ?' AT TIME ZONE 'UTC'"}
		next := d.next(due, now)
		if late := next.Sub(now) - 2*time.Hour; late < 0 || late >= 5*time.Second {
			t.Errorf("table %d runs %s late", n, late)
		}
		if again := d.next(due, next); again.Sub(next) != 24*time.Hour {
			t.Errorf("table %d runs %s after the first time", n, again.Sub(next))
		}
		starts[next.Truncate(time.Second)] = true
	}
	if len(starts) != 5 {
		t.Errorf("a thousand tables start in %d of 5 seconds", len(starts))
	}
	// A schedule of every second keeps its pace.
	due := flowstate.DueSchedule{ID: "x", Text: "CRON '* * * * * ?' AT TIME ZONE 'UTC'"}
	next := d.next(due, now)
	if again := d.next(due, next); again.Sub(next) != time.Second {
		t.Errorf("a schedule of every second runs after %s", again.Sub(next))
	}
}
