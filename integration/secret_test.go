package integration

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// The passwords of a server that are looked for in all that others can read.
const (
	servicePassword = "pw-of-the-service-1f3a"
	alicePassword   = "pw-of-alice-77c2"
	wrongPassword   = "pw-that-is-wrong-9b0e"
)

// watched is a Postgres with passwords, whose log has every statement, and a
// proxy in front of it that logs all it can.
type watched struct {
	*proxy
	admin  *session // past the proxy
	http   string   // host:port
	token  string   // of alice, for the API
	server logBuffer
}

func startWatched(t *testing.T) *watched {
	t.Helper()
	w := &watched{}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	logger := zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{MessageKey: "message"}), zapcore.AddSync(&w.server), zap.DebugLevel))
	postgres, err := embedded.Start(ctx, embedded.Config{
		DataDir:  filepath.Join(scratchDir, t.Name()),
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		Settings: map[string]string{"fsync": "off", "shared_buffers": "16MB", "log_statement": "all", "log_min_messages": "debug1", "log_connections": "on"},
		HBA:      []string{"host all all 127.0.0.1/32 scram-sha-256"},
		Logger:   logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopServer(postgres); err != nil {
			t.Error(err)
		}
	})
	w.admin = connect(t, postgres.URL("postgres"))
	// As an administrator does it: no statement has the password.
	for _, role := range []struct{ name, password string }{{"service superuser", servicePassword}, {"alice", alicePassword}} {
		w.admin.exec(`set log_statement = 'none'`, `create role `+role.name+` login password '`+role.password+`'`, `reset log_statement`)
	}
	passwords := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(passwords, []byte("*:*:*:service:"+servicePassword+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	var line, token bytes.Buffer
	makeToken := exec.CommandContext(t.Context(), path, "token", "alice")
	makeToken.Stdout, makeToken.Stderr = &line, &token
	if err := errors.Join(makeToken.Run(), os.WriteFile(tokens, line.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	w.token = strings.TrimSpace(token.String())
	if w.http, err = freeAddress(); err != nil {
		t.Fatal(err)
	}
	w.proxy = ownProxyBy(t, []string{"env", "PGPASSFILE=" + passwords}, fmt.Sprintf("postgres://service@127.0.0.1:%d/postgres", postgres.Port()),
		"--log-level", "debug", "--http", w.http, "--api-tokens", tokens)
	return w
}

// url returns the address of a role at the proxy.
func (w *watched) url(role, password string) string {
	return fmt.Sprintf("postgres://%s:%s@%s/postgres", role, password, w.addr)
}

// call returns the status and what the console answers to a request with an
// Authorization header.
func (w *watched) call(t *testing.T, method, path, authorization, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+w.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(answer)
}

func basic(role, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(role+":"+password))
}

// commandLines returns those of all processes, without this one's.
func commandLines(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		line, err := os.ReadFile(file) // the process may be gone
		if err == nil {
			all.WriteString(strings.ReplaceAll(string(line), "\x00", " ") + "\n")
		}
	}
	return all.String()
}

// Nor is a token, which is a password too.
func TestNoPasswordIsWhereOthersCanReadIt(t *testing.T) {
	t.Parallel()
	w := startWatched(t)
	for _, role := range []string{"alice", "service"} {
		_, err := pgconn.Connect(t.Context(), w.url(role, wrongPassword))
		if code := sqlState(err); code != "28P01" {
			t.Errorf("%s with a wrong password: %v", role, err)
		}
	}
	w.admin.exec(`grant create on schema public to alice`)
	alice := connect(t, w.url("alice", alicePassword))
	alice.exec(createOrders, insertOrders, createTotals, `insert into orders values (4, current_date, 1)`)
	var activity strings.Builder
	note := func() {
		activity.WriteString(strings.Join(w.admin.rows(`select a::text from pg_stat_activity a`), "\n"))
		activity.WriteString(commandLines(t))
	}
	alice.exec(`create function slow() returns boolean language plpgsql as $$ begin perform pg_sleep(0.2); return true; end $$`)
	for _, statement := range []string{`refresh streaming table totals where public.slow()`, `refresh streaming table totals where 1 / (day - current_date) = 7`} {
		id := alice.async(statement + ` async`)
		eventually(t, "it ends", func() bool {
			note()
			return alice.value(`select ended_at is not null from rwproxy.refreshes where refresh_id = '`+id+`'`) == "t"
		})
	}
	var answers strings.Builder
	for _, credentials := range []struct {
		header string
		status int
	}{
		{basic("alice", alicePassword), 200},
		{"Bearer " + w.token, 200},
		{basic("alice", wrongPassword), 401},
		{"Bearer " + wrongPassword, 401},
	} {
		for _, path := range []string{"", "/postgres", "/postgres/updates", "/postgres/events"} {
			status, answer := w.call(t, http.MethodGet, "/api/2.0/pipelines"+path, credentials.header, "")
			if answers.WriteString(answer); status != credentials.status {
				t.Errorf("%s with %s: %d, %s", path, credentials.header, status, answer)
			}
		}
		_, answer := w.call(t, http.MethodPost, "/api/2.0/pipelines/postgres/updates", credentials.header, `{}`)
		answers.WriteString(answer)
		note()
	}
	_, metrics := w.call(t, http.MethodGet, "/metrics", "", "")
	runner := w.admin.value(`select 'rwproxy_run_' || oid from pg_roles where rolname = 'alice'`)
	w.admin.want(`select rolcanlogin, rolpassword like 'SCRAM-SHA-256$%' from pg_authid where rolname = '`+runner+`'`, "t|t")
	note()
	places := map[string]string{
		"the proxy's log":             w.log.String(),
		"the server's log":            w.server.String(),
		"the metrics":                 metrics,
		"answers of the API":          answers.String(),
		"pg_stat_activity, processes": activity.String(),
		"the state": strings.Join(w.admin.rows(`select r::text from rwproxy.refresh r union all select e::text from rwproxy.event e
			union all select t::text from rwproxy.streaming_table t`), "\n"),
	}
	for place, text := range places {
		if text == "" {
			t.Errorf("nothing is in %s", place)
		}
		for _, secret := range []string{
			servicePassword, alicePassword, wrongPassword, w.token, base64.StdEncoding.EncodeToString([]byte("alice:" + alicePassword)),
		} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s has a password: %q", place, text[max(0, at-200):at+len(secret)])
			}
		}
	}
}
