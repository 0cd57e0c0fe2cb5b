package console

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// No jobs run here: what is started stays queued.
func anUpdateIsStartedAndStopped(t *testing.T, w *world) {
	path := pipelines + "/shop/updates"
	start := func(who as, body string) string {
		t.Helper()
		a := w.call(t, who, "POST", path, body)
		id := a.string("update_id")
		if a.status != http.StatusOK || !isUUID(id) || len(a.body) != 1 {
			t.Fatalf("%s: %d %s", body, a.status, a.text)
		}
		return id
	}
	state := func(id string) string {
		t.Helper()
		return w.get(t, alice(), path+"/"+id).body["update"].(map[string]any)["state"].(string)
	}
	// As the documented helper does it, with fields that mean nothing here.
	id := start(alice(), `{"pipeline_id": "x", "cause": "JOB_TASK", "update_cause_details": {"job_details": {"performance_target": "PERFORMANCE"}},
		"refresh_selection": ["daily"], "full_refresh_selection": ["doubled"],
		"replace_where_overrides": [{"flow_name": "daily", "predicate_override": "day = date '2024-05-01'"}]}`)
	want := `{"update":{"pipeline_id":"(id)","update_id":"(id)","config":{"id":"(id)","name":"shop","catalog":"shop","continuous":false},` +
		`"cause":"JOB_TASK","state":"QUEUED","mode":"DEFAULT","creation_time":"(ms)","full_refresh":false,"refresh_selection":["daily"],` +
		`"full_refresh_selection":["doubled"],"validate_only":false}}`
	if diff := cmp.Diff(want, plain(w.get(t, alice(), path+"/"+id).text)); diff != "" {
		t.Error(diff)
	}
	if a := w.get(t, alice(), pipelines+"/shop"); a.string("state") != "RUNNING" {
		t.Errorf("pipeline %s", a.text)
	}
	a := w.refused(t, bearer(w.token), "POST", path, "", http.StatusConflict, codeConflict)
	if !strings.HasPrefix(a.string("message"), "another update of the API is active in this database") {
		t.Errorf("message %q", a.string("message"))
	}

	// Bob does not see it; a reader sees it, and may not stop it.
	if a := w.call(t, bob(), "POST", pipelines+"/shop/stop", ""); a.status != http.StatusOK || a.text != "{}\n" {
		t.Errorf("bob stops: %d %s", a.status, a.text)
	}
	w.exec(t, w.url("alice", alicePassword, "shop"), "grant usage on schema data to bob", "grant select on data.daily, data.doubled to bob")
	defer w.exec(t, w.url("alice", alicePassword, "shop"), "revoke all on data.daily, data.doubled from bob")
	if got := w.get(t, bob(), path).list(t, "updates"); len(got) == 0 || got[0]["update_id"] != id {
		t.Errorf("a reader sees %v", got)
	}
	w.refused(t, bob(), "POST", pipelines+"/shop/stop", "", http.StatusForbidden, codeDenied)
	w.refused(t, bob(), "POST", path, `{"refresh_selection": ["daily"]}`, http.StatusForbidden, codeDenied)
	if got := state(id); got != "QUEUED" {
		t.Errorf("the update is %s", got)
	}
	for range 2 { // the second time there is nothing to stop
		if a := w.call(t, alice(), "POST", pipelines+"/shop/stop", ""); a.status != http.StatusOK || a.text != "{}\n" {
			t.Errorf("stop: %d %s", a.status, a.text)
		}
	}
	if got := state(id); got != "CANCELED" {
		t.Errorf("the update is %s", got)
	}
	if a := w.get(t, alice(), pipelines+"/shop"); a.string("state") != "IDLE" {
		t.Errorf("pipeline %s", a.text)
	}

	// A token's role finds what it finds when it logs in.
	service := w.url("postgres", servicePassword, "postgres")
	w.exec(t, w.url("alice", alicePassword, "shop"), "create function data.first_day() returns date immutable language sql as $$select date '2024-05-01'$$")
	w.exec(t, service, "alter role alice in database shop set search_path = data")
	for _, who := range []as{alice(), bearer(w.token)} {
		start(who, `{"replace_where_overrides": [{"flow_name": "daily", "predicate_override": "day = first_day()"}]}`)
		w.call(t, who, "POST", pipelines+"/shop/stop", "")
	}
	checked := start(alice(), `{"validate_only": true}`)
	if got := state(checked); got != "COMPLETED" {
		t.Errorf("a check is %s", got)
	}
	failed := start(alice(), `{"validate_only": true, "replace_where_overrides": [{"flow_name": "daily", "predicate_override": "nothing = 1"}]}`)
	if got := state(failed); got != "FAILED" {
		t.Errorf("a check that finds something is %s", got)
	}
	if got, _ := w.get(t, alice(), path+"/"+failed).body["update"].(map[string]any)["error"].(string); !strings.Contains(got, "nothing") {
		t.Errorf("its error: %q", got)
	}
	if a := w.get(t, alice(), pipelines+"/shop"); a.string("health") != "UNHEALTHY" {
		t.Errorf("pipeline %s", a.text)
	}
	errors := w.get(t, alice(), pipelines+"/shop/events?filter="+url.QueryEscape("update_id = '"+failed+"' and level = 'ERROR'")).list(t, "events")
	if len(errors) == 0 || !strings.Contains(fmt.Sprint(errors[0]["error"]), "nothing") {
		t.Errorf("errors %v", errors)
	}
}

func anUpdateThatPostgresRefusesSaysWhy(t *testing.T, w *world) {
	path := pipelines + "/shop/updates"
	a := w.refused(t, alice(), "POST", path, `{"replace_where_overrides": [{"flow_name": "daily", "predicate_override": "dya = 1"}]}`, http.StatusBadRequest, codeInvalid)
	details := a.list(t, "details")
	if details[0]["reason"] != "42703" || details[0]["@type"] != "type.googleapis.com/google.rpc.ErrorInfo" || details[0]["metadata"] == nil {
		t.Errorf("details %v", details)
	}
	for body, want := range map[string]string{
		`{"refresh_selection": ["nothing"]}`:                                                            "42P01",
		`{"full_refresh_selection": ["orders"]}`:                                                        "42P01",
		`{"replace_where_overrides": [{"flow_name": "daily", "predicate_override": "1 ="}]}`:            "42601",
		`{"replace_where_overrides": [{"flow_name": "daily'; --", "predicate_override": "1"}]}`:         "42P01",
		`{"replace_where_overrides": [{"flow_name": "daily", "predicate_override": "true) or (true"}]}`: "42601",
	} {
		a := w.refused(t, alice(), "POST", path, body, http.StatusBadRequest, codeInvalid)
		if got := a.list(t, "details")[0]["reason"]; got != want {
			t.Errorf("%s: %s, want %s", body, a.text, want)
		}
	}
}

func aBadUpdateIsRefused(t *testing.T, w *world) {
	path := pipelines + "/shop/updates"
	for body, want := range map[string]string{
		`{`:                                     "the body is not the JSON of an update",
		`[]`:                                    "the body is not the JSON of an update",
		`{} {}`:                                 "the body is not the JSON of an update",
		`"daily"`:                               "the body is not the JSON of an update: it is not an object",
		`{"refresh_selectoin": ["daily"]}`:      `unknown field "refresh_selectoin": an update has cause, full_refresh, `,
		`{"Refresh_selection": ["daily"]}`:      `unknown field "Refresh_selection"`,
		`{"full_refresh": "yes"}`:               "full_refresh: not true or false",
		`{"cause": "BOREDOM"}`:                  "cause: not one of",
		`{"parameters": {"a":"b"}}`:             "parameters: flows have none",
		`{"rewind_spec": {}}`:                   "rewind_spec: not supported",
		`{"reset_checkpoint_selection": ["x"]}`: "reset_checkpoint_selection: ",
		`{"replace_where_overrides": [{}]}`:     "replace_where_overrides: each needs",
		`{"replace_where_overrides": [{"flow_name": "daily"}]}`: "replace_where_overrides: each needs",
		`{"replace_where_overrides": {"flow_name": "daily"}}`:   `replace_where_overrides: not a list of {"flow_name"`,
		`{"replace_where_overrides": [{"flow": "daily"}]}`:      `replace_where_overrides: not a list of {"flow_name"`,
		`{"full_refresh_selection": "daily"}`:                   "full_refresh_selection: not a list of names",
		"{\"cause\": \"" + strings.Repeat("x", 300<<10) + "\"}": "",
	} {
		a := w.call(t, alice(), "POST", path, body)
		if want == "" && a.status == http.StatusRequestEntityTooLarge {
			continue
		}
		if a.status != http.StatusBadRequest || !strings.HasPrefix(a.string("message"), want) {
			t.Errorf("%.80s: %d %s", body, a.status, a.text)
		}
	}
	foreign := func(r *http.Request) { alice()(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }
	w.refused(t, foreign, "POST", path, "", http.StatusForbidden, codeDenied)
}
