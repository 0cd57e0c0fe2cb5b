package console

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// client keeps no idle connection.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}

func start(t *testing.T, c Config) *Console {
	t.Helper()
	c.Address, c.Logger = "127.0.0.1:0", zap.NewNop()
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	console, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := console.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return console
}

func request(t *testing.T, method string, c *Console, path string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+c.Address()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// ping asks a database for an answer.
func ping(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		connection, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer connection.Close(ctx)
		return connection.Ping(ctx)
	}
}

func TestReadyFollowsPostgres(t *testing.T) {
	t.Parallel()
	up := start(t, Config{Ready: ping(pgtest.Database(t))})
	if status, body := request(t, "GET", up, "/readyz"); status != 200 || body != "ok\n" {
		t.Errorf("with Postgres: %d %q", status, body)
	}

	down := start(t, Config{Ready: ping("postgres://user:hunter2@127.0.0.1:1/db")})
	status, body := request(t, "GET", down, "/readyz")
	if status != 503 || body != "postgres does not answer\n" {
		t.Errorf("without Postgres: %d %q", status, body)
	}
	if status, _ := request(t, "GET", down, "/healthz"); status != 200 {
		t.Errorf("health without Postgres: %d", status)
	}
}

func TestReadyIsRefusedWhileDraining(t *testing.T) {
	t.Parallel()
	console := start(t, Config{Ready: func(context.Context) error { return nil }})
	console.Drain()
	if status, body := request(t, "GET", console, "/readyz"); status != 503 || body != "stopping\n" {
		t.Errorf("ready: %d %q", status, body)
	}
	if status, _ := request(t, "GET", console, "/healthz"); status != 200 {
		t.Errorf("health: %d", status)
	}
}

func TestReadyDoesNotWaitForAPostgresThatHangs(t *testing.T) {
	t.Parallel()
	console := start(t, Config{Ready: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	began := time.Now()
	if status, _ := request(t, "GET", console, "/readyz"); status != 503 {
		t.Errorf("status = %d", status)
	}
	if took := time.Since(began); took < readyTimeout || took > 5*readyTimeout {
		t.Errorf("the answer took %s", took)
	}
}

func TestMetricsShowWhatWasCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry, "1.2.3")
	console := start(t, Config{Metrics: registry})
	metrics.SessionStarted()
	metrics.SessionStarted()
	metrics.SessionEnded()
	metrics.StatementRun("REFRESH", time.Second, "55P03")
	metrics.Refreshed(flowstate.Ended{
		Technique: "FULL_RECOMPUTE", Reason: "FIRST_REFRESH", State: "COMPLETED", Cause: flowstate.CauseStatement,
		Duration: 2 * time.Second, RowsDeleted: 3, RowsInserted: 4,
	})
	metrics.ShowTraffic(func() (int64, int64) { return 5, 6 })
	_, body := request(t, "GET", console, "/metrics")
	for _, line := range []string{
		"rwproxy_sessions_open 1",
		"rwproxy_sessions_total 2",
		`rwproxy_statements_total{sqlstate="55P03",tag="REFRESH"} 1`,
		`rwproxy_statement_duration_seconds_sum{tag="REFRESH"} 1`,
		`rwproxy_refreshes_total{cause="statement",reason="FIRST_REFRESH",state="COMPLETED",technique="FULL_RECOMPUTE"} 1`,
		`rwproxy_refresh_duration_seconds_sum{state="COMPLETED",technique="FULL_RECOMPUTE"} 2`,
		`rwproxy_refresh_rows_total{operation="deleted",technique="FULL_RECOMPUTE"} 3`,
		`rwproxy_refresh_rows_total{operation="inserted",technique="FULL_RECOMPUTE"} 4`,
		`rwproxy_session_bytes_total{from="client"} 5`,
		`rwproxy_session_bytes_total{from="postgres"} 6`,
		`rwproxy_build_info{version="1.2.3"} 1`,
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s in\n%s", line, body)
		}
	}
}

func TestWithACertificateEverythingIsHTTPS(t *testing.T) {
	t.Parallel()
	example := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	example.Close()
	console := start(t, Config{TLS: &tls.Config{Certificates: example.TLS.Certificates}})
	response, err := example.Client().Get("https://" + console.Address() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("health: %d", response.StatusCode)
	}
	example.Client().CloseIdleConnections()
	if status, _ := request(t, "GET", console, "/healthz"); status != http.StatusBadRequest {
		t.Errorf("health without TLS: %d", status)
	}
}

func TestOtherPathsAndMethodsAreRefused(t *testing.T) {
	t.Parallel()
	console := start(t, Config{})
	if status, _ := request(t, "GET", console, "/"); status != 404 {
		t.Errorf("GET /: %d", status)
	}
	if status, _ := request(t, "POST", console, "/healthz"); status != 405 {
		t.Errorf("POST /healthz: %d", status)
	}
}

func TestABusyPortIsAnError(t *testing.T) {
	t.Parallel()
	console := start(t, Config{})
	_, err := Start(Config{Address: console.Address(), Logger: zap.NewNop()})
	var operation *net.OpError
	if !errors.As(err, &operation) {
		t.Errorf("error = %v", err)
	}
}

func TestStopCutsARequestWhenItsTimeIsUpAndMayBeCalledTwice(t *testing.T) {
	t.Parallel()
	entered := make(chan struct{})
	console := start(t, Config{Ready: func(ctx context.Context) error {
		close(entered)
		<-ctx.Done()
		return ctx.Err()
	}})
	go func() {
		response, err := client.Get("http://" + console.Address() + "/readyz")
		if err == nil {
			response.Body.Close()
		}
	}()
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := console.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestSQLSTATEsAreBounded(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	metrics := NewMetrics(registry, "test")
	for i := range 10 * maxCodes {
		metrics.StatementRun("INSERT", 0, fmt.Sprintf("X%04d", i))
	}
	metrics.StatementRun("INSERT", 0, "X0000")
	metrics.StatementRun("INSERT", 0, "")
	_, body := request(t, "GET", start(t, Config{Metrics: registry}), "/metrics")
	if n := strings.Count(body, "\nrwproxy_statements_total{"); n != maxCodes+2 {
		t.Errorf("%d series", n)
	}
	for _, line := range []string{
		`rwproxy_statements_total{sqlstate="X0000",tag="INSERT"} 2`,
		`rwproxy_statements_total{sqlstate="",tag="INSERT"} 1`,
		fmt.Sprintf(`rwproxy_statements_total{sqlstate="other",tag="INSERT"} %d`, 9*maxCodes),
	} {
		if !strings.Contains(body, line+"\n") {
			t.Errorf("no line %s", line)
		}
	}
}
