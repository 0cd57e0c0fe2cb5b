package flowstate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// chain creates streaming tables that each read the one before, the first of
// them orders, and returns their OIDs.
func (s *session) chain(names ...string) []uint32 {
	s.t.Helper()
	oids := []uint32{s.dailyTable()}
	read := "daily"
	for _, name := range names {
		s.must("create table " + name + " (day date, amount bigint)")
		ok(s.t, flowstate.Create(s.t.Context(), s, flowstate.StreamingTable{
			Target:    rewrite.Name{Schema: "public", Table: name},
			Statement: "CREATE STREAMING TABLE …",
			Settings:  settings,
			Flow: &flowstate.Flow{
				Name: name, View: s.newView("select day, amount from " + read), Predicate: "true", Condition: "true", Query: "…",
			},
		}))
		oids = append(oids, s.lookup(name).OID)
		read = name
	}
	return oids
}

// startUpdate starts an update of tables that each come after the one before.
func (s *session) startUpdate(oids ...uint32) string {
	s.t.Helper()
	u := flowstate.Update{Cause: "API_CALL", Parameters: flowstate.UpdateParameters{RefreshSelection: []string{"daily"}}}
	for i, oid := range oids {
		r := flowstate.UpdateRefresh{Request: flowstate.Request{Target: oid, Kind: flowstate.KindWindow}}
		if i > 0 {
			r.After = []int{i - 1}
		}
		u.Refreshes = append(u.Refreshes, r)
	}
	id, err := flowstate.StartUpdate(s.t.Context(), s, u)
	ok(s.t, err)
	return id
}

// updateState is the state of the only update of several refreshes, and of its
// refreshes.
func (s *session) updateState(id string) string {
	s.t.Helper()
	return s.value(`
		select u.state || ':' || string_agg(r.state, ' ' order by r.requested_at) || coalesce(' ' || u.error, '')
		  from rwproxy.updates u join rwproxy.refreshes r on r.update_id = u.update_id
		 where u.update_id = $1 group by u.state, u.error`, id)
}

func TestAnUpdateRunsItsRefreshesInOrder(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oids := s.chain("weekly", "yearly")
	id := s.startUpdate(oids...)
	if got := s.updateState(id); got != "QUEUED:QUEUED QUEUED QUEUED" {
		t.Errorf("at first it is %s", got)
	}
	_, err := flowstate.StartUpdate(t.Context(), s, flowstate.Update{
		Cause: "API_CALL", Refreshes: []flowstate.UpdateRefresh{{Request: flowstate.Request{Target: oids[0], Kind: flowstate.KindWindow}}},
	})
	refused(t, err, "55006", "another update of the API is active in this database")
	for i, want := range []string{"RUNNING:COMPLETED QUEUED QUEUED", "RUNNING:COMPLETED COMPLETED QUEUED", "COMPLETED:COMPLETED COMPLETED COMPLETED"} {
		jobs := s.readQueue().Ready
		if len(jobs) != 1 || jobs[0].Target != oids[i] || jobs[0].UpdateID != id || jobs[0].Cause != flowstate.CauseAPI {
			t.Fatalf("ready are %+v", jobs)
		}
		s.runQueued(oids[i], jobs[0].ID)
		if got := s.updateState(id); got != want {
			t.Errorf("after refresh %d it is %s, want %s", i, got, want)
		}
	}
	s.readQueue()
	events := s.rows(`select details -> 'update_progress' ->> 'state' from rwproxy.event_log
		where origin ->> 'update_id' = $1 and event_type = 'update_progress' order by sequence`, id)
	if got := strings.Join(events, " "); got != "QUEUED INITIALIZING RUNNING COMPLETED" {
		t.Errorf("its events: %s", got)
	}
	if got := s.value("select count(*) from rwproxy.event_log where event_type = 'create_update' and message like '%' || $1 || '%'", id); got != "1" {
		t.Errorf("it was created %s times", got)
	}
	got := s.value("select cause, full_refresh, refresh_selection, full_refresh_selection, validate_only, requested_by, " +
		"started_at < ended_at, cardinality(refresh_ids) from rwproxy.updates")
	if got != "API_CALL|f|{daily}|{}|f|postgres|t|3" {
		t.Errorf("it shows %s", got)
	}
	s.startUpdate(oids[0]) // the one before is not active any more
}

func TestWhatComesAfterAFailureIsSkipped(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oids := s.chain("weekly", "yearly")
	id := s.startUpdate(oids...)
	first := s.ready()[0]
	ok(t, flowstate.Fail(t.Context(), s, flowstate.Failure{RefreshID: first, Error: pgdiag.New("22012", "division by zero")}))
	sameIDs(t, s.ready())
	if got := s.updateState(id); got != "FAILED:FAILED CANCELED CANCELED division by zero" {
		t.Errorf("it is %s", got)
	}
	got := s.rows("select error from rwproxy.refreshes where state = 'CANCELED' order by requested_at")
	if want := "refresh " + first + " of table public.daily, which comes first, is FAILED"; got[0] != want {
		t.Errorf("got %s, want %s", got[0], want)
	}
	if got := s.value("select count(*) from rwproxy.event_log where message = 'Flow ''weekly'' SKIPPED due to upstream failure(s).'"); got != "1" {
		t.Error("the event log does not say that it was skipped")
	}
}

func TestAnUpdateThatOnlyValidates(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	u := flowstate.Update{
		Cause: "API_CALL", Parameters: flowstate.UpdateParameters{ValidateOnly: true},
		Refreshes: []flowstate.UpdateRefresh{{Request: flowstate.Request{Target: oid}}},
	}
	_, err := flowstate.StartUpdate(t.Context(), s, u)
	ok(t, err)
	u.Error = pgdiag.New("42703", "no such column")
	_, err = flowstate.StartUpdate(t.Context(), s, u)
	ok(t, err)
	got := s.rows("select state, error, validate_only, refresh_ids from rwproxy.updates order by requested_at")
	if diff := cmp.Diff([]string{"COMPLETED|null|t|{}", "FAILED|no such column|t|{}"}, got); diff != "" {
		t.Error(diff)
	}
}

// Whoever asks for a step without the proxy must not spoil what others read.
func TestTheParametersOfAnUpdateAreChecked(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	for _, parameters := range []string{`{"validate_only": "x"}`, `{"full_refresh": {}}`, `{"refresh_selection": 1}`, `{"full_refresh_selection": {}}`} {
		_, err := s.Query(t.Context(), `insert into rwproxy.request (step, arguments) values ('start_update', jsonb_build_object(
			'cause', 'x', 'parameters', $1::jsonb, 'refreshes', jsonb_build_array(jsonb_build_object('target', $2::bigint, 'kind', 'window'))))`,
			parameters, int64(oid))
		if pgdiag.Code(err) == "" {
			t.Errorf("%s was accepted", parameters)
		}
	}
	s.must(`insert into rwproxy.request (step, arguments) values ('start_update', jsonb_build_object('cause', 'x', 'refreshes',
		jsonb_build_array(jsonb_build_object('target', 'daily'::regclass::oid::bigint, 'kind', 'window', 'after', jsonb_build_array(7)))))`)
	if got := s.value("select state, full_refresh, validate_only, refresh_selection from rwproxy.updates"); got != "QUEUED|f|f|{}" {
		t.Errorf("it is %s", got)
	}
	if got := s.ready(); len(got) != 1 {
		t.Errorf("ready are %v", got)
	}
}

func TestEveryRefreshIsAnUpdate(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	id := s.refresh(oid, flowstate.KindFull, "true")
	got := s.value("select update_id, cause, state, full_refresh, validate_only, ended_at is not null, refresh_ids::text[] = array[$1] from rwproxy.updates", id)
	if got != id+"|statement|COMPLETED|t|f|t|t" {
		t.Errorf("it is %s", got)
	}
}

func TestUpdatesAreShownToThoseWhoMayReadTheirTables(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	d.owner.startUpdate(d.oid)
	if got := d.stranger.value("select count(*) from rwproxy.updates"); got != "0" {
		t.Errorf("a stranger sees %s updates", got)
	}
	if got := d.stranger.value("select count(id) from rwproxy.database"); got != "1" {
		t.Error("the id of the database is not readable")
	}
	_, err := flowstate.StartUpdate(t.Context(), d.stranger, flowstate.Update{
		Cause: "API_CALL", Refreshes: []flowstate.UpdateRefresh{{Request: flowstate.Request{Target: d.oid, Kind: flowstate.KindWindow}}},
	})
	if code := pgdiag.Code(err); code != "42501" && code != "55006" {
		t.Errorf("a stranger's update: %v", err)
	}
	_, err = flowstate.Enqueue(t.Context(), d.stranger, flowstate.Request{Target: d.oid, Kind: flowstate.KindWindow})
	refused(t, err, "42501", "permission denied for table daily")
	_, err = flowstate.ReadQueue(t.Context(), d.stranger, 1)
	refused(t, err, "42501", "permission denied for schema rwproxy")
	_, err = flowstate.RequeueLost(t.Context(), d.stranger)
	refused(t, err, "42501", "permission denied for schema rwproxy")
}

func TestARefreshInTheQueueIsCanceled(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	d.super.must("grant select, insert, delete on daily to " + d.strangerName)
	cancel := func(s *session, id string) bool {
		canceled, err := flowstate.Cancel(t.Context(), s, id)
		ok(t, err)
		return canceled
	}
	for _, who := range []*session{d.owner, d.stranger, d.super} {
		id := d.stranger.enqueue(d.oid)
		if !cancel(who, id) || cancel(who, id) {
			t.Errorf("it was not canceled, or twice")
		}
		if got, by := d.super.state(id), who.value("select current_user"); got != "CANCELED|canceled by "+by {
			t.Errorf("it is %s", got)
		}
	}
	id := d.owner.enqueue(d.oid)
	_, err := flowstate.Cancel(t.Context(), d.stranger, id)
	refused(t, err, "42501", "permission denied for refresh "+id)
	if cancel(d.super, "00000000-0000-0000-0000-000000000000") {
		t.Error("what does not exist was canceled")
	}
	sameIDs(t, d.super.ready(), id)
}

func TestAWholeUpdateIsCanceled(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	id := s.startUpdate(s.chain("weekly")...)
	if canceled, err := flowstate.Cancel(t.Context(), s, id); err != nil || !canceled {
		t.Fatalf("canceled: %t, %v", canceled, err)
	}
	if got := s.updateState(id); got != "CANCELED:CANCELED CANCELED canceled by postgres" {
		t.Errorf("it is %s", got)
	}
}

func TestARunningRefreshIsCanceled(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, runner := connect(t, url, ""), connect(t, url, "")
	oid := s.dailyTable()
	id := s.enqueue(oid)
	runner.lock(oid)
	runner.startQueued(oid, id)
	failed := make(chan error, 1)
	go func() { // as a job does
		_, err := runner.Exec(t.Context(), "select pg_sleep(60)")
		failed <- err
		failed <- flowstate.Fail(t.Context(), runner, flowstate.Failure{
			RefreshID: id, RetryIn: time.Hour, StartedAt: time.Now(), Error: pgdiag.New("57014", "canceling statement"),
		})
	}()
	s.until("select from pg_stat_activity where query = 'select pg_sleep(60)' and datname = current_database()")
	if canceled, err := flowstate.Cancel(t.Context(), s, id); err != nil || !canceled {
		t.Fatalf("canceled: %t, %v", canceled, err)
	}
	if err := <-failed; pgdiag.Code(err) != "57014" {
		t.Fatalf("its statement ended with %v", err)
	}
	ok(t, <-failed)
	if got := s.state(id); got != "CANCELED|canceled by postgres" {
		t.Errorf("it is %s", got)
	}
	if got := s.value("select count(*) from rwproxy.cancellation"); got != "0" {
		t.Errorf("%s cancellations are left", got)
	}
}

// A refresh whose interrupt is lost between two statements ends at the next one
// of ours, and one that loses its session does not begin again.
func TestACancellationIsRemembered(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, runner := connect(t, url, ""), connect(t, url, "")
	oid := s.dailyTable()
	first, second := s.enqueue(oid), s.enqueue(oid)
	runner.lock(oid)
	runner.startQueued(oid, first)
	if canceled, err := flowstate.Cancel(t.Context(), s, first); err != nil || !canceled {
		t.Fatalf("canceled: %t, %v", canceled, err)
	}
	err := flowstate.Plan(t.Context(), runner, first, flowstate.PlanRecord{Technique: flowstate.TechniqueNoOp})
	refused(t, err, "57014", "was canceled")
	ok(t, flowstate.Fail(t.Context(), runner, flowstate.Failure{RefreshID: first, RetryIn: time.Hour, StartedAt: time.Now(), Error: pgdiag.New("57014", "canceled")}))
	if got := s.state(first); got != "CANCELED|canceled by postgres" {
		t.Errorf("it is %s", got)
	}

	runner.startQueued(oid, second)
	_, err = flowstate.Cancel(t.Context(), s, second)
	ok(t, err)
	runner.end()
	_, err = flowstate.RequeueLost(t.Context(), s)
	ok(t, err)
	if got := s.state(second); got != "CANCELED|canceled by postgres" {
		t.Errorf("the lost one is %s", got)
	}
}

// until waits for a query to return a row.
func (s *session) until(sql string) {
	s.t.Helper()
	s.untilNone("select where not exists (" + sql + ")")
}

func TestFlowsOfOneWaveRunInTheOrderTheyRead(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oids := s.chain("weekly", "yearly")
	enqueue := func(tables ...string) {
		for _, table := range tables {
			s.must(`select rwproxy.enqueue(t.id, 'trigger', 'postgres', 'window', '{}')
			          from rwproxy.streaming_table t where t.target = '` + table + `'::regclass`)
		}
	}
	s.must("begin")
	enqueue("yearly", "weekly", "daily") // one transaction, whatever the order
	s.must("commit")
	for i := range oids {
		jobs := s.readQueue().Ready
		if len(jobs) != 1 || jobs[0].Target != oids[i] {
			t.Fatalf("ready are %+v, want table %d", jobs, i)
		}
		s.runQueued(oids[i], jobs[0].ID)
	}
	// A later one of a source waits for nobody, and nobody waits for it.
	enqueue("yearly", "daily")
	if jobs := s.readQueue().Ready; len(jobs) != 2 {
		t.Errorf("ready are %+v", jobs)
	}
}

func TestFlowsThatReadEachOtherDoNotWait(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.chain("weekly")
	s.must("create or replace view " + s.value("select view::regclass from rwproxy.streaming_table where flow_name = 'daily'") +
		" as select day, amount from weekly")
	s.must("select rwproxy.enqueue(t.id, 'schedule', 'postgres', 'window', '{}') from rwproxy.streaming_table t")
	if jobs := s.readQueue().Ready; len(jobs) != 2 {
		t.Errorf("ready are %+v", jobs)
	}
}

func TestACopyOfADatabaseHasItsOwnID(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	id := s.value("select id from rwproxy.database")
	copied := connect(t, copyDatabase(t, s, url), "")
	ok(t, flowstate.Install(t.Context(), copied.conn))
	if got := copied.value("select id from rwproxy.database"); got == id {
		t.Error("the copy has the id of the original")
	}
	ok(t, flowstate.Install(t.Context(), s.conn))
	if got := s.value("select id from rwproxy.database"); got != id {
		t.Error("the original has another id")
	}
}
