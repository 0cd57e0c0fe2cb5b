package integration

import (
	"fmt"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// Every proxy serves every database of its server, so that what these tests do
// to proxies needs a server of their own.

// serverOf starts a server for one test.
func serverOf(t *testing.T, name string) *embedded.Postgres {
	t.Helper()
	own, err := startServer(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopServer(own); err != nil {
			t.Error(err)
		}
	})
	return own
}

const refreshAsync = `refresh streaming table totals async`

// async asks for a refresh that nobody waits for, and returns its id.
func (s *session) async(statement string) string {
	s.t.Helper()
	result, err := s.run(statement)
	if err != nil {
		s.t.Fatalf("%s\n%s", statement, describe(err))
	}
	if len(result.FieldDescriptions) != 2 || result.FieldDescriptions[0].Name != "update_id" || result.FieldDescriptions[1].Name != "status_url" {
		s.t.Fatalf("%s\nreturns columns %v", statement, result.FieldDescriptions)
	}
	return string(result.Rows[0][0])
}

// ends waits until a refresh has ended, and checks how, and how often it was
// begun in vain; "" for any number.
func (s *session) ends(id, state, attempts string) {
	s.t.Helper()
	of := ` from rwproxy.refreshes where refresh_id = '` + id + `'`
	eventually(s.t, "refresh "+id+" has ended", func() bool {
		return s.value(`select state in ('COMPLETED', 'FAILED', 'CANCELED')`+of) == "t"
	})
	s.want(`select state, coalesce(error, '')`+of, state+"|")
	if attempts != "" {
		s.want(`select attempt`+of, attempts)
	}
}

// jobPid waits until the job of a database runs in a statement that waits for a
// lock, and returns its backend.
func (s *session) jobPid(statement string) uint32 {
	s.t.Helper()
	query := fmt.Sprintf(`select coalesce(min(pid), 0) from pg_stat_activity where datname = current_database()
		and application_name = 'rwproxy job' and wait_event_type = 'Lock' and starts_with(query, '%s')`, statement)
	var pid string
	eventually(s.t, "the job is held in "+statement, func() bool {
		pid = s.value(query)
		return pid != "0"
	})
	number, err := strconv.ParseUint(pid, 10, 32)
	if err != nil {
		s.t.Fatal(err)
	}
	return uint32(number)
}

// settled checks that a refresh has left nothing behind.
func (s *session) settled() {
	s.t.Helper()
	s.want(wholeTotals, s.recomputedTotals()...)
	s.want(`select count(*) from rwproxy.refreshes where state in ('RUNNING', 'QUEUED')`, "0")
	s.holdsNoLock()
}

func TestARefreshThatNobodyWaitsForIsDone(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.createHeld()
		id := s.async(refreshAsync)
		s.ends(id, "COMPLETED", "0")
		s.settled()
		s.exec(`insert into source values (100, '2024-01-01', 1)`)
		id = s.async(`refresh streaming table totals where day = '2024-01-01' async`)
		s.ends(id, "COMPLETED", "0")
		s.want(`select amount from totals where day = '2024-01-01'`, s.rows(`select sum(amount) from source where day = '2024-01-01'`)...)
		s.want(`select kind, cause from rwproxy.refreshes where refresh_id = '`+id+`'`, "override|statement")
	})
}

// steps of a job that a test can hold and in which a job is already recorded.
func jobSteps() (usable []step) {
	for _, st := range steps {
		if !st.unrecorded {
			usable = append(usable, st)
		}
	}
	return usable
}

func TestAJobSurvivesTheProxyThatRunsItAtAnyStep(t *testing.T) {
	t.Parallel()
	own := serverOf(t, "job steps")
	for i, st := range jobSteps() {
		t.Run(st.name, func(t *testing.T) {
			d := database{name: fmt.Sprintf("step_%d", i)}
			connect(t, own.URL("postgres")).exec(`create database ` + d.name)
			d.direct = own.URL(d.name)
			p := ownProxy(t, own.URL("postgres"))
			client := connect(t, p.url(d.direct))
			client.createHeld()
			watcher, holder := connect(t, d.direct), connect(t, d.direct)
			holder.exec(st.hold)
			id := client.async(refreshAsync)
			pid := watcher.jobPid(st.during)
			p.kill()
			(&gate{watcher}).gone(pid) // although it waits for a lock
			holder.exec(st.release)
			ownProxy(t, own.URL("postgres"))
			watcher.ends(id, "COMPLETED", "")
			watcher.settled()
			watcher.want(`select count(*) from rwproxy.refreshes where refresh_id = '`+id+`'`, "1")
		})
	}
}

func TestAJobIsReplacedWithinSecondsByAnotherProxy(t *testing.T) {
	t.Parallel()
	own := serverOf(t, "job failover")
	first := ownProxy(t, own.URL("postgres"))
	client := connect(t, first.url(own.URL("postgres")))
	client.createHeld()
	watcher, holder := connect(t, own.URL("postgres")), connect(t, own.URL("postgres"))
	holder.exec(`select pg_advisory_lock(3)`)
	id := client.async(refreshAsync)
	before := watcher.jobPid("with written as")
	second := ownProxy(t, own.URL("postgres"))
	first.kill()
	eventually(t, "another session runs the job", func() bool { return watcher.jobPid("with written as") != before })
	holder.exec(`select pg_advisory_unlock(3)`)
	watcher.ends(id, "COMPLETED", "1")
	watcher.settled()
	// The survivor serves clients as before.
	next := connect(t, second.url(own.URL("postgres")))
	next.exec(`update source set amount = 5 where id = 10`)
	next.ends(next.async(refreshAsync), "COMPLETED", "0")
	next.settled()
}

func TestAnAcceptedRefreshRunsAlthoughTheProxyDiesBeforeItBegins(t *testing.T) {
	t.Parallel()
	own := serverOf(t, "job accepted")
	first := ownProxy(t, own.URL("postgres"), "--max-refreshes=1")
	client := connect(t, first.url(own.URL("postgres")))
	client.createHeld()
	client.exec(`create streaming table other flow replace where true by name select id from source`, `insert into source values (1000, '2024-01-06', 1)`)
	watcher, holder := connect(t, own.URL("postgres")), connect(t, own.URL("postgres"))
	holder.exec(`select pg_advisory_lock(1)`)
	running := client.async(refreshAsync)
	watcher.jobPid("delete")
	accepted := client.async(`refresh streaming table other async`)
	watcher.want(`select state from rwproxy.refreshes where refresh_id = '`+accepted+`'`, "QUEUED")
	first.kill()
	holder.exec(`select pg_advisory_unlock(1)`)
	ownProxy(t, own.URL("postgres"))
	watcher.ends(accepted, "COMPLETED", "0")
	watcher.ends(running, "COMPLETED", "1")
	watcher.settled()
	watcher.want(`select count(*) from (select id from source except select id from other) d`, "0")
}

func TestAJobSurvivesAServerThatIsKilledAtAnyStep(t *testing.T) {
	t.Parallel()
	own, p := ownServer(t, "job server steps")
	for i, st := range jobSteps() {
		t.Run(st.name, func(t *testing.T) {
			d := database{name: fmt.Sprintf("step_%d", i)}
			connect(t, own.URL("postgres")).exec(`create database ` + d.name)
			d.direct = own.URL(d.name)
			client := connect(t, p.url(d.direct))
			client.createHeld()
			connect(t, d.direct).exec(st.hold)
			id := client.async(refreshAsync)
			connect(t, d.direct).jobPid(st.during)
			if err := own.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := own.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			watcher := connect(t, d.direct)
			watcher.ends(id, "COMPLETED", "1")
			watcher.settled()
		})
	}
}

func TestAProxyThatIsToldToStopHandsItsJobsOver(t *testing.T) {
	t.Parallel()
	own := serverOf(t, "job handover")
	first := ownProxy(t, own.URL("postgres"), "--shutdown-timeout=1s")
	client := connect(t, first.url(own.URL("postgres")))
	client.createHeld()
	watcher, holder := connect(t, own.URL("postgres")), connect(t, own.URL("postgres"))
	holder.exec(`select pg_advisory_lock(3)`)
	id := client.async(refreshAsync)
	pid := watcher.jobPid("with written as")
	if err := first.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	(&gate{watcher}).gone(pid)
	select {
	case <-first.exited:
	case <-time.After(patience):
		t.Fatal("the proxy does not end")
	}
	if first.status != nil {
		t.Errorf("it left with %v\n%s", first.status, first.log.String())
	}
	watcher.want(`select state from rwproxy.refreshes where refresh_id = '`+id+`'`, "QUEUED")
	holder.exec(`select pg_advisory_unlock(3)`)
	ownProxy(t, own.URL("postgres"))
	watcher.ends(id, "COMPLETED", "1")
	watcher.settled()
}
