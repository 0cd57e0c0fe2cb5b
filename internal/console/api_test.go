package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/config"
	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/refresh"
	"github.com/rwproxy/rwproxy/rewrite"
)

// secrets are in no log record.
const (
	servicePassword = "5ervice-secret"
	alicePassword   = "al1ce-secret"
	bobPassword     = "b0b-secret"
)

// world is a Postgres that asks for passwords, with flows of two owners in two
// databases, and a console in front of it.
type world struct {
	console *Console
	service *flowstate.Service
	engine  *refresh.Engine
	host    string // host:port of Postgres
	token   string // alice's
	log     *lockedBuffer
}

// lockedBuffer is a log that can be read while it is written.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	postgres, err := embedded.Start(t.Context(), embedded.Config{
		DataDir:  pgtest.TempDir(t),
		Settings: map[string]string{"fsync": "off", "shared_buffers": "32MB"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := postgres.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w := &world{host: fmt.Sprintf("127.0.0.1:%d", postgres.Port()), log: &lockedBuffer{}}
	w.exec(t, postgres.URL("postgres"),
		"alter role postgres password '"+servicePassword+"'",
		"create role alice login password '"+alicePassword+"'",
		"create role bob login password '"+bobPassword+"'",
		"create database shop owner alice",
		"create database lab owner bob",
		"create database empty",
		"revoke connect on database lab from public",
	)
	upstream, err := config.NewUpstream(w.url("postgres", servicePassword, "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if w.service, err = flowstate.NewService(upstream.Service.ConnString()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.service.Close)
	log := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(w.log), zap.DebugLevel))
	registry := prometheus.NewRegistry()
	w.engine = refresh.New(w.service, log, NewMetrics(registry, "test"))
	var line string
	w.token, line = newToken(t, "alice")
	tokens, err := LoadTokens(tokenFile(t, line))
	if err != nil {
		t.Fatal(err)
	}
	w.console, err = Start(Config{
		Address: "127.0.0.1:0", Metrics: registry, PrivateMetrics: true, Logger: log,
		Ready: func(context.Context) error { return nil },
		API: &APIConfig{
			Connect: func(ctx context.Context, role, password, database string) (*pgx.Conn, error) {
				return pgx.ConnectConfig(ctx, upstream.Session(role, password, database))
			},
			Home: "postgres", Service: w.service, Engine: w.engine, Tokens: tokens,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.console.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	w.flow(t, "alice", alicePassword, "shop")
	w.flow(t, "bob", bobPassword, "lab")
	return w
}

func (w *world) url(role, password, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(role, password), Host: w.host, Path: "/" + database}).String()
}

// exec runs statements of Postgres's.
func (w *world) exec(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, sql := range statements {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
	}
}

// run runs statements as a client of rwproxy's.
func (w *world) run(t *testing.T, role, password, database string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.url(role, password, database))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	s := &session{Session: pgsession.FromPgx(conn), conn: conn, role: role, database: database}
	for _, sql := range statements {
		statement, err := rewrite.Parse(sql, rewrite.Lexical{})
		switch {
		case err != nil:
		case statement == nil:
			_, err = s.Exec(t.Context(), sql)
		default:
			_, err = w.engine.Run(t.Context(), s, statement)
		}
		if err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
	}
}

// flow makes two flows, the second on the first, and refreshes the first.
func (w *world) flow(t *testing.T, role, password, database string) {
	t.Helper()
	w.run(t, role, password, database,
		"create schema data",
		"set search_path = data",
		"create table orders (day date, amount numeric)",
		"insert into orders values ('2024-05-01', 10), ('2024-05-02', 20)",
		`create streaming table daily flow replace where day >= date '2024-05-01' by name
			select day, sum(amount) as amount from orders group by day`,
		`create streaming table doubled flow replace where day >= date '2024-05-01' by name
			select day, 2 * amount as amount from daily`,
		"refresh streaming table daily where day = date '2024-05-02'",
	)
}

// reply is what a call got.
type reply struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

// as adds credentials to a call.
type as func(r *http.Request)

func basic(role, password string) as { return func(r *http.Request) { r.SetBasicAuth(role, password) } }

func bearer(token string) as {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}
func nobody(*http.Request) {}

func (w *world) call(t *testing.T, who as, method, path, body string) reply {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.console.Address()+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	who(r)
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := reply{status: response.StatusCode, header: response.Header, text: string(text)}
	if response.Header.Get("Content-Type") == "application/json" {
		if err := json.Unmarshal(text, &a.body); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	return a
}

// get makes a call that must succeed.
func (w *world) get(t *testing.T, who as, path string) reply {
	t.Helper()
	a := w.call(t, who, "GET", path, "")
	if a.status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", path, a.status, a.text)
	}
	return a
}

// refused makes a call that must fail.
func (w *world) refused(t *testing.T, who as, method, path, body string, status int, code string) reply {
	t.Helper()
	a := w.call(t, who, method, path, body)
	if a.status != status || a.body["error_code"] != code {
		t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, a.status, a.text, status, code)
	}
	return a
}

var (
	anyUUID    = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	anyTime    = regexp.MustCompile(`"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\.[0-9]{3}Z"`)
	anyMillis  = regexp.MustCompile(`\b1[0-9]{12}\b`)
	anyNumber  = regexp.MustCompile(`("(?:control_plane_seq_no|executor_time_ms)"):[0-9]+`)
	anyRandoms = []struct {
		pattern *regexp.Regexp
		to      string
	}{{anyUUID, "(id)"}, {anyTime, `"(time)"`}, {anyMillis, `"(ms)"`}, {anyNumber, `$1:"(n)"`}}
)

// plain replaces what differs from run to run.
func plain(text string) string {
	for _, r := range anyRandoms {
		text = r.pattern.ReplaceAllString(text, r.to)
	}
	return strings.TrimSpace(text)
}

// list returns the objects of a list in an answer.
func (a reply) list(t *testing.T, name string) []map[string]any {
	t.Helper()
	values, ok := a.body[name].([]any)
	if !ok {
		t.Fatalf("no list %s in %s", name, a.text)
	}
	objects := make([]map[string]any, len(values))
	for i, v := range values {
		objects[i] = v.(map[string]any)
	}
	return objects
}

func (a reply) string(name string) string {
	text, _ := a.body[name].(string)
	return text
}
