package flowstate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

func (s *session) enqueue(oid uint32) string {
	s.t.Helper()
	id, err := flowstate.Enqueue(s.t.Context(), s, flowstate.Request{Target: oid, Kind: flowstate.KindWindow})
	ok(s.t, err)
	return id
}

func (s *session) readQueue() flowstate.Queue {
	s.t.Helper()
	q, err := flowstate.ReadQueue(s.t.Context(), s, 100)
	ok(s.t, err)
	return q
}

// ready returns the ids of the refreshes that may begin.
func (s *session) ready() []string {
	s.t.Helper()
	ids := []string{}
	for _, job := range s.readQueue().Ready {
		ids = append(ids, job.ID)
	}
	return ids
}

// startQueued starts a queued refresh of a table whose lock the session holds.
func (s *session) startQueued(oid uint32, id string) *flowstate.Request {
	s.t.Helper()
	r, err := flowstate.StartQueued(s.t.Context(), s, oid, id)
	ok(s.t, err)
	return r
}

// runQueued is a whole run of a queued refresh.
func (s *session) runQueued(oid uint32, id string) {
	s.t.Helper()
	s.lock(oid)
	defer s.unlock(oid)
	if s.startQueued(oid, id) == nil {
		s.t.Fatalf("refresh %s did not start", id)
	}
	s.plan(id, "true")
	ok(s.t, flowstate.Finish(s.t.Context(), s, id, flowstate.Outcome{}))
}

// state is that of a refresh, and its error.
func (s *session) state(id string) string {
	s.t.Helper()
	return s.value("select state, error from rwproxy.refreshes where refresh_id = $1", id)
}

func sameIDs(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		t.Error(diff)
	}
}

func TestAQueuedRefreshRunsOnce(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	id, err := flowstate.Enqueue(t.Context(), s, flowstate.Request{
		Target: oid, Kind: flowstate.KindOverride, Where: "day = 'x'", Settings: map[string]string{"a": "b"},
	})
	ok(t, err)
	if got := s.value("select refresh_id = update_id, state, kind, cause, window_predicate, attempt, started_at from rwproxy.refreshes"); got != "t|QUEUED|override|statement|day = 'x'|0|null" {
		t.Errorf("queued: %s", got)
	}
	q := s.readQueue()
	want := []flowstate.Job{{
		ID: id, UpdateID: id, Target: oid, Schema: "public", Name: "daily",
		Kind: flowstate.KindOverride, Cause: flowstate.CauseStatement, RequestedBy: "postgres",
	}}
	if diff := cmp.Diff(want, q.Ready); diff != "" || !q.NextDue.IsZero() || q.Elsewhere {
		t.Errorf("%+v\n%s", q, diff)
	}

	s.lock(oid)
	if got := s.ready(); len(got) != 0 || !s.readQueue().Elsewhere {
		t.Errorf("of a table that is being refreshed %v is ready", got)
	}
	r := s.startQueued(oid, id)
	wantRequest := &flowstate.Request{Target: oid, Where: "day = 'x'", Settings: map[string]string{"a": "b"}}
	if diff := cmp.Diff(wantRequest, r); diff != "" {
		t.Error(diff)
	}
	s.plan(id, "resolved")
	if q := s.readQueue(); !q.Elsewhere {
		t.Error("nobody looks whether its session is lost")
	}
	ok(t, flowstate.Finish(t.Context(), s, id, flowstate.Outcome{RowsInserted: 1}))
	if again := s.startQueued(oid, id); again != nil {
		t.Error("a refresh began twice")
	}
	s.unlock(oid)
	if got := s.state(id); got != "COMPLETED|null" {
		t.Errorf("the refresh is %s", got)
	}
	if q := s.readQueue(); len(q.Ready) > 0 || q.Elsewhere {
		t.Errorf("when all is done there is left %+v", q)
	}
	events := s.rows(`select event_type, coalesce(details -> event_type ->> 'state', details -> event_type ->> 'status')
	                    from rwproxy.event_log where origin ->> 'update_id' = $1 order by sequence`, id)
	const wantEvents = "create_update|null update_progress|QUEUED flow_progress|QUEUED update_progress|INITIALIZING " +
		"flow_progress|STARTING planning_information|null update_progress|RUNNING flow_progress|RUNNING " +
		"flow_progress|COMPLETED update_progress|COMPLETED"
	if diff := cmp.Diff(wantEvents, strings.Join(events, " ")); diff != "" {
		t.Error(diff)
	}
}

func TestARefreshIsAcceptedWithItsTransaction(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.must("begin")
	s.enqueue(oid)
	s.must("rollback")
	sameIDs(t, s.ready())
}

func TestRefreshesOfOneTableRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	first, second := s.enqueue(oid), s.enqueue(oid)
	sameIDs(t, s.ready(), first)
	if !s.readQueue().Elsewhere {
		t.Error("nobody looks when the second one can run")
	}
	s.runQueued(oid, first)
	sameIDs(t, s.ready(), second)
}

func TestALostRefreshIsQueuedAgain(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, runner := connect(t, url, ""), connect(t, url, "")
	oid := s.dailyTable()
	id := s.enqueue(oid)
	runner.lock(oid)
	runner.startQueued(oid, id)
	lost := func() int64 {
		n, err := flowstate.RequeueLost(t.Context(), s)
		ok(t, err)
		return n
	}
	if n := lost(); n != 0 || s.state(id) != "RUNNING|null" {
		t.Fatalf("%d refreshes are lost, this one is %s", n, s.state(id))
	}
	runner.end()
	if got := s.state(id); got != "QUEUED|the session running it ended" {
		t.Errorf("before it was queued again it is %s", got)
	}
	if n := lost(); n != 1 {
		t.Errorf("%d refreshes are lost", n)
	}
	if got := s.value("select state, attempt, due_at > clock_timestamp() from rwproxy.refreshes"); got != "QUEUED|1|t" {
		t.Errorf("queued again: %s", got)
	}
	q := s.readQueue()
	if wait := q.NextDue.Sub(q.Now); len(q.Ready) > 0 || wait <= 0 || wait > time.Second {
		t.Errorf("%+v", q)
	}
	// As the tenth time.
	s.must("update rwproxy.refresh set attempt = 9, state = 'RUNNING'")
	if lost(); s.state(id) != "FAILED|the session running it ended" {
		t.Errorf("a refresh that lost ten sessions is %s", s.state(id))
	}
}

// end ends the session, and waits until Postgres has noticed.
func (s *session) end() {
	s.t.Helper()
	pid := s.value("select pg_backend_pid()")
	ok(s.t, s.conn.Close(s.t.Context()))
	other := connect(s.t, s.conn.Config().ConnString(), "")
	other.untilNone("select from pg_stat_activity where pid = " + pid)
}

func TestAFailureIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	id := s.enqueue(oid)
	fail := func(retry time.Duration) {
		s.lock(oid)
		defer s.unlock(oid)
		s.must("update rwproxy.refresh set due_at = clock_timestamp()")
		if s.startQueued(oid, id) == nil {
			t.Fatal("it did not start")
		}
		ok(t, flowstate.Fail(t.Context(), s, flowstate.Failure{
			RefreshID: id, RetryIn: retry, StartedAt: time.Now(),
			Plan:  flowstate.PlanRecord{Technique: flowstate.TechniqueNoOp},
			Error: pgdiag.New("40001", "not now").WithDetail("why").WithHint("how"),
		}))
	}
	fail(time.Hour)
	if got := s.value("select state, error, attempt, started_at, technique from rwproxy.refreshes"); got != "QUEUED|not now|1|null|null" {
		t.Errorf("it is %s", got)
	}
	// Others may have to wait for it: five minutes are the most.
	if q := s.readQueue(); q.NextDue.Sub(q.Now) < 4*time.Minute || q.NextDue.Sub(q.Now) > 5*time.Minute || q.Elsewhere {
		t.Errorf("%+v", q)
	}
	fail(0)
	if got := s.value("select state, error, error_detail, error_hint, attempt from rwproxy.refreshes"); got != "FAILED|not now|why|how|1" {
		t.Errorf("it is %s", got)
	}
}

func TestWhatCannotBeginFails(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	id := s.enqueue(oid)
	ok(t, flowstate.Fail(t.Context(), s, flowstate.Failure{RefreshID: id, Error: pgdiag.New("42501", "refused")}))
	if got := s.state(id); got != "FAILED|refused" {
		t.Errorf("it is %s", got)
	}
}

// Else a job would be given up the sooner the more instances there are.
func TestAnAttemptThatSeveralInstancesCouldNotBeginCountsOnce(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	id := s.enqueue(oid)
	failure := flowstate.Failure{RefreshID: id, Queued: true, RetryIn: time.Millisecond, Error: pgdiag.New("53300", "too many connections")}
	for range 3 {
		ok(t, flowstate.Fail(t.Context(), s, failure))
	}
	if got := s.value("select state, attempt from rwproxy.refreshes"); got != "QUEUED|1" {
		t.Errorf("it is %s", got)
	}
	failure.RetryIn = 0 // an instance that was stopped for a while
	ok(t, flowstate.Fail(t.Context(), s, failure))
	if got := s.value("select state, attempt from rwproxy.refreshes"); got != "QUEUED|1" {
		t.Errorf("after a failure of the first attempt the second is %s", got)
	}
	failure.Attempt = 1
	ok(t, flowstate.Fail(t.Context(), s, failure))
	if got := s.state(id); got != "FAILED|too many connections" {
		t.Errorf("it is %s", got)
	}
}

func TestARoleCannotFillTheQueue(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	first := s.enqueue(oid)
	s.must(`insert into rwproxy.refresh
	        select (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid()))).*
	          from rwproxy.refresh r, generate_series(2, 10000)`)
	_, err := flowstate.Enqueue(t.Context(), s, flowstate.Request{Target: oid, Kind: flowstate.KindWindow})
	refused(t, err, "53400", `too many refreshes of role "postgres" are queued`)
	canceled, err := flowstate.Cancel(t.Context(), s, first)
	ok(t, err)
	if !canceled {
		t.Error("nothing was canceled")
	}
}

// One look does not take so long that it is given up.
func TestVeryManyRefreshesOfADroppedTableAreEndedInSteps(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	id := s.enqueue(s.dailyTable())
	s.must("insert into rwproxy.refresh select (jsonb_populate_record(r, jsonb_build_object('id', gen_random_uuid()))).* " +
		"from rwproxy.refresh r, generate_series(1, 2500) where r.id = '" + id + "'")
	s.must("drop table public.daily")
	waiting := s.value("select count(*) from rwproxy.refresh where state = 'QUEUED'")
	looks := 0
	for s.readQueue().Elsewhere {
		if looks++; looks > 10 {
			t.Fatal("the queue does not become empty")
		}
	}
	if got := s.value("select count(*) from rwproxy.refresh where state = 'CANCELED'"); got != "2501" || looks == 0 {
		t.Errorf("of %s refreshes %s are ended after %d looks", waiting, got, looks)
	}
}

func TestWhatCanNeverRunIsEnded(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	oid := s.dailyTable()
	role := "gone_" + fmt.Sprint(roles.Add(1))
	s.must("create role "+role, "grant select, insert, delete on daily to "+role, "set role "+role)
	ofRole := s.enqueue(oid)
	s.must("reset role", "drop owned by "+role, "drop role "+role)
	dropped := s.enqueue(oid)
	sameIDs(t, s.ready(), dropped)
	if got := s.state(ofRole); !strings.HasPrefix(got, "FAILED|role ") {
		t.Errorf("the refresh of a dropped role is %s", got)
	}
	s.must("drop table daily cascade")
	sameIDs(t, s.ready())
	if got := s.state(dropped); got != "CANCELED|table public.daily was dropped" {
		t.Errorf("the refresh of a dropped table is %s", got)
	}
}
