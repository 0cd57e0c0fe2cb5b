package console

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func aTokenIsAsGoodAsAPassword(t *testing.T, w *world) {
	byToken := w.get(t, bearer(w.token), pipelines+"/shop/updates")
	if byPassword := w.get(t, alice(), pipelines+"/shop/updates"); byToken.text != byPassword.text {
		t.Errorf("%s\n%s", byToken.text, byPassword.text)
	}
	if got := w.get(t, bearer(w.token), pipelines).list(t, "statuses"); len(got) != 1 || got[0]["name"] != "shop" {
		t.Errorf("pipelines %v", got)
	}
	for _, missing := range []string{"nothing", "empty", "lab"} { // no telling which she may not connect to
		w.refused(t, bearer(w.token), "GET", pipelines+"/"+missing, "", http.StatusNotFound, codeMissing)
	}
}

func anotherRolesFlowsAreOutOfReach(t *testing.T, w *world) {
	updates := w.get(t, alice(), pipelines+"/shop/updates").list(t, "updates")
	if got := w.get(t, bob(), pipelines+"/shop/updates").list(t, "updates"); len(got) != 0 {
		t.Errorf("bob sees %v", got)
	}
	if got := w.get(t, bob(), pipelines+"/shop/events").list(t, "events"); len(got) != 0 {
		t.Errorf("bob sees %v", got)
	}
	if a := w.get(t, bob(), pipelines+"/shop"); strings.Contains(a.text, "latest_updates") {
		t.Errorf("bob sees %s", a.text)
	}
	id := updates[0]["update_id"].(string)
	w.refused(t, bob(), "GET", pipelines+"/shop/updates/"+id, "", http.StatusNotFound, codeMissing)
	// What one role is told does not depend on a token that another was given.
	token := position{Filter: "update_id = '" + id + "'"}.token(false, "9223372036854775807")
	if got := w.get(t, bob(), pipelines+"/shop/events?page_token="+token).list(t, "events"); len(got) != 0 {
		t.Errorf("bob sees %v", got)
	}
}

// aSchemaOfSomebodyElsesIsNoPipeline: what is in it would run with the rights of
// whoever calls.
func aSchemaOfSomebodyElsesIsNoPipeline(t *testing.T, w *world) {
	shop := w.get(t, alice(), pipelines+"/shop")
	id := shop.string("pipeline_id")
	w.exec(t, w.url("postgres", servicePassword, "postgres"), "create database trap owner bob")
	w.exec(t, w.url("bob", bobPassword, "trap"),
		"create schema rwproxy",
		"create table rwproxy.database as select '"+id+"'::uuid as id",
		"grant usage on schema rwproxy to public",
		"grant select on rwproxy.database to public",
	)
	for _, who := range []as{alice(), bearer(w.token)} {
		w.refused(t, who, "GET", pipelines+"/trap", "", http.StatusNotFound, codeMissing)
		w.refused(t, who, "POST", pipelines+"/trap/stop", "", http.StatusNotFound, codeMissing)
		if got := w.get(t, who, pipelines+"/"+id); got.text != shop.text {
			t.Errorf("the pipeline is another: %s", got.text)
		}
		if got := w.get(t, who, pipelines+"?order_by=name").list(t, "statuses"); len(got) != 1 || got[0]["name"] != "shop" {
			t.Errorf("pipelines %v", got)
		}
	}
}

// aDatabaseThatIsMadeAgainIsAnotherPipeline, and one that is renamed is not.
func aDatabaseThatIsMadeAgainIsAnotherPipeline(t *testing.T, w *world) {
	service := w.url("postgres", servicePassword, "postgres")
	w.exec(t, service, "create database first owner alice")
	w.flow(t, "alice", alicePassword, "first")
	first := w.get(t, alice(), pipelines+"/first").string("pipeline_id")
	w.get(t, alice(), pipelines+"/"+first)
	w.exec(t, service, "select pg_terminate_backend(pid) from pg_stat_activity where datname = 'first'", "alter database first rename to renamed")
	if got := w.get(t, alice(), pipelines+"/"+first); got.string("name") != "renamed" {
		t.Errorf("renamed: %s", got.text)
	}
	w.exec(t, service, "drop database renamed with (force)", "create database first owner alice")
	w.refused(t, alice(), "GET", pipelines+"/"+first, "", http.StatusNotFound, codeMissing)
}

func wrongCredentialsAreRefusedAlike(t *testing.T, w *world) {
	var texts []string
	for _, who := range []as{
		basic("alice", "wrong"), basic("alice", ""), basic("nobody_at_all", "x"), basic("", ""), basic(strings.Repeat("x", 64), "x"),
		basic("alice\x00", alicePassword), bearer("rwproxy_x"), bearer(""), bearer(w.token[:len(w.token)-1]),
	} {
		for _, path := range []string{pipelines, pipelines + "/shop", pipelines + "/nothing", pipelines + "/00000000-0000-0000-0000-000000000001"} {
			if len(texts) > failureBurst-8 {
				break
			}
			a := w.refused(t, who, "GET", path, "", http.StatusUnauthorized, codeUnauthenticated)
			texts = append(texts, a.text)
			if a.text != texts[0] {
				t.Errorf("%s is not %s", a.text, texts[0])
			}
		}
	}
	for _, who := range []as{nobody, func(r *http.Request) { r.Header.Set("Authorization", "Digest x") }} {
		a := w.refused(t, who, "GET", pipelines, "", http.StatusUnauthorized, codeUnauthenticated)
		if challenges := a.header.Values("WWW-Authenticate"); len(challenges) != 2 {
			t.Errorf("challenges %q", challenges)
		}
	}
	// Enough is enough, for a stranger.
	for n := 0; ; n++ {
		a := w.call(t, bearer("rwproxy_x"), "GET", pipelines, "")
		if a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") != "" {
			break
		}
		if n > failureBurst {
			t.Fatalf("%d tokens were tried: %d", n, a.status)
		}
	}
	w.refused(t, basic("nobody_at_all", "x"), "GET", pipelines, "", http.StatusTooManyRequests, codeBusy)
	w.get(t, alice(), pipelines+"/shop")
	w.get(t, bearer(w.token), pipelines+"/shop")
}

func metricsAreForMonitors(t *testing.T, w *world) {
	w.refused(t, nobody, "GET", "/metrics", "", http.StatusUnauthorized, codeUnauthenticated)
	w.refused(t, alice(), "GET", "/metrics", "", http.StatusForbidden, codeDenied)
	service := w.url("postgres", servicePassword, "postgres")
	w.exec(t, service, "grant pg_monitor to alice")
	defer w.exec(t, service, "revoke pg_monitor from alice")
	for _, who := range []as{alice(), bearer(w.token)} {
		if a := w.get(t, who, "/metrics"); !strings.Contains(a.text, "rwproxy_refreshes_total") {
			t.Errorf("metrics %s", a.text)
		}
	}
	if a := w.get(t, nobody, "/healthz"); a.text != "ok\n" {
		t.Errorf("health %q", a.text)
	}
}

func noSecretIsLogged(t *testing.T, w *world) {
	for _, secret := range []string{servicePassword, alicePassword, bobPassword, w.token, "Basic "} {
		if strings.Contains(w.log.String(), secret) {
			t.Errorf("%q is in the log", secret)
		}
	}
	for _, record := range []string{`"call refused"`, `"role":"alice"`, `"status":401`} {
		if !strings.Contains(w.log.String(), record) {
			t.Errorf("no %s in the log", record)
		}
	}
}

func TestCredentialsAreTakenOnThisMachineOrOverTLS(t *testing.T) {
	t.Parallel()
	public, err := url.Parse("https://rwproxy.example.com:8443")
	if err != nil {
		t.Fatal(err)
	}
	a := newAPI(APIConfig{URL: public}, nil)
	for _, test := range []struct {
		local, host string
		tls         bool
		want        bool
	}{
		{"127.0.0.1", "127.0.0.1:6433", false, true},
		{"127.0.0.1", "localhost:6433", false, true},
		{"::1", "[::1]:6433", false, true},
		{"127.0.0.1", "rwproxy.example.com", false, true}, // a proxy in front
		{"127.0.0.1", "evil.example.com:6433", false, false},
		{"127.0.0.1", "127.0.0.1.example.com", false, false},
		{"192.0.2.1", "127.0.0.1:6433", false, false},
		{"192.0.2.1", "192.0.2.1:6433", false, false},
		{"192.0.2.1", "192.0.2.1:6433", true, true},
	} {
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP(test.local), Port: 6433})
		r, err := http.NewRequestWithContext(ctx, "GET", "http://"+test.host+pipelines, nil)
		if err != nil {
			t.Fatal(err)
		}
		if test.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := a.private(r); got != test.want {
			t.Errorf("%+v: %t", test, got)
		}
	}
}
