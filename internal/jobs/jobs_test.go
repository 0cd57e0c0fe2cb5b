package jobs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"golang.org/x/sync/semaphore"

	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

func TestEachJobRunsOnceWhateverInstanceTakesIt(t *testing.T) {
	server := pgtest.Server(t).URL("postgres")
	instances := []*instance{newInstance(t, server, 2), newInstance(t, server, 2), newInstance(t, server, 2)}
	const targets, rounds = 5, 4
	f := newFlows(t, instances[0], targets)
	for _, i := range instances {
		i.listens(f.name)
	}
	var ids []string
	for round := range rounds {
		for n := range targets {
			ids = append(ids, f.async(instances[(round+n)%len(instances)], fmt.Sprintf("target_%d", n+1)))
		}
	}
	for _, id := range ids {
		f.until(state(id), "COMPLETED|0")
	}
	for n := range targets {
		f.until(effects(fmt.Sprintf("target_%d", n+1)), fmt.Sprint(2*rounds))
	}
}

func TestAJobWhoseSessionIsTerminatedRunsAgainWithOneEffect(t *testing.T) {
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	f := newFlows(t, i, 1)
	release := f.hold()
	id := f.async(i, "target_1")
	f.holds(1)
	f.until(state(id), "RUNNING|0")
	f.must(`select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and application_name = 'rwproxy job'`)
	f.until(`select attempt from rwproxy.refreshes where refresh_id = '`+id+`'`, "1")
	release()
	f.until(state(id), "COMPLETED|1")
	f.until(effects("target_1"), "2")
}

func TestAnInstanceThatIsGoneIsReplaced(t *testing.T) {
	server := pgtest.Server(t).URL("postgres")
	cable, through := newRelay(t, server)
	doomed := newInstance(t, through, 1)
	f := newFlows(t, doomed, 2)
	release := f.hold()
	running, queued := f.async(doomed, "target_1"), f.async(doomed, "target_2")
	f.holds(1)
	other := newInstance(t, server, 2)
	other.listens(f.name)
	f.holds(2) // it takes what has not begun
	cable.cut()
	f.until(state(running), "RUNNING|1")
	f.holds(2)
	cable.restore() // it is not gone for ever, and has lost what it ran
	release()
	f.until(state(running), "COMPLETED|1")
	f.until(state(queued), "COMPLETED|0")
	f.until(effects("target_1"), "2")
	f.until(effects("target_2"), "2")
	id := f.async(other, "target_1")
	f.until(state(id), "COMPLETED|0")
}

func TestAnInstanceTakesUpWhatTheOneBeforeItHasLeft(t *testing.T) {
	server := pgtest.Server(t).URL("postgres")
	cable, through := newRelay(t, server)
	doomed := newInstance(t, through, 1)
	f := newFlows(t, doomed, 2)
	release := f.hold()
	running, queued := f.async(doomed, "target_1"), f.async(doomed, "target_2")
	f.holds(1)
	cable.cut()
	release()
	newInstance(t, server, 2)
	f.until(state(running), "COMPLETED|1")
	f.until(state(queued), "COMPLETED|0")
	f.until(effects("target_1"), "2")
}

func TestJobsOutliveARestartOfPostgres(t *testing.T) {
	for _, end := range []string{"killed", "stopped"} {
		t.Run(end, func(t *testing.T) {
			server, err := embedded.Start(t.Context(), embedded.Config{DataDir: pgtest.TempDir(t), Trust: true, Settings: map[string]string{"fsync": "off"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := server.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
			first, second := newInstance(t, server.URL("postgres"), 1), newInstance(t, server.URL("postgres"), 1)
			f := newFlowsIn(t, first, server.URL("postgres"), 3)
			second.listens("postgres")
			f.hold()
			running := []string{f.async(first, "target_1"), f.async(first, "target_2")}
			queued := f.async(first, "target_3")
			f.holds(2)
			if end == "killed" {
				if err := server.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err := server.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.session = connect(t, f.url)
			for _, id := range running {
				f.until(state(id), "COMPLETED|1")
			}
			f.until(state(queued), "COMPLETED|0")
			for n := 1; n <= 3; n++ {
				f.until(effects(fmt.Sprint("target_", n)), "2")
			}
			f.until(state(f.async(second, "target_1")), "COMPLETED|0")
			if lost := first.logged.FilterMessage("connection to database lost").Len(); lost > 3 {
				t.Errorf("the loss of the connection was reported %d times", lost)
			}
		})
	}
}

func TestAJobCanBeCanceledWhetherItRunsOrWaits(t *testing.T) {
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	f := newFlows(t, i, 3)
	release := f.hold()
	running, waiting, untouched := f.async(i, "target_1"), f.async(i, "target_2"), f.async(i, "target_3")
	f.holds(1)
	for _, id := range []string{waiting, running} {
		if got := f.value(`select rwproxy.cancel_refresh('` + id + `')`); got != "t" {
			t.Errorf("cancel_refresh returns %s", got)
		}
		f.until(state(id), "CANCELED|0")
	}
	release()
	f.until(state(untouched), "COMPLETED|0")
	f.until(effects("target_1"), "0")
	f.until(effects("target_2"), "0")
	for message, ids := range map[string][]string{
		"refresh begun": {running, untouched}, "refresh canceled": {running}, "refresh completed": {untouched},
	} {
		var got []string
		eventually(t, "the log says "+message, func() bool {
			got = nil
			for _, line := range i.logged.FilterMessage(message).FilterLevelExact(zap.InfoLevel).All() {
				got = append(got, line.ContextMap()[keyRefresh].(string))
			}
			return len(got) >= len(ids)
		})
		if !slices.Equal(got, ids) {
			t.Errorf("%s: %q, want %q", message, got, ids)
		}
	}
}

func TestNoMoreRefreshesRunThanAllowed(t *testing.T) {
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 2)
	const targets = 6
	f := newFlows(t, i, targets)
	f.must(`create function count_jobs() returns trigger language plpgsql as $$
		begin
			if (select count(*) from pg_stat_activity where application_name = 'rwproxy job' and state = 'active') > 2 then
				raise 'too many';
			end if;
			return null;
		end $$`)
	for n := 1; n <= targets; n++ {
		f.must(fmt.Sprintf(`create trigger count_jobs after insert on target_%d for each statement execute function count_jobs()`, n))
	}
	release := f.hold()
	var ids []string
	for n := 1; n <= targets; n++ {
		ids = append(ids, f.async(i, fmt.Sprint("target_", n)))
	}
	f.holds(2)
	release()
	for _, id := range ids {
		f.until(state(id), "COMPLETED|0")
	}
}

func TestADatabaseWithManyJobsLeavesRoomForAnother(t *testing.T) {
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	const targets = 8
	busy, other := newFlows(t, i, targets), newFlows(t, i, 1)
	release := busy.hold()
	var ids []string
	for n := 1; n <= targets; n++ {
		ids = append(ids, busy.async(i, fmt.Sprint("target_", n)))
	}
	busy.holds(1)
	id := other.async(i, "target_1")
	i.mu.Lock()
	d := i.databases[other.name]
	i.mu.Unlock()
	eventually(t, "the other database waits for a slot", func() bool { return d.hasNext() })
	release()
	other.until(state(id), "COMPLETED|0")
	other.until(`select started_at is not null from rwproxy.refreshes where refresh_id = '`+id+`'`, "t")
	began := other.value(`select started_at from rwproxy.refreshes where refresh_id = '` + id + `'`)
	for _, id := range ids {
		busy.until(state(id), "COMPLETED|0")
	}
	if before := busy.value(`select count(*) from rwproxy.refreshes where started_at < '` + began + `' and cause = 'statement' and attempt = 0
		and refresh_id in ('` + strings.Join(ids, "', '") + `')`); before > "3" {
		t.Errorf("%s of the busy database's refreshes began before the other's", before)
	}
}

func TestMoreDatabasesThanListenersTakeTurns(t *testing.T) {
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 2, func(j *Jobs) {
		j.listeners = &turns{slots: semaphore.NewWeighted(1), length: 50 * time.Millisecond}
	})
	var all []*flows
	for range 3 {
		all = append(all, newFlows(t, i, 1))
	}
	for range 3 {
		for _, f := range all {
			f.until(state(f.async(i, "target_1")), "COMPLETED|0")
		}
	}
}

func TestAJobWhoseRoleIsNotLetInFails(t *testing.T) {
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	f := newFlows(t, i, 2)
	admin := connect(t, f.url)
	admin.must(`create role refresher`, `grant all on target_1, target_2, source to refresher`)
	t.Cleanup(func() {
		s, err := pgx.Connect(context.Background(), f.url)
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close(context.Background())
		if _, err := s.Exec(context.Background(), `do $$ begin
			execute (select coalesce(string_agg(format('drop role %I', rolname), '; '), 'select') from pg_roles where rolname ~ '^rwproxy_run_'); end $$;
			drop owned by refresher; drop role refresher`); err != nil {
			t.Error(err)
		}
	})
	release := f.hold()
	first := f.async(i, "target_1")
	f.holds(1)
	asked := connect(t, f.url)
	asked.must(`grant select on all tables in schema rwproxy_flows to refresher`, `set role refresher`)
	asked.role = "refresher"
	rows := asked.through(i, `refresh streaming table target_2 full async`)
	id := rows[0][0].Text
	admin.must(`revoke connect on database ` + f.name + ` from public`)
	release()
	f.until(state(first), "COMPLETED|0")
	f.until(state(id), "FAILED|0")
	if got := f.value(`select error from rwproxy.refreshes where refresh_id = '` + id + `'`); !strings.Contains(got, "permission denied for database") {
		t.Errorf("error is %s", got)
	}
	f.until(effects("target_2"), "0")
}

func TestAnInstanceThatStopsLetsItsRefreshesFinish(t *testing.T) {
	i := newInstance(t, pgtest.Server(t).URL("postgres"), 1)
	f := newFlows(t, i, 2)
	release := f.hold()
	running, waiting := f.async(i, "target_1"), f.async(i, "target_2")
	f.holds(1)
	stopped := make(chan struct{})
	go func() {
		i.Stop(context.Background())
		close(stopped)
	}()
	f.until(`select count(*) `+ours(f.name)+` and query ~ 'listen|request'`, "0")
	release()
	<-stopped
	f.until(state(running), "COMPLETED|0")
	f.until(state(waiting), "QUEUED|0")
}

func TestARefreshThatIsCutWhenItsInstanceStopsIsRunByAnother(t *testing.T) {
	server := pgtest.Server(t).URL("postgres")
	i := newInstance(t, server, 1)
	f := newFlows(t, i, 1)
	release := f.hold()
	id := f.async(i, "target_1")
	f.holds(1)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	i.Stop(over)
	i.Stop(over)
	f.until(state(id), "QUEUED|1")
	release()
	newInstance(t, server, 1)
	f.until(state(id), "COMPLETED|1")
	f.until(effects("target_1"), "2")
}

func TestWhatIsTriedAgain(t *testing.T) {
	for _, code := range []string{"40001", "40P01", "57P01", "57P02", "57P03", "57P05", "25P03", "08006", "08001"} {
		if in, again := retry(code, 0); !again || in < firstPause/2 || in > firstPause {
			t.Errorf("%s: %v, %v", code, in, again)
		}
		if in, again := retry(code, maxAttempts-2); !again || in > maxPause || in < maxPause/2 {
			t.Errorf("%s, the last time but one: %v, %v", code, in, again)
		}
		if _, again := retry(code, maxAttempts-1); again {
			t.Errorf("%s is tried for ever", code)
		}
	}
	for _, code := range []string{"", "XX000", "57014", "42501", "22012", "53300", "55P03", "23505"} {
		if _, again := retry(code, 0); again {
			t.Errorf("%s is tried again", code)
		}
	}
	if _, again := retryConnect("53300", 0); !again {
		t.Error("a session that was one too many is not tried again")
	}
	var pauses []time.Duration
	for n := range 12 {
		pauses = append(pauses, pauseAfter(n))
	}
	if slices.Max(pauses) > maxPause || slices.Min(pauses) < firstPause/2 {
		t.Errorf("pauses: %v", pauses)
	}
}

func TestAnOutageIsToldOnceForEachReason(t *testing.T) {
	full, stopping := pgdiag.New("53300", "too many connections for database \"shop\""), pgdiag.New("57P03", "the database system is shutting down")
	var o outage
	var told []bool
	for _, err := range []error{full, full, stopping, io.EOF, io.ErrUnexpectedEOF} {
		told = append(told, o.begins(err))
	}
	if want := []bool{true, false, true, true, false}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
	if !o.over() || o.over() || !o.begins(full) {
		t.Error("its end is not told once, or what comes after it is not new")
	}
}
