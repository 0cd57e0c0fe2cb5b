package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/sync/errgroup"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// How long the processes are killed.
const (
	failoverVariable = "RWPROXY_FAILOVER_SECONDS"
	failoverSeconds  = 20
)

// failover is three proxies in front of one Postgres, with flows that run by
// themselves.
type failover struct {
	t      *testing.T
	server *embedded.Postgres
	direct string // URL of the flows' owner, past the proxies
	flows  []ownFlow

	mu       sync.Mutex // of what follows
	proxies  []*proxy   // those that were killed last among them
	accepted []string   // the refreshes that a client was told of
}

// ownFlow is a flow that runs by itself.
type ownFlow struct {
	name, schedule, query string
	period                int // seconds between its times; 0 for a trigger
}

// failoverSources is the number of tables that the flows read.
const failoverSources = 5

// failoverFlows are fifty flows: by the clock, by their sources, and by other
// flows.
func failoverFlows() []ownFlow {
	var flows []ownFlow
	daily := func(i int) string {
		return fmt.Sprintf(`select day, count(*) as n, sum(amount) as amount from source_%d group by day`, i%failoverSources)
	}
	for i := range 20 {
		period := 1 + i%3
		flows = append(flows, ownFlow{fmt.Sprint("timed_", i), fmt.Sprintf(`schedule cron '0/%d * * * * ?'`, period), daily(i), period})
	}
	for i := range 20 {
		flows = append(flows, ownFlow{fmt.Sprint("triggered_", i), `trigger on update`, daily(i), 0})
	}
	for i := range 10 {
		query := fmt.Sprintf(`select day, t.n + s.n as n, t.amount + s.amount as amount from triggered_%d t join triggered_%d s using (day)`, i, i+10)
		flows = append(flows, ownFlow{fmt.Sprint("chained_", i), `trigger on update`, query, 0})
	}
	return flows
}

// The proxies are killed and started again in a random order, and the server
// once, while the flows are due all the time: every run that was due has run,
// none has written twice, and nothing is left waiting. RWPROXY_FAILOVER_SECONDS
// makes it last longer.
func TestEveryDueRefreshRunsOnceWhateverIsKilled(t *testing.T) {
	t.Parallel()
	seconds, seed := number(t, failoverVariable, failoverSeconds), number(t, seedVariable, rand.Uint64())
	t.Logf("%s=%d %s=%d", seedVariable, seed, failoverVariable, seconds)
	f := newFailover(t)
	begun := f.create()
	f.watch()
	f.schedule()

	writing, stop := context.WithCancel(t.Context())
	defer stop()
	group, writing := errgroup.WithContext(writing)
	for i := range 3 {
		r := rand.New(rand.NewPCG(seed, uint64(i+1)))
		group.Go(func() error { return f.repeat(writing, r, func() string { return f.direct }, f.write) })
	}
	r := rand.New(rand.NewPCG(seed, 4))
	group.Go(func() error { return f.repeat(writing, r, func() string { return f.anyProxy(r).url(f.direct) }, f.ask) })
	f.killAll(writing, rand.New(rand.NewPCG(seed, 0)), time.Duration(seconds)*time.Second)
	stop()
	if err := group.Wait(); err != nil {
		t.Fatal(describe(err))
	}
	f.check(begun)
}

// newFailover starts the server and the proxies. They are told to stop, and do,
// when the test ends.
func newFailover(t *testing.T) *failover {
	t.Helper()
	own, err := startServer("failover")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopServer(own); err != nil {
			t.Error(err)
		}
	})
	f := &failover{t: t, server: own, flows: failoverFlows(), proxies: make([]*proxy, 3)}
	t.Cleanup(func() {
		for _, p := range f.proxies {
			if p == nil {
				continue
			}
			if err := p.stop(); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range f.proxies {
		f.start(i)
	}
	return f
}

// start starts the proxy of a place.
func (f *failover) start(i int) {
	f.t.Helper()
	p, err := startProxy(f.server.URL("postgres"), "--max-refreshes", "3", "--schedule-jitter", "0s")
	if err != nil {
		f.t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proxies[i] = p
}

func (f *failover) anyProxy(r *rand.Rand) *proxy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.proxies[r.IntN(len(f.proxies))]
}

// create makes the sources and the flows, as a role that is not the service's,
// and returns the time from which on the flows' tables count what writes them.
func (f *failover) create() string {
	f.t.Helper()
	admin := connect(f.t, f.server.URL("postgres"))
	admin.exec(`create role author login`, `create database flows owner author`)
	address, err := url.Parse(f.server.URL("flows"))
	if err != nil {
		f.t.Fatal(err)
	}
	address.User = url.User("author")
	f.direct = address.String()
	s := connect(f.t, f.proxies[0].url(f.direct))
	for i := range failoverSources {
		s.exec(fmt.Sprintf(`create table source_%d (id bigint generated always as identity primary key, day date, amount integer)`, i),
			fmt.Sprintf(`insert into source_%d (day, amount) select date '2024-01-01' + n %% 8, n from generate_series(1, 80) n`, i))
	}
	// A write that takes its time is one that a kill can hit.
	s.exec(`create table effect (target text, xid xid8)`,
		`create function count_effect() returns trigger language plpgsql as $$
			begin
				insert into effect values (tg_table_name, pg_current_xact_id());
				perform pg_sleep(random() * 0.05);
				return null;
			end $$`)
	for _, flow := range f.flows {
		s.exec(`create streaming table `+flow.name+` flow replace where day >= '2024-01-03' by name `+flow.query,
			`create trigger count_effect after insert on `+flow.name+` for each statement execute function count_effect()`)
	}
	begun := s.value(`select clock_timestamp()`)
	return begun
}

// schedule lets the flows run by themselves.
func (f *failover) schedule() {
	f.t.Helper()
	s := connect(f.t, f.proxies[0].url(f.direct))
	for _, flow := range f.flows {
		s.exec(`alter streaming table ` + flow.name + ` add ` + flow.schedule)
	}
}

// watch records each decision about a schedule: which time was due, which is
// next, and in which transaction.
func (f *failover) watch() {
	f.t.Helper()
	connect(f.t, f.server.URL("flows")).exec(
		`create table public.decision (number bigint generated always as identity, table_id uuid, due timestamptz, decided timestamptz, next timestamptz,
			xid xid8 default pg_current_xact_id())`,
		`create table public.enqueued (id uuid, table_id uuid, requested_at timestamptz, xid xid8 default pg_current_xact_id())`,
		`create function public.note_decision() returns trigger language plpgsql as $$
			begin
				insert into public.decision (table_id, due, decided, next) values (new.table_id, old.next_run_at, new.computed_at, new.next_run_at);
				return null;
			end $$`,
		`create function public.note_enqueued() returns trigger language plpgsql as $$
			begin
				insert into public.enqueued (id, table_id, requested_at) values (new.id, new.table_id, new.requested_at);
				return null;
			end $$`,
		`create trigger note_decision after update of next_run_at on rwproxy.schedule for each row when (old.text like 'CRON %' and old.next_run_at is not null)
			execute function public.note_decision()`,
		`create trigger note_enqueued after insert on rwproxy.refresh for each row when (new.cause = 'schedule') execute function public.note_enqueued()`)
}

// repeat does something in sessions of its own until ctx ends. What a kill does
// to a session is no error.
func (f *failover) repeat(ctx context.Context, r *rand.Rand, url func() string, action func(context.Context, *pgconn.PgConn, *rand.Rand) error) error {
	for ctx.Err() == nil {
		conn, err := pgconn.Connect(ctx, url())
		for err == nil {
			if err = action(ctx, conn, r); err == nil {
				err = pause(ctx, r, 300*time.Millisecond)
			}
		}
		if conn != nil {
			_ = conn.Close(context.WithoutCancel(ctx))
		}
		var refused *pgconn.PgError
		if ctx.Err() == nil && errors.As(err, &refused) && refused.Code[:2] != "57" && refused.Code[:2] != "08" {
			return err
		}
		if err := pause(ctx, r, 100*time.Millisecond); err != nil {
			break
		}
	}
	return nil
}

// pause waits for a random time.
func pause(ctx context.Context, r *rand.Rand, most time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(r.Int64N(int64(most)))):
		return nil
	}
}

// write changes a source.
func (f *failover) write(ctx context.Context, c *pgconn.PgConn, r *rand.Rand) error {
	source := fmt.Sprint("source_", r.IntN(failoverSources))
	day := fmt.Sprintf(`date '2024-01-01' + %d`, r.IntN(8))
	_, err := c.Exec(ctx, pick(r, []string{
		fmt.Sprintf(`insert into %s (day, amount) values (%s, %d)`, source, day, r.IntN(100)),
		fmt.Sprintf(`update %s set amount = amount + 1 where id %% 20 = %d`, source, r.IntN(20)),
		fmt.Sprintf(`delete from %s where id %% 40 = %d and (select count(*) from %[1]s) > 60`, source, r.IntN(40)),
	})).ReadAll()
	if sqlState(err) == "40P01" {
		return nil
	}
	return err
}

// ask asks for a refresh and does not wait for it.
func (f *failover) ask(ctx context.Context, c *pgconn.PgConn, r *rand.Rand) error {
	results, err := c.Exec(ctx, `refresh streaming table `+f.flows[r.IntN(len(f.flows))].name+` async`).ReadAll()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accepted = append(f.accepted, string(results[0].Rows[0][0]))
	return nil
}

// killAll kills one to three proxies at a time and starts them again, and once,
// half way, the server.
func (f *failover) killAll(ctx context.Context, r *rand.Rand, long time.Duration) {
	f.t.Helper()
	begun, serverKilled := time.Now(), false
	for ctx.Err() == nil && time.Since(begun) < long {
		victims := r.Perm(len(f.proxies))[:1+r.IntN(len(f.proxies))]
		for _, i := range victims {
			_ = pause(ctx, r, time.Second)
			f.proxies[i].kill()
		}
		if !serverKilled && time.Since(begun) > long/2 {
			serverKilled = true
			if err := f.server.Kill(); err != nil {
				f.t.Fatal(err)
			}
			_ = pause(ctx, r, time.Second)
			if err := f.server.Restart(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
		}
		for _, i := range victims {
			_ = pause(ctx, r, time.Second)
			f.start(i)
		}
		_ = pause(ctx, r, 3*time.Second)
	}
}

// check waits until everything has run, and looks what has.
func (f *failover) check(begun string) {
	f.t.Helper()
	s := connect(f.t, f.proxies[0].url(f.direct))
	quiet := s.value(`select clock_timestamp()`)
	var timed []string
	for _, flow := range f.flows {
		if flow.period > 0 {
			timed = append(timed, flow.name)
		}
		eventually(f.t, flow.name+" is exact", func() bool {
			wrong, err := differences(s, flow.name, `day >= '2024-01-03'`, flow.query)
			if err != nil {
				f.t.Fatal(describe(err))
			}
			return len(wrong) == 0
		})
	}
	// A run that has begun later covers all that was due before.
	due := fmt.Sprintf(`select string_agg(t, ', ') from unnest('{%s}'::text[]) t where not exists (
		select from rwproxy.refreshes r where r.target_table = t and r.cause = 'schedule' and r.state = 'COMPLETED' and r.started_at > '%s')`,
		strings.Join(timed, ","), quiet)
	eventually(f.t, "every schedule has been run to its end", func() bool { return s.value(due) == "NULL" })
	for _, name := range timed {
		s.exec(`alter streaming table ` + name + ` drop schedule`)
	}
	eventually(f.t, "nothing waits or runs", func() bool {
		return s.value(`select count(*) from rwproxy.refreshes where state in ('QUEUED', 'RUNNING')`) == "0"
	})
	s.want(`select target_table, cause, state, error from rwproxy.refreshes where state <> 'COMPLETED'`)
	for _, id := range f.accepted {
		s.want(`select state from rwproxy.refreshes where refresh_id = '`+id+`'`, "COMPLETED")
	}
	f.checkOnce(s, begun)
	f.t.Logf("accepted: %d\n%s", len(f.accepted), strings.Join(s.rows(`select cause, technique, count(*), count(distinct target_table)
		from rwproxy.refreshes group by 1, 2 order by 1, 2`), "\n"))
	f.t.Logf("attempts\n%s", strings.Join(connect(f.t, f.server.URL("flows")).rows(
		`select attempt, count(*) from rwproxy.refresh where durable group by 1 order by 1`), "\n"))
}

// checkOnce looks for what was left out, and for what ran twice: a time of a
// schedule without a run or with two, and a run that wrote more often than
// history says.
func (f *failover) checkOnce(s *session, begun string) {
	f.t.Helper()
	admin := connect(f.t, f.server.URL("flows"))
	for _, flow := range f.flows {
		if flow.period > 0 {
			f.checkTimes(admin, flow)
		}
		s.want(fmt.Sprintf(`select
				(select count(*) from rwproxy.refreshes where target_table = '%s' and requested_at >= '%s' and technique <> 'NO_OP') - count(*),
				count(*) - count(distinct xid)
			from effect where target = '%[1]s'`, flow.name, begun), "0|0")
	}
}

// checkTimes checks the times of one schedule. Each is decided about once: all
// that have passed by then are one run, which is enqueued then, or is one that
// waits in the queue already.
func (f *failover) checkTimes(admin *session, flow ownFlow) {
	f.t.Helper()
	decisions := fmt.Sprintf(`with decision as (
			select d.*, lead(due) over (order by number) as then_due
				from decision d join rwproxy.streaming_table t on t.id = d.table_id where t.target = '%s'::regclass)
		select 'of ' || d.due || ' decided ' || d.decided from decision d where `, flow.name)
	for what, condition := range map[string]string{
		"no time of the schedule": fmt.Sprintf(`extract(epoch from due) %% %d <> 0 or due > decided`, flow.period),
		"not followed by the next time": fmt.Sprintf(`then_due <> next or next <= due
			or extract(epoch from next) %% %d <> 0 or next - interval '%[1]d seconds' > decided`, flow.period),
		"without a run": `not exists (select from enqueued e where e.table_id = d.table_id and e.xid = d.xid)
			and not exists (select from rwproxy.refresh r where r.table_id = d.table_id and r.cause = 'schedule' and r.requested_at < d.decided and r.ended_at > d.decided)`,
		"with two runs": `(select count(*) from enqueued e where e.table_id = d.table_id and e.xid = d.xid) > 1`,
	} {
		if wrong := admin.rows(decisions + condition); len(wrong) > 0 {
			f.t.Errorf("%s: %s: %s", flow.name, what, strings.Join(wrong, "; "))
		}
	}
	admin.want(fmt.Sprintf(`select count(*) > 1 from decision d join rwproxy.streaming_table t on t.id = d.table_id where t.target = '%s'::regclass`, flow.name), "t")
	admin.want(fmt.Sprintf(`select e.id from enqueued e join rwproxy.streaming_table t on t.id = e.table_id where t.target = '%s'::regclass
		and not exists (select from decision d where d.table_id = e.table_id and d.xid = e.xid)`, flow.name))
}
