package integration

import (
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scrape returns the lines of a proxy's metrics.
func scrape(t *testing.T, address string) string {
	t.Helper()
	client := http.Client{Timeout: patience}
	response, err := client.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("status %d, %v\n%s", response.StatusCode, err, body)
	}
	return string(body)
}

// monitored starts a proxy with metrics, in front of a database in which every
// metric has something to show.
func monitored(t *testing.T) (address string, d database) {
	t.Helper()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	// Before the shared server it would run what other tests ask for, and count it.
	own, p := ownServer(t, t.Name(), "--http", address)
	d = newDatabaseOn(t, own, p)
	s := connect(t, d.url)
	s.createTotals()
	s.exec(`refresh streaming table totals`, `insert into orders values (4, current_date, 40)`)
	s.fails("42P01", `refresh streaming table missing`)
	return address, d
}

// metricNames returns the metrics of rwproxy's own that a text names.
func metricNames(text string) map[string]bool {
	found := map[string]bool{}
	for _, name := range regexp.MustCompile(`\brwproxy_[a-z_]+[a-z]\b`).FindAllString(text, -1) {
		for _, part := range []string{"_bucket", "_sum", "_count"} {
			name = strings.TrimSuffix(name, part)
		}
		found[name] = true
	}
	return found
}

func TestDatabasesAreMeasured(t *testing.T) {
	t.Parallel()
	address, d := monitored(t)
	totals := `{database="` + d.name + `",schema="public",table="totals"} `
	orders := `{database="` + d.name + `",schema="public",table="orders"} `
	var text string
	eventually(t, "the flow is measured", func() bool {
		text = scrape(t, address)
		return strings.Contains(text, "rwproxy_flow_pending"+totals+"1\n")
	})
	for _, line := range []string{
		`rwproxy_database_up{database="` + d.name + `"} 1`,
		`rwproxy_flows{database="` + d.name + `"} 1`,
		`rwproxy_refreshes_queued{database="` + d.name + `"} 0`,
		`rwproxy_refreshes_running{database="` + d.name + `"} 0`,
		"rwproxy_flow_failed" + totals + "0",
		"rwproxy_sessions_open 1",
		`rwproxy_statements_total{sqlstate="42P01",tag="REFRESH STREAMING TABLE"} 1`,
		`rwproxy_refreshes_total{cause="statement",reason="FIRST_REFRESH",state="COMPLETED",technique="FULL_RECOMPUTE"} 1`,
		`rwproxy_refresh_rows_total{operation="inserted",technique="FULL_RECOMPUTE"} 2`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	for _, start := range []string{
		"rwproxy_flow_lag_seconds" + totals, "rwproxy_capture_log_bytes" + orders, "rwproxy_capture_log_rows" + orders,
		`rwproxy_session_bytes_total{from="client"} `, `rwproxy_session_bytes_total{from="postgres"} `,
	} {
		if !strings.Contains(text, "\n"+start) {
			t.Errorf("no line begins with %s in\n%s", start, text)
		}
	}
}

// A database in which everything is locked costs whoever reads the metrics a
// little time, and is said to be down.
func TestADatabaseThatHangsDoesNotKeepTheMetricsFromBeingRead(t *testing.T) {
	t.Parallel()
	address, d := monitored(t)
	locker := connect(t, d.direct)
	locker.exec(`begin`, `lock table rwproxy.refresh in access exclusive mode`)
	down := `rwproxy_database_up{database="` + d.name + `"} 0`
	eventually(t, "the database is said to be down", func() bool { return strings.Contains(scrape(t, address), down+"\n") })
	locker.exec(`rollback`)
	up := `rwproxy_database_up{database="` + d.name + `"} 1`
	eventually(t, "the database is said to be up", func() bool {
		return strings.Contains(scrape(t, address), up+"\n")
	})
}

func TestTheDashboardAndTheAlertsNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	address, d := monitored(t)
	var exist map[string]bool
	eventually(t, "the flow is measured", func() bool {
		text := scrape(t, address)
		exist = metricNames(text)
		return strings.Contains(text, `rwproxy_flow_pending{database="`+d.name)
	})
	for _, path := range []string{"../deploy/grafana/rwproxy.json", "../deploy/prometheus/alerts.yml", "../docs/monitoring.md"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name := range metricNames(string(text)) {
			if !exist[name] {
				t.Errorf("%s names %s, which is not there", path, name)
			}
		}
	}
	documented, err := os.ReadFile("../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(exist)) {
		if !strings.Contains(string(documented), "`"+name+"`") {
			t.Errorf("docs/monitoring.md does not say what %s is", name)
		}
	}
}
