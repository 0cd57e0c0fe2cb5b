package integration

import (
	"fmt"
	"strings"
	"testing"
)

// heldAdvisoryLocks counts those of refreshes: the service holds one of its own
// while changes come that a trigger waits for.
const heldAdvisoryLocks = `select count(*) from pg_locks where locktype = 'advisory' and objid <> 4294967295
	and database = (select oid from pg_database where datname = current_database())`

// holdsNoLock waits until nobody does: a proxy that looks for databases holds one
// for a moment.
func (s *session) holdsNoLock() {
	s.t.Helper()
	eventually(s.t, "no lock is left", func() bool { return s.value(heldAdvisoryLocks) == "0" })
}

// A refresh is held at each of its steps, and there the proxy, the backend or
// the server is killed.

// step is a point where a test can hold a refresh.
type step struct {
	name string
	// during is what the statement that waits there begins with.
	during string
	// hold makes refreshes of the table totals stop here until release.
	hold, release string
	// unrecorded says that history does not know the refresh yet.
	unrecorded bool
	// last says that a statement whose client is gone ends the refresh.
	last bool
}

// The steps, in their order. The table's own triggers wait for the advisory
// lock whose key they are given; the others wait for what the step needs.
var steps = []step{
	{
		name: "waiting for its turn", during: "select pg_catalog.pg_advisory_lock", hold: `select pg_advisory_lock(1920430194, 'totals'::regclass::oid::integer)`,
		release: `select pg_advisory_unlock(1920430194, 'totals'::regclass::oid::integer)`, unrecorded: true,
	},
	{name: "recording its start", during: "insert into rwproxy.request", hold: `begin; lock table rwproxy.refresh in exclusive mode`, release: `rollback`, unrecorded: true},
	{name: "taking its snapshot", during: "lock table", hold: `begin; lock table source in access exclusive mode`, release: `rollback`},
	{name: "about to delete", during: "delete", hold: `select pg_advisory_lock(1)`, release: `select pg_advisory_unlock(1)`},
	{name: "having deleted", during: "delete", hold: `select pg_advisory_lock(2)`, release: `select pg_advisory_unlock(2)`},
	{name: "having inserted half", during: "with written as", hold: `select pg_advisory_lock(3)`, release: `select pg_advisory_unlock(3)`},
	{name: "having inserted", during: "with written as", hold: `select pg_advisory_lock(4)`, release: `select pg_advisory_unlock(4)`},
	{name: "recording its end", during: "insert into rwproxy.request", hold: `begin; select from rwproxy.streaming_table for update`, release: `rollback`},
	{name: "committing", during: "commit", hold: `select pg_advisory_lock(5)`, release: `select pg_advisory_unlock(5)`, last: true},
}

// createHeld makes a flow whose refreshes can be held, and a refresh due.
func (s *session) createHeld() {
	s.t.Helper()
	s.exec(`create table source (id integer primary key, day date, amount integer)`,
		`insert into source select n, date '2024-01-01' + n % 6, n from generate_series(1, 60) n`,
		`create streaming table totals flow replace where day >= '2024-01-03' by name
			select day, count(*) as n, sum(amount) as amount from source group by day`,
		`refresh streaming table totals where day = '2024-01-01'`, // a row outside the window
		`create function wait() returns trigger language plpgsql as $$
			begin
				perform pg_advisory_xact_lock_shared(tg_argv[0]::bigint);
				return new;
			end $$`,
		`create trigger about_to_delete before delete on totals for each statement execute function wait(1)`,
		`create trigger having_deleted after delete on totals for each statement execute function wait(2)`,
		`create trigger having_inserted_half before insert on totals for each row when (new.day = '2024-01-05') execute function wait(3)`,
		`create trigger having_inserted after insert on totals for each statement execute function wait(4)`,
		`create constraint trigger committing after insert on totals deferrable initially deferred for each row execute function wait(5)`,
		`refresh streaming table totals`, `update source set amount = amount + 1 where id = 10`, `refresh streaming table totals`,
		`update source set amount = 1000 where day = '2024-01-05' and id < 30`, `delete from source where id = 20`, `insert into source values (61, '2024-01-05', 7)`)
}

// wholeTotals is what totals must hold, or does.
const wholeTotals = `select day, n, amount from totals order by 1, 2, 3`

// recomputedTotals is what totals holds after a refresh.
func (s *session) recomputedTotals() []string {
	s.t.Helper()
	return s.rows(`select day, n, amount from totals where (day >= '2024-01-03') is not true union all
		select day, count(*), sum(amount) from source where day >= '2024-01-03' group by day order by 1, 2, 3`)
}

// blocked waits until a backend waits for a lock in a statement. It must not be
// called in a transaction, which sees the activity of its start.
func (s *session) blocked(pid uint32, statement string) {
	s.t.Helper()
	eventually(s.t, "the refresh is held in "+statement, func() bool {
		return s.value(fmt.Sprintf(`select count(*) from pg_stat_activity where pid = %d and wait_event_type = 'Lock'
			and starts_with(query, '%s')`, pid, statement)) == "1"
	})
}

// crash holds a refresh at a step, does the harm, and checks what is left.
// harm returns the session that looks at the wreck.
func (st step) crash(t *testing.T, d database, client *session, harm func(holder *session) *session, committed bool) {
	t.Helper()
	holder := connect(t, d.direct)
	before := holder.rows(wholeTotals)
	if strings.Join(before, "\n") == strings.Join(holder.recomputedTotals(), "\n") {
		t.Fatal("no refresh is due")
	}
	const source = `select count(*), sum(amount) from source`
	committedSource := holder.value(source)
	refreshes := holder.value(`select count(*) from rwproxy.refreshes`)
	holder.exec(st.hold)
	outcome := make(chan error, 1)
	go func() {
		_, err := client.run(`refresh streaming table totals`)
		outcome <- err
	}()
	pid := client.pid()
	connect(t, d.direct).blocked(pid, st.during)
	alive := harm(holder)
	if err := done(t, outcome); err == nil {
		t.Error("the client was told that its refresh succeeded")
	}
	if alive == holder {
		holder.exec(st.release)
	}
	(&gate{alive}).gone(pid)

	want, state := before, "FAILED"
	if committed {
		want, state = alive.recomputedTotals(), "COMPLETED"
	}
	alive.want(wholeTotals, want...)
	alive.want(source, committedSource)
	known := fmt.Sprintf(`select count(*) - %s from rwproxy.refreshes`, refreshes)
	last := `select state from rwproxy.refreshes order by requested_at desc limit 1`
	eventually(t, "history says that the refresh is "+state, func() bool {
		return alive.value(last) == state || st.unrecorded && alive.value(known) == "0"
	})
	alive.holdsNoLock()
	alive.want(`select count(*) from rwproxy.refreshes where state in ('RUNNING', 'QUEUED')`, "0")

	next := connect(t, d.url)
	for range 2 {
		next.exec(`refresh streaming table totals`)
		next.want(wholeTotals, next.recomputedTotals()...)
		next.want(last, "COMPLETED")
		next.exec(`update source set amount = amount * 2 where id in (5, 10, 15)`)
	}
}

func TestABackendThatIsTerminatedAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	for _, st := range steps {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			client := connect(t, d.url)
			client.createHeld()
			st.crash(t, d, client, func(holder *session) *session {
				holder.exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, client.pid()))
				return holder
			}, false)
		})
	}
}

func TestAProxyThatIsKilledAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	for _, st := range steps {
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			connect(t, d.url).createHeld()
			own := ownProxy(t, server.URL("postgres"))
			client := connect(t, own.url(d.direct))
			st.crash(t, d, client, func(holder *session) *session {
				own.kill()
				return holder
			}, st.last) // a COMMIT that has been sent is carried out
		})
	}
}

func TestAServerThatIsKilledAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	own, p := ownServer(t, "killed at any step")
	for i, st := range steps {
		t.Run(st.name, func(t *testing.T) {
			d := database{name: fmt.Sprintf("step_%d", i)}
			connect(t, own.URL("postgres")).exec(`create database ` + d.name)
			d.direct = own.URL(d.name)
			d.url = p.url(d.direct)
			client := connect(t, d.url)
			client.createHeld()
			st.crash(t, d, client, func(*session) *session {
				if err := own.Kill(); err != nil {
					t.Fatal(err)
				}
				if err := own.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				return connect(t, d.direct)
			}, false)
		})
	}
}

func TestATransactionThatIsCutOffAtAnyStepLosesNothing(t *testing.T) {
	t.Parallel()
	for _, st := range steps {
		if st.unrecorded || st.last {
			continue // the client's own statements stand there
		}
		t.Run(st.name, func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			client := connect(t, d.url)
			client.createHeld()
			client.exec(`begin`)
			if st.during == "lock table" {
				st.during = "do" // with LOCK TABLE in it; an INSERT would keep the holder from its lock
			} else {
				client.exec(`insert into source values (62, '2024-01-05', 9)`)
			}
			st.crash(t, d, client, func(holder *session) *session {
				holder.exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, client.pid()))
				return holder
			}, false)
		})
	}
}
