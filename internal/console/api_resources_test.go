package console

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const pipelines = "/api/2.0/pipelines"

func TestAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *world)
	}{
		{"A database is a pipeline", aDatabaseIsAPipeline},
		{"Pipelines are listed in pages", pipelinesAreListedInPages},
		{"A refresh is an update", aRefreshIsAnUpdate},
		{"Updates are listed in pages", updatesAreListedInPages},
		{"Events are filtered", eventsAreFiltered},
		{"Events are listed in pages", eventsAreListedInPages},
		{"A bad update is refused", aBadUpdateIsRefused},
		{"An update that Postgres refuses says why", anUpdateThatPostgresRefusesSaysWhy},
		{"A token is as good as a password", aTokenIsAsGoodAsAPassword},
		{"Another role's flows are out of reach", anotherRolesFlowsAreOutOfReach},
		{"A schema of somebody else's is no pipeline", aSchemaOfSomebodyElsesIsNoPipeline},
		{"A database that is made again is another pipeline", aDatabaseThatIsMadeAgainIsAnotherPipeline},
		{"An update is started and stopped", anUpdateIsStartedAndStopped},
		{"Metrics are for monitors", metricsAreForMonitors},
		{"Unknown paths are answered in JSON", unknownPathsAreAnsweredInJSON},
		{"Wrong credentials are refused alike", wrongCredentialsAreRefusedAlike},
		{"No secret is logged", noSecretIsLogged},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, w) })
	}
}

func alice() as { return basic("alice", alicePassword) }
func bob() as   { return basic("bob", bobPassword) }

func aDatabaseIsAPipeline(t *testing.T, w *world) {
	byName := w.get(t, alice(), pipelines+"/shop")
	want := `{"pipeline_id":"(id)","name":"shop","state":"IDLE","health":"HEALTHY","creator_user_name":"alice",` +
		`"latest_updates":[{"update_id":"(id)","state":"COMPLETED","creation_time":"(time)"},{"update_id":"(id)","state":"COMPLETED","creation_time":"(time)"},` +
		`{"update_id":"(id)","state":"COMPLETED","creation_time":"(time)"}],"last_modified":"(ms)","run_as_user_name":"alice",` +
		`"spec":{"id":"(id)","name":"shop","catalog":"shop","continuous":false}}`
	if diff := cmp.Diff(want, plain(byName.text)); diff != "" {
		t.Error(diff)
	}
	byID := w.get(t, alice(), pipelines+"/"+byName.string("pipeline_id"))
	if byID.text != byName.text {
		t.Errorf("by id: %s", byID.text)
	}
	for _, missing := range []string{"nothing", "empty", "00000000-0000-0000-0000-000000000000", strings.Repeat("x", 200), "x%00y", "..%2Fshop", "shop%20"} {
		a := w.refused(t, alice(), "GET", pipelines+"/"+missing, "", http.StatusNotFound, codeMissing)
		name, err := url.PathUnescape(missing)
		if err != nil {
			t.Fatal(err)
		}
		if want := "The specified pipeline " + shortened(name) + " was not found."; a.string("message") != want {
			t.Errorf("%s: %s", missing, a.text)
		}
	}
	w.refused(t, alice(), "GET", pipelines+"/lab", "", http.StatusForbidden, codeDenied)
}

func pipelinesAreListedInPages(t *testing.T, w *world) {
	names := func(who as, query string) []string {
		var names []string
		for _, p := range w.get(t, who, pipelines+query).list(t, "statuses") {
			names = append(names, p["name"].(string))
		}
		return names
	}
	w.exec(t, w.url("postgres", servicePassword, "postgres"), "alter role bob superuser") // may connect everywhere
	defer w.exec(t, w.url("postgres", servicePassword, "postgres"), "alter role bob nosuperuser")
	for query, want := range map[string][]string{
		"?order_by=name":                         {"lab", "shop"},
		"?order_by=name+desc":                    {"shop", "lab"},
		"?filter=name+like+'%25ho%25'":           {"shop"},
		"?filter=name+LIKE+'l__'":                {"lab"},
		"?filter=name+like+'x%25'":               nil,
		"?order_by=name+desc&max_results=1":      {"shop"},
		"?order_by=name&max_results=1":           {"lab"},
		"?max_results=100&order_by=name%20%20AS": nil,
	} {
		if strings.HasSuffix(query, "AS") {
			w.refused(t, bob(), "GET", pipelines+query, "", http.StatusBadRequest, codeInvalid)
			continue
		}
		if got := names(bob(), query); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := names(alice(), ""); !slices.Equal(got, []string{"shop"}) {
		t.Errorf("alice sees %q", got)
	}
	first := w.get(t, bob(), pipelines+"?max_results=1")
	second := w.get(t, bob(), pipelines+"?max_results=1&page_token="+first.string("next_page_token"))
	back := w.get(t, bob(), pipelines+"?page_token="+second.string("prev_page_token"))
	if second.string("next_page_token") != "" || first.string("prev_page_token") != "" || diffFirst(t, first, back, "statuses") != "" {
		t.Errorf("pages:\n%s%s%s", first.text, second.text, back.text)
	}
	w.refused(t, bob(), "GET", pipelines+"?max_results=101", "", http.StatusBadRequest, codeInvalid)
	w.refused(t, bob(), "GET", pipelines+"?filter=name+like+'%5C'", "", http.StatusBadRequest, codeInvalid)
	w.refused(t, bob(), "GET", pipelines+"?filter=name+like+'a'+and+name+like+'b'", "", http.StatusBadRequest, codeInvalid)
	w.refused(t, bob(), "GET", pipelines+"?page_token=x&filter=name+like+'a'", "", http.StatusBadRequest, codeInvalid)
}

// diffFirst compares lists of two answers.
func diffFirst(t *testing.T, a, b reply, name string) string {
	t.Helper()
	return cmp.Diff(a.list(t, name), b.list(t, name))
}

func aRefreshIsAnUpdate(t *testing.T, w *world) {
	list := w.get(t, alice(), pipelines+"/shop/updates")
	want := `{"pipeline_id":"(id)","update_id":"(id)","cause":"USER_ACTION","state":"COMPLETED","mode":"DEFAULT","creation_time":"(ms)","full_refresh":false,"validate_only":false}`
	if diff := cmp.Diff(`{"updates":[`+want+","+want+","+want+"]}", plain(list.text)); diff != "" {
		t.Error(diff)
	}
	id := list.list(t, "updates")[0]["update_id"].(string)
	one := w.get(t, alice(), pipelines+"/shop/updates/"+id)
	want = strings.Replace(want, `"cause"`, `"config":{"id":"(id)","name":"shop","catalog":"shop","continuous":false},"cause"`, 1)
	if diff := cmp.Diff(`{"update":`+want+"}", plain(one.text)); diff != "" {
		t.Error(diff)
	}
	for _, missing := range []string{"00000000-0000-0000-0000-000000000000", "x", "x'y"} {
		a := w.refused(t, alice(), "GET", pipelines+"/shop/updates/"+url.PathEscape(missing), "", http.StatusNotFound, codeMissing)
		if want := "The specified update " + missing + " was not found."; a.string("message") != want {
			t.Errorf("%s: %s", missing, a.text)
		}
	}
}

func updatesAreListedInPages(t *testing.T, w *world) {
	all := w.get(t, alice(), pipelines+"/shop/updates").list(t, "updates")
	at := func(n int) string { return all[n]["update_id"].(string) }
	path := pipelines + "/shop/updates?max_results=1"
	pages := []reply{w.get(t, alice(), path)}
	for token := pages[0].string("next_page_token"); token != ""; token = pages[len(pages)-1].string("next_page_token") {
		pages = append(pages, w.get(t, alice(), path+"&page_token="+token))
	}
	if len(pages) != len(all) {
		t.Fatalf("%d pages of %d updates", len(pages), len(all))
	}
	for n, page := range pages {
		if got := page.list(t, "updates")[0]["update_id"]; got != at(n) {
			t.Errorf("page %d has %s, want %s", n, got, at(n))
		}
	}
	last := len(pages) - 1
	back := w.get(t, alice(), path+"&page_token="+pages[last].string("prev_page_token"))
	if diff := diffFirst(t, pages[last-1], back, "updates"); diff != "" {
		t.Error(diff)
	}
	until := w.get(t, alice(), pipelines+"/shop/updates?until_update_id="+at(1)).list(t, "updates")
	if diff := cmp.Diff(all[:2], until); diff != "" {
		t.Error(diff)
	}
	// The token of another list is none of this one, nor is what is made up.
	for _, token := range []string{"x", "e30", position{}.token(false, "1"), position{}.token(false, "2024-05-01", at(0)), position{}.token(false, "2024-05-01T00:00:00.000000Z", "1")} {
		w.refused(t, alice(), "GET", path+"&page_token="+token, "", http.StatusBadRequest, codeInvalid)
	}
}

// eventTypes returns the types and flows of events.
func eventTypes(events []map[string]any) []string {
	list := make([]string, len(events))
	for i, e := range events {
		list[i] = fmt.Sprint(e["event_type"])
	}
	return list
}

func eventsAreFiltered(t *testing.T, w *world) {
	path := pipelines + "/shop/events"
	id := w.get(t, alice(), pipelines+"/shop/updates").list(t, "updates")[0]["update_id"].(string)
	filtered := func(filter string) []map[string]any {
		return w.get(t, alice(), path+"?order_by=timestamp+asc&filter="+url.QueryEscape(filter)).list(t, "events")
	}
	all := filtered("update_id = '" + id + "'")
	want := []string{"create_update", "update_progress", "flow_progress", "update_progress", "flow_progress", "planning_information", "update_progress", "flow_progress", "flow_progress", "update_progress"}
	if diff := cmp.Diff(want, eventTypes(all)); diff != "" {
		t.Error(diff)
	}
	if got := filtered("update_id = '" + id + "' and event_type in ('update_progress', 'create_update')"); len(got) != 5 {
		t.Errorf("%d events of two types", len(got))
	}
	first := all[0]
	if got := filtered("id = '" + first["id"].(string) + "'"); len(got) != 1 || got[0]["message"] != first["message"] {
		t.Errorf("by id: %v", got)
	}
	// A time is compared as it is shown.
	shown := first["timestamp"].(string)
	for _, operator := range []string{"=", ">=", "<="} {
		found := filtered("id = '" + first["id"].(string) + "' and timestamp " + operator + " '" + shown + "'")
		if len(found) != 1 {
			t.Errorf("timestamp %s its own: %d", operator, len(found))
		}
	}
	for _, operator := range []string{"<", ">"} {
		if found := filtered("id = '" + first["id"].(string) + "' and timestamp " + operator + " '" + shown + "'"); len(found) != 0 {
			t.Errorf("timestamp %s its own: %d", operator, len(found))
		}
	}
	if got := filtered("level in ('ERROR', 'WARN')"); len(got) != 0 {
		t.Errorf("%d errors", len(got))
	}
	event := w.get(t, alice(), path+"?filter="+url.QueryEscape("event_type = 'update_progress' and update_id = '"+id+"'")+"&max_results=1")
	wanted := `{"events":[{"id":"(id)","sequence":{"control_plane_seq_no":"(n)"},"origin":{"dataset_name":"data.daily","flow_id":"(id)","flow_name":"daily",` +
		`"pipeline_id":"(id)","pipeline_name":"shop","update_id":"(id)"},"timestamp":"(time)","message":"Update (id) is COMPLETED.","level":"INFO","maturity_level":"STABLE",` +
		`"event_type":"update_progress","details":{"update_progress":{"state":"COMPLETED"}}}],"next_page_token":"(token)"}`
	text := plain(strings.ReplaceAll(event.text, event.string("next_page_token"), "(token)"))
	if diff := cmp.Diff(wanted, text); diff != "" {
		t.Error(diff)
	}
	a := w.refused(t, alice(), "GET", path+"?filter="+url.QueryEscape("level = 'INFO' or 1=1"), "", http.StatusBadRequest, codeInvalid)
	if a.string("message") != "filter: expected AND or the end at character 16" {
		t.Errorf("message %q", a.string("message"))
	}
	w.refused(t, alice(), "GET", path+"?order_by=message", "", http.StatusBadRequest, codeInvalid)
}

func eventsAreListedInPages(t *testing.T, w *world) {
	path := pipelines + "/shop/events?max_results=250"
	newest := w.get(t, alice(), path).list(t, "events")
	oldest := w.get(t, alice(), path+"&order_by=timestamp+asc").list(t, "events")
	slices.Reverse(oldest)
	if diff := cmp.Diff(newest, oldest); diff != "" {
		t.Error(diff)
	}
	path = pipelines + "/shop/events?max_results=7"
	var seen []map[string]any
	var pages []reply
	for token := "&filter=" + url.QueryEscape("level = 'INFO'"); token != ""; {
		page := w.get(t, alice(), path+token)
		pages = append(pages, page)
		seen = append(seen, page.list(t, "events")...)
		if token = page.string("next_page_token"); token != "" {
			token = "&page_token=" + token
		}
	}
	if diff := cmp.Diff(newest, seen); diff != "" {
		t.Error(diff)
	}
	for n := len(pages) - 1; n > 0; n-- {
		back := w.get(t, alice(), path+"&page_token="+pages[n].string("prev_page_token"))
		if diff := diffFirst(t, pages[n-1], back, "events"); diff != "" {
			t.Errorf("page before %d: %s", n, diff)
		}
		if back.string("next_page_token") == "" || (back.string("prev_page_token") == "") != (n == 1) {
			t.Errorf("page before %d: %s", n, back.text)
		}
	}
	w.refused(t, alice(), "GET", path+"&filter=x&page_token="+pages[0].string("next_page_token"), "", http.StatusBadRequest, codeInvalid)
	w.refused(t, alice(), "GET", pipelines+"/shop/events?max_results=251", "", http.StatusBadRequest, codeInvalid)
}

func unknownPathsAreAnsweredInJSON(t *testing.T, w *world) {
	for _, path := range []string{"/api/2.0/jobs", "/api/", pipelines + "/shop/permissions"} {
		w.refused(t, nobody, "GET", path, "", http.StatusNotFound, "ENDPOINT_NOT_FOUND")
	}
	w.refused(t, nobody, "DELETE", pipelines+"/shop", "", http.StatusNotFound, "ENDPOINT_NOT_FOUND")
	a := w.get(t, alice(), pipelines+"/shop")
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
