package flowstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/rewrite"
)

func TestLookupReturnsWhatWasStored(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.must(`create schema "Sales"`, `create table "Sales"."Daily 1" (day date, amount bigint)`,
		"create table orders (day date, amount int)")
	comment, flowComment := `it's "daily"`, ""
	flow := s.flow("Daily flow")
	flow.Comment = &flowComment
	flow.PredicateVolatile = true
	stored := flowstate.StreamingTable{
		Target:      rewrite.Name{Schema: "Sales", Table: "Daily 1"},
		Statement:   "CREATE STREAMING TABLE …\n'{\\' \U0001F41F",
		Declared:    true,
		Properties:  map[string]string{`a"b`: `c\d`, "e": "", "pipelines.reset.allowed": "FALSE"},
		Comment:     &comment,
		PartitionBy: []string{`x"y`, "z,{}", ""},
		Schedule:    "EVERY 1 DAYS",
		Settings:    settings,
		Flow:        flow,
	}
	ok(t, flowstate.Create(t.Context(), s, stored))

	got, err := flowstate.Lookup(t.Context(), s, rewrite.Name{Schema: "Sales", Table: "Daily 1"})
	ok(t, err)
	if got.Schema != "Sales" || got.Name != "Daily 1" || got.Kind != "r" || got.Owner != "postgres" || !got.OwnedByCaller {
		t.Errorf("target: %+v", got)
	}
	stored.DefinitionVersion = 1
	flow.ViewOID, flow.ViewOwner = got.Table.Flow.ViewOID, "postgres"
	if flow.ViewOID == 0 {
		t.Error("the view's OID is missing")
	}
	if diff := cmp.Diff(&stored, got.Table); diff != "" {
		t.Errorf("stored and looked up differ:\n%s", diff)
	}
	if got.Table.ResetAllowed() {
		t.Error("pipelines.reset.allowed = FALSE is not heeded")
	}
}

func TestTextsAreInTheEncodingOfTheClient(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	s.must("create table orders (day date, amount int)", "create table daily (day date, amount bigint)",
		"set client_encoding = latin1")
	const latin1, utf8 = "caf\xe9", "caf\u00e9"
	flow := s.flow(latin1)
	flow.Query, flow.Statement = latin1, latin1 // a flow of its own statement keeps its own name
	ok(t, flowstate.Create(t.Context(), s, flowstate.StreamingTable{
		Target: dailyName, Statement: latin1, Properties: map[string]string{"k": latin1}, Settings: settings, Flow: flow,
	}))
	if got := s.lookup("daily").Table; got.Statement != latin1 || got.Flow.Name != latin1 || got.Flow.Query != latin1 {
		t.Errorf("the client itself gets %q, %q, %q", got.Statement, got.Flow.Name, got.Flow.Query)
	}
	if got := connect(t, url, "").value("select flow_name, query, properties ->> 'k' from rwproxy.flows"); got != utf8+"|"+utf8+"|"+utf8 {
		t.Errorf("a UTF-8 client sees %q", got)
	}
}

func TestLookupResolvesNamesAsTheSessionDoes(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.dailyTable()
	s.must("create schema other", "create view other.daily as select 1 as one", "set search_path = other, public")
	if got := s.lookup("daily"); got.Schema != "other" || got.Kind != "v" || got.Table != nil {
		t.Errorf("got %+v, want the view of the schema that comes first", got)
	}
	if got := s.lookup("missing"); got != nil {
		t.Errorf("got %+v for a name that does not exist", got)
	}
	if got := s.lookup("Daily"); got != nil {
		t.Errorf("got %+v: a folded name was expected to be folded already", got)
	}
}

func TestOneFlowNameBelongsToOneFlowOfASchema(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.must("create table beside (day date, amount bigint)",
		"create schema other", "create table other.daily (day date, amount bigint)")
	beside := flowstate.StreamingTable{Target: rewrite.Name{Schema: "public", Table: "beside"}, Settings: settings}
	beside.Flow = s.flow("daily")
	refused(t, flowstate.Create(t.Context(), s, beside), "42710", `flow "daily" already exists`)

	other := flowstate.StreamingTable{Target: rewrite.Name{Schema: "other", Table: "daily"}, Settings: settings}
	other.Flow = s.flow("daily")
	ok(t, flowstate.Create(t.Context(), s, other))
	refused(t, flowstate.Create(t.Context(), s, other), "42P07", "already exists")

	refused(t, flowstate.AddFlow(t.Context(), s, oid, *s.flow("second"), settings, "CREATE FLOW"),
		"42710", `already has a REPLACE WHERE flow "daily"`)
	s.must("create table plain ()")
	refused(t, flowstate.AddFlow(t.Context(), s, s.lookup("plain").OID, *s.flow("second"), settings, "CREATE FLOW"),
		"42809", "is not a streaming table")
}

func TestAFlowCanFollowItsTable(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.must("create table orders (day date, amount int)", "create table daily (day date, amount bigint)")
	ok(t, flowstate.Create(t.Context(), s, flowstate.StreamingTable{
		Target: rewrite.Name{Schema: "public", Table: "daily"}, Statement: "CREATE STREAMING TABLE daily",
	}))
	target := s.lookup("daily")
	if target.Table == nil || target.Table.Flow != nil {
		t.Fatalf("got %+v, want a streaming table without a flow", target.Table)
	}
	if got := s.rows("select flow_name from rwproxy.flows"); len(got) != 0 {
		t.Errorf("flows without a flow: %v", got)
	}
	s.lock(target.OID)
	_, err := flowstate.Start(t.Context(), s, flowstate.Refresh{Target: target.OID, Kind: flowstate.KindWindow, Cause: flowstate.CauseStatement})
	refused(t, err, "0A000", "has no flow")

	ok(t, flowstate.AddFlow(t.Context(), s, target.OID, *s.flow("fill"), settings, "CREATE FLOW fill …"))
	flow := s.lookup("daily").Table.Flow
	if flow.Name != "fill" || flow.Statement != "CREATE FLOW fill …" {
		t.Errorf("got %+v", flow)
	}
}

func TestTheDefinitionVersionMovesWhenARefreshWouldComputeSomethingElse(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	replace := func(change func(*flowstate.StreamingTable)) int {
		t.Helper()
		table := *s.lookup("daily").Table
		flow := *table.Flow
		table.Flow = &flow
		change(&table)
		ok(t, flowstate.Replace(t.Context(), s, oid, table))
		return s.lookup("daily").Table.DefinitionVersion
	}
	for _, step := range []struct {
		name   string
		change func(*flowstate.StreamingTable)
		want   int
	}{
		{"a comment", func(st *flowstate.StreamingTable) { c := "x"; st.Comment = &c }, 1},
		{"the same query in a new view", func(st *flowstate.StreamingTable) { st.Flow = s.flow("daily") }, 1},
		{"another spelling of the predicate", func(st *flowstate.StreamingTable) { st.Flow.Predicate = "day >= (current_date - 3)" }, 1},
		{"another condition", func(st *flowstate.StreamingTable) { st.Flow.Condition = "day >= current_date - 4" }, 2},
		{"another query", func(st *flowstate.StreamingTable) {
			st.Flow.View = s.newView("select day, max(amount) as amount from orders group by day")
		}, 3},
		{"other settings", func(st *flowstate.StreamingTable) { st.Settings = map[string]string{"TimeZone": "CET"} }, 4},
		{"no flow", func(st *flowstate.StreamingTable) { st.Flow = nil }, 5},
	} {
		if got := replace(step.change); got != step.want {
			t.Errorf("after %s the version is %d, want %d", step.name, got, step.want)
		}
	}
	if got := s.value("select count(*) from pg_class where relnamespace = 'rwproxy_flows'::regnamespace"); got != "0" {
		t.Errorf("%s views are left of flows that have another now", got)
	}
}

func TestDropForgetsTheTableAndDropsItsView(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	id := s.refresh(oid, flowstate.KindWindow, "true")

	s.must("begin")
	ok(t, flowstate.Drop(t.Context(), s, oid, false))
	s.must("rollback")
	if s.lookup("daily").Table == nil {
		t.Fatal("the rollback did not bring the flow back")
	}

	ok(t, flowstate.Drop(t.Context(), s, oid, false))
	s.must("drop table daily", "drop table orders")
	if got := s.value("select refresh_id from rwproxy.refreshes"); got != id {
		t.Errorf("history shows %s, want refresh %s of the dropped table", got, id)
	}
	if got := s.value("select message from rwproxy.event_log order by sequence desc"); got != "User postgres dropped table 'public.daily'." {
		t.Errorf("last event: %s", got)
	}
	s.must("create table plain ()")
	ok(t, flowstate.Drop(t.Context(), s, s.lookup("plain").OID, false))
}

func TestSweepForgetsTablesDroppedWithoutRwproxy(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s := connect(t, url, "")
	s.dailyTable()
	s.must("create schema other", "create table other.daily (day date, amount bigint)")
	ok(t, flowstate.Create(t.Context(), s, flowstate.StreamingTable{
		Target: rewrite.Name{Schema: "other", Table: "daily"}, Settings: settings, Flow: s.flow("other"),
	}))
	ok(t, flowstate.Sweep(t.Context(), s))
	if got := s.value("select count(*) from rwproxy.streaming_table"); got != "2" {
		t.Fatalf("%s tables are left, nothing was dropped", got)
	}

	s.must("drop schema other cascade")
	stranger := connect(t, url, newRole(t, url, "stranger"))
	ok(t, flowstate.Sweep(t.Context(), stranger))
	if got := s.value("select string_agg(flow_name, ',') from rwproxy.streaming_table"); got != "daily" {
		t.Errorf("flows left: %s, want daily", got)
	}
	if got := s.value("select count(*) from pg_class where relnamespace = 'rwproxy_flows'::regnamespace"); got != "1" {
		t.Errorf("%s views are left, want 1", got)
	}

	s.must("create view mine as select * from "+s.lookup("daily").Table.Flow.View, "drop table daily")
	ok(t, flowstate.Sweep(t.Context(), s))
	if got := s.value("select count(*) from rwproxy.streaming_table"); got != "0" {
		t.Errorf("a view that others depend on keeps its flow")
	}
	s.must("table mine")
}

func TestSweepDoesNotWaitForAViewInUse(t *testing.T) {
	t.Parallel()
	url := installed(t)
	s, reader := connect(t, url, ""), connect(t, url, "")
	s.dailyTable()
	reader.must("begin", "table "+s.lookup("daily").Table.Flow.View)
	s.must("drop table daily")
	ok(t, flowstate.Sweep(t.Context(), s))
	if got := s.value("select count(*) from rwproxy.streaming_table"); got != "1" {
		t.Fatal("the flow is gone although its view could not be dropped")
	}
	reader.must("commit")
	ok(t, flowstate.Sweep(t.Context(), s))
	if got := s.value("select count(*) from rwproxy.streaming_table"); got != "0" {
		t.Error("the next sweep left it too")
	}
}

func TestARenamedTableKeepsItsFlow(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.must("create schema other", "alter table daily rename to per_day", "alter table per_day set schema other",
		"set search_path = other")
	if got := s.lookup("per_day"); got.OID != oid || got.Table == nil || got.Table.Flow.Name != "daily" {
		t.Errorf("got %+v", got)
	}
	if got := s.value("select target_schema, target_table from rwproxy.flows"); got != "other|per_day" {
		t.Errorf("rwproxy.flows shows %s", got)
	}
}

func TestAFlowWhoseViewWasDroppedIsShownWithoutIt(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.dailyTable()
	s.must("drop view " + s.lookup("daily").Table.Flow.View)
	if flow := s.lookup("daily").Table.Flow; flow == nil || flow.View != "" || flow.ViewOID != 0 {
		t.Errorf("got %+v", flow)
	}
}

func TestWhatCannotBeATargetIsRefused(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.must("create view some_view as select 1 as day", "create temporary table some_temp (day date)",
		"create sequence some_sequence")
	for name, want := range map[string]struct{ code, message string }{
		"some_view":       {"42809", `"some_view" is not a table`},
		"some_temp":       {"42P16", `streaming table "some_temp" cannot be temporary`},
		"some_sequence":   {"42809", `"some_sequence" is not a table`},
		"rwproxy.refresh": {"42501", "permission denied for schema rwproxy"},
		"missing":         {"42P01", "relation does not exist"},
	} {
		target := rewrite.Name{Table: name}
		if name == "rwproxy.refresh" {
			target = rewrite.Name{Schema: "rwproxy", Table: "refresh"}
		}
		refused(t, flowstate.Create(t.Context(), s, flowstate.StreamingTable{Target: target}), want.code, want.message)
	}
}
