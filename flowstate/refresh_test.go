package flowstate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

const refreshFacts = `
	select kind, technique, reason, window_predicate, applied_predicate, rows_deleted, rows_inserted, state, error
	  from rwproxy.refreshes where refresh_id = $1::uuid`

func TestACompletedRefreshIsInHistoryAndWithItsFlow(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	if got := s.lookup("daily").Table.LastRefresh; got != nil {
		t.Errorf("before the first refresh the last one is %+v", got)
	}
	id := s.refresh(oid, flowstate.KindWindow, "day >= '2026-01-01'::date")

	const want = "window|FULL_RECOMPUTE|SOURCE_NOT_TRACKED|day >= '2026-01-01'::date|day >= '2026-01-01'::date|2|3|COMPLETED|null"
	if got := s.value(refreshFacts, id); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.value("select requested_at <= started_at and started_at <= ended_at from rwproxy.refreshes"); got != "t" {
		t.Error("the times are not in order")
	}
	got := s.value("select flow_name, target_schema, target_table, cause, requested_by, progress from rwproxy.refreshes")
	if got != "daily|public|daily|statement|postgres|null" {
		t.Errorf("got %s", got)
	}
	got = s.value("select last_refresh_id, last_refresh_at is not null, last_technique, last_reason from rwproxy.flows")
	if got != id+"|t|FULL_RECOMPUTE|SOURCE_NOT_TRACKED" {
		t.Errorf("the flow shows %s", got)
	}
	wantLast := &flowstate.LastRefresh{Window: "day >= '2026-01-01'::date", DefinitionVersion: 1}
	if diff := cmp.Diff(wantLast, s.lookup("daily").Table.LastRefresh); diff != "" {
		t.Error(diff)
	}
}

func TestAnOverrideLeavesTheLastWindow(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.refresh(oid, flowstate.KindOverride, "first")
	if got := s.lookup("daily").Table.LastRefresh; got != nil {
		t.Errorf("an override became the window to compare with: %+v", got)
	}
	s.refresh(oid, flowstate.KindWindow, "second")
	id := s.refresh(oid, flowstate.KindOverride, "third")
	if got := s.lookup("daily").Table.LastRefresh.Window; got != "second" {
		t.Errorf("the last window is %s, want the one before the override", got)
	}
	if got := s.value("select last_refresh_id from rwproxy.flows"); got != id {
		t.Error("the last refresh is not the override")
	}
	s.refresh(oid, flowstate.KindFull, "fourth")
	if got := s.lookup("daily").Table.LastRefresh.Window; got != "fourth" {
		t.Errorf("the last window is %s, want that of the full refresh", got)
	}
}

func TestARefreshNeedsTheLock(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, other := connect(t, url, ""), connect(t, url, "")
	oid := s.dailyTable()
	other.lock(oid)
	r := flowstate.Refresh{Target: oid, Kind: flowstate.KindWindow, Cause: flowstate.CauseStatement}
	_, err := flowstate.Start(t.Context(), s, r)
	refused(t, err, "55000", "does not hold the refresh lock")

	other.unlock(oid)
	class, object := flowstate.LockKeys(oid)
	s.must("begin")
	if _, err := s.Query(t.Context(), "select pg_advisory_xact_lock($1::int, $2::int)", class, object); err != nil {
		t.Fatal(err)
	}
	_, err = flowstate.Start(t.Context(), s, r)
	ok(t, err)
}

func TestStepsOutOfOrderAreRefused(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.lock(oid)
	id := s.start(oid, flowstate.KindWindow)
	refused(t, flowstate.Finish(t.Context(), s, id, flowstate.Outcome{}), "55000", "has no plan")
	s.plan(id, "true")
	ok(t, flowstate.Finish(t.Context(), s, id, flowstate.Outcome{}))
	refused(t, flowstate.Finish(t.Context(), s, id, flowstate.Outcome{}), "55000", "is COMPLETED")
	refused(t, flowstate.Plan(t.Context(), s, id, flowstate.PlanRecord{}), "55000", "is COMPLETED")
}

func TestARetriedTransactionPlansAgain(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.lock(oid)
	id := s.start(oid, flowstate.KindWindow)
	s.must("begin isolation level repeatable read")
	s.plan(id, "first")
	s.must("rollback", "begin isolation level repeatable read")
	s.plan(id, "second")
	ok(t, flowstate.Finish(t.Context(), s, id, flowstate.Outcome{RowsInserted: 1}))
	s.must("commit")
	if got := s.rows("select state, window_predicate from rwproxy.refreshes"); len(got) != 1 || got[0] != "COMPLETED|second" {
		t.Errorf("history: %v", got)
	}
	if got := s.value("select count(*) from rwproxy.event_log where event_type = 'planning_information'"); got != "1" {
		t.Errorf("%s plans in the log, want that of the transaction that committed", got)
	}
}

func TestARefreshWhoseSessionEndedIsShownAsFailed(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, dying := connect(t, url, ""), connect(t, url, "")
	oid := s.dailyTable()
	dying.lock(oid)
	id := dying.start(oid, flowstate.KindWindow)
	if got := s.value("select state from rwproxy.refreshes"); got != "RUNNING" {
		t.Fatalf("state is %s while it runs", got)
	}
	ok(t, dying.conn.Close(context.Background()))
	s.lock(oid) // free once the session is gone

	if got := s.value("select state, error from rwproxy.refreshes"); got != "FAILED|the session running it ended" {
		t.Errorf("while another session holds the lock it is shown as %s", got)
	}
	s.unlock(oid)
	if got := s.value("select state, error from rwproxy.refreshes"); got != "FAILED|the session running it ended" {
		t.Errorf("got %s", got)
	}
	next := s.refresh(oid, flowstate.KindWindow, "true")
	if got := s.value("select state, error, ended_at is not null from rwproxy.refresh where id = $1::uuid", id); got != "FAILED|the session running it ended|t" {
		t.Errorf("the next refresh left it as %s", got)
	}
	if got := s.value("select state from rwproxy.refreshes where refresh_id = $1::uuid", next); got != "COMPLETED" {
		t.Errorf("the next refresh is %s", got)
	}
}

func TestAFailureIsRecorded(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.lock(oid)
	failure := flowstate.Failure{
		OID: oid, Schema: "public", Name: "daily", FlowName: "daily", Kind: flowstate.KindWindow,
		Cause: flowstate.CauseStatement, RequestedBy: "postgres", StartedAt: time.Now(),
		Error: pgdiag.New("22012", "division by zero"),
	}
	const failed = "window|null|null|null|null|null|null|FAILED|division by zero"

	t.Run("of a refresh that was recorded", func(t *testing.T) {
		f := failure
		f.RefreshID = s.start(oid, flowstate.KindWindow)
		ok(t, flowstate.Fail(t.Context(), s, f))
		if got := s.value(refreshFacts, f.RefreshID); got != failed {
			t.Errorf("got %s", got)
		}
	})
	t.Run("of one whose row was rolled back", func(t *testing.T) {
		f := failure
		s.must("begin")
		f.RefreshID = s.start(oid, flowstate.KindWindow)
		s.must("rollback")
		ok(t, flowstate.Fail(t.Context(), s, f))
		if got := s.value(refreshFacts, f.RefreshID); got != failed {
			t.Errorf("got %s", got)
		}
	})
	t.Run("of one whose table was rolled back", func(t *testing.T) {
		f := failure
		f.RefreshID, f.OID, f.Name, f.FlowName = "", 1, "never", "never_flow"
		ok(t, flowstate.Fail(t.Context(), s, f))
		got := s.value("select flow_name, target_schema, target_table, state from rwproxy.refreshes where target_table = 'never'")
		if got != "never_flow|public|never|FAILED" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("as canceled", func(t *testing.T) {
		f := failure
		f.RefreshID = s.start(oid, flowstate.KindWindow)
		f.Error = pgdiag.New("57014", "canceling statement due to user request")
		if got := f.State(); got != flowstate.StateCanceled {
			t.Errorf("state is %s", got)
		}
		ok(t, flowstate.Fail(t.Context(), s, f))
		if got := s.value("select state from rwproxy.refreshes where refresh_id = $1::uuid", f.RefreshID); got != "CANCELED" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("but not of one that is complete", func(t *testing.T) {
		f := failure
		f.RefreshID = s.start(oid, flowstate.KindWindow)
		s.plan(f.RefreshID, "true")
		ok(t, flowstate.Finish(t.Context(), s, f.RefreshID, flowstate.Outcome{}))
		ok(t, flowstate.Fail(t.Context(), s, f))
		if got := s.value("select state from rwproxy.refreshes where refresh_id = $1::uuid", f.RefreshID); got != "COMPLETED" {
			t.Errorf("got %s", got)
		}
	})
}

func TestARefreshThatRunsElsewhereCannotBeFailed(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, other := connect(t, url, ""), connect(t, url, "")
	oid := s.dailyTable()
	s.lock(oid)
	id := s.start(oid, flowstate.KindWindow)
	err := flowstate.Fail(t.Context(), other, flowstate.Failure{RefreshID: id, OID: oid, Error: pgdiag.New("XX000", "x")})
	refused(t, err, "55006", "runs in another session")
}

func TestEventsTellEachStepInOrder(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	full := s.refresh(oid, flowstate.KindFull, "true")
	s.lock(oid)
	failed := s.start(oid, flowstate.KindWindow)
	ok(t, flowstate.Fail(t.Context(), s, flowstate.Failure{RefreshID: failed, OID: oid, Error: pgdiag.New("22012", "division by zero")}))

	want := strings.NewReplacer("$full", full, "$failed", failed).Replace(`
flow_definition|INFO|Flow 'daily' defined as REPLACE_WHERE.
create_update|INFO|Update $full started by postgres.
update_progress|INFO|Update $full is CREATED.
flow_progress|INFO|Flow 'daily' is QUEUED.
update_progress|INFO|Update $full is INITIALIZING.
flow_progress|INFO|Flow 'daily' is STARTING.
planning_information|INFO|Flow 'daily' has been planned to be executed as COMPLETE_REPLACE_WHERE.
update_progress|INFO|Update $full is RESETTING.
update_progress|INFO|Update $full is RUNNING.
flow_progress|INFO|Flow 'daily' is RUNNING.
flow_progress|INFO|Flow 'daily' has COMPLETED.
update_progress|INFO|Update $full is COMPLETED.
create_update|INFO|Update $failed started by postgres.
update_progress|INFO|Update $failed is CREATED.
flow_progress|INFO|Flow 'daily' is QUEUED.
update_progress|INFO|Update $failed is INITIALIZING.
flow_progress|INFO|Flow 'daily' is STARTING.
flow_progress|ERROR|Flow 'daily' has FAILED.
update_progress|ERROR|Update $failed is FAILED.`)
	got := s.rows("select event_type, level, message from rwproxy.event_log order by sequence")
	if diff := cmp.Diff(strings.Split(strings.TrimPrefix(want, "\n"), "\n"), got); diff != "" {
		t.Error(diff)
	}
	got = s.rows(`
		select distinct maturity_level, array(select jsonb_object_keys(details)) = array[event_type],
		       origin ->> 'flow_name', origin ->> 'dataset_name'
		  from rwproxy.event_log`)
	if diff := cmp.Diff([]string{"STABLE|t|daily|public.daily"}, got); diff != "" {
		t.Error(diff)
	}
	if got := s.value("select count(*) from rwproxy.event_log where origin ->> 'update_id' = $1", full); got != "11" {
		t.Errorf("%s events of the full refresh, want 11", got)
	}
	var times []time.Time
	for _, at := range s.rows("select to_json(timestamp) #>> '{}' from rwproxy.event_log order by sequence") {
		parsed, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		if len(times) > 0 && parsed.Before(times[len(times)-1]) {
			t.Errorf("event at %s comes after one at %s", parsed, times[len(times)-1])
		}
		times = append(times, parsed)
	}
}

func TestTheDetailsOfEventsHaveTheirShapes(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.must("create materialized view m as select 1 as day")
	flow := s.flow("daily")
	flow.View = s.newView("select o.day, sum(amount)::bigint as amount from orders o join m on true group by o.day")
	ok(t, flowstate.Replace(t.Context(), s, oid, flowstate.StreamingTable{
		Target: rewrite.Name{Schema: "public", Table: "daily"}, Settings: settings, Flow: flow,
	}))
	s.lock(oid)
	id := s.start(oid, flowstate.KindWindow)
	ok(t, flowstate.Plan(t.Context(), s, id, flowstate.PlanRecord{
		Technique: flowstate.TechniqueFullRecompute, Reason: "SOURCE_NOT_TRACKED", Window: "true", Applied: "true",
		Issues: []flowstate.Issue{
			{Type: "SOURCE_NOT_TRACKED", Table: "public.m"},
			{Type: "QUERY_NOT_DETERMINISTIC", Function: "now()"},
		},
	}))
	ok(t, flowstate.Finish(t.Context(), s, id, flowstate.Outcome{RowsDeleted: 5, RowsInserted: 7}))
	failed := s.start(oid, flowstate.KindWindow)
	ok(t, flowstate.Fail(t.Context(), s, flowstate.Failure{RefreshID: failed, OID: oid, Error: pgdiag.New("22012", "division by zero")}))

	for sql, want := range map[string]string{
		`select details -> 'flow_definition' from rwproxy.event_log where event_type = 'flow_definition' order by sequence desc limit 1`: `{
			"input_datasets": ["public.m", "public.orders"], "output_dataset": "public.daily", "flow_type": "REPLACE_WHERE",
			"schema": [{"name": "day", "data_type": "date"}, {"name": "amount", "data_type": "bigint"}],
			"comment": null, "language": "SQL", "once": false}`,
		`select details -> 'create_update' from rwproxy.event_log where event_type = 'create_update' limit 1`: `{
			"run_as": "postgres", "cause": "statement"}`,
		`select details -> 'planning_information' from rwproxy.event_log where event_type = 'planning_information'`: `{
			"technique_information": [
				{"maintenance_type": "MAINTENANCE_TYPE_COMPLETE_REPLACE_WHERE", "is_chosen": true, "is_applicable": true, "cost": null,
				 "incrementalization_issues": []},
				{"maintenance_type": "MAINTENANCE_TYPE_REPLACE_WHERE_NARROWED", "is_chosen": false, "is_applicable": false, "cost": null,
				 "incrementalization_issues": [
					{"issue_type": "SOURCE_NOT_TRACKED", "prevent_incrementalization": true, "table_information": {"table_name": "public.m"}},
					{"issue_type": "QUERY_NOT_DETERMINISTIC", "prevent_incrementalization": true, "function_name": "now()"}]}],
			"source_table_information": [{"table_name": "public.m"}, {"table_name": "public.orders"}],
			"target_table_information": {"table_name": "public.daily"}}`,
		`select (details -> 'flow_progress') #- '{metrics,executor_time_ms}' from rwproxy.event_log where message like '%has COMPLETED.'`: `{
			"status": "COMPLETED", "metrics": {"num_output_rows": 7, "num_deleted_rows": 5}}`,
		`select to_jsonb((details #> '{flow_progress,metrics,executor_time_ms}')::numeric between 0 and 60000) from rwproxy.event_log where message like '%has COMPLETED.'`: `true`,
		`select error from rwproxy.event_log where message like '%has FAILED.'`: `{
			"fatal": true, "exceptions": [{"class_name": "22012", "message": "division by zero"}]}`,
	} {
		var got, expected any
		if err := json.Unmarshal([]byte(s.value(sql)), &got); err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if err := json.Unmarshal([]byte(want), &expected); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%s\n%s", sql, diff)
		}
	}
}

func TestTheViewsHaveTheirColumns(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	for view, want := range map[string]string{
		"flows": "flow_name text, target_schema text, target_table text, predicate text, query text, properties jsonb, " +
			"schedule text, owner text, created_at timestamp with time zone, changed_at timestamp with time zone, " +
			"last_refresh_id uuid, last_refresh_at timestamp with time zone, last_technique text, last_reason text, " +
			"next_run_at timestamp with time zone, tracked_sources text[], untracked_sources text[]",
		"refreshes": "refresh_id uuid, flow_name text, target_schema text, target_table text, cause text, kind text, " +
			"technique text, reason text, window_predicate text, applied_predicate text, rows_deleted bigint, " +
			"rows_inserted bigint, state text, progress text, requested_by text, requested_at timestamp with time zone, " +
			"started_at timestamp with time zone, ended_at timestamp with time zone, error text, error_detail text, " +
			"error_hint text, update_id uuid, attempt integer, due_at timestamp with time zone",
		"updates": "update_id uuid, cause text, state text, full_refresh boolean, refresh_selection text[], " +
			"full_refresh_selection text[], validate_only boolean, requested_by text, requested_at timestamp with time zone, " +
			"started_at timestamp with time zone, ended_at timestamp with time zone, error text, refresh_ids uuid[]",
		"event_log": "id uuid, sequence bigint, origin jsonb, timestamp timestamp with time zone, message text, level text, " +
			"maturity_level text, error jsonb, details jsonb, event_type text",
	} {
		got := s.value(`
			select string_agg(attname || ' ' || format_type(atttypid, atttypmod), ', ' order by attnum)
			  from pg_attribute where attrelid = ('rwproxy.' || $1)::regclass`, view)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rwproxy.%s: %s", view, diff)
		}
	}
	s.dailyTable()
	if got := s.value("select tracked_sources, untracked_sources, owner, properties from rwproxy.flows"); got != `{}|{public.orders}|postgres|{"quality": "gold"}` {
		t.Errorf("the flow shows %s", got)
	}
}
