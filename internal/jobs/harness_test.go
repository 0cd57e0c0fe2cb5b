package jobs

import (
	"context"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/refresh"
	"github.com/rwproxy/rwproxy/rewrite"
)

// An instance serves every database of its server, so no two of these tests
// may run at once: none is parallel.

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// patience is how long a condition may take to become true on a busy machine.
const patience = 60 * time.Second

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("it never came true that %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// instance is one instance, as a process would hold it.
type instance struct {
	*Jobs
	t      *testing.T
	logged *observer.ObservedLogs
}

// uncounted counts no refresh.
type uncounted struct{}

func (uncounted) Refreshed(flowstate.Ended) {}

// newInstance starts an instance on the server of a URL, stopped when the test
// ends.
func newInstance(t *testing.T, upstream string, maxRefreshes int, change ...func(*Jobs)) *instance {
	t.Helper()
	service, err := flowstate.NewService(upstream)
	if err != nil {
		t.Fatal(err)
	}
	core, logged := observer.New(zapcore.DebugLevel)
	log := zaptest.NewLogger(t, zaptest.Level(zapcore.WarnLevel), zaptest.WrapOptions(zap.WrapCore(func(shown zapcore.Core) zapcore.Core {
		return zapcore.NewTee(shown, core)
	})))
	j := New(Config{Service: service, Engine: refresh.New(service, log, uncounted{}), Logger: log, MaxRefreshes: maxRefreshes})
	for _, c := range change {
		c(j)
	}
	service.OnInstall(j.Serve)
	i := &instance{j, t, logged}
	t.Cleanup(i.stop)
	j.Start()
	return i
}

// stop stops the instance as a drained one.
func (i *instance) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	i.Stop(ctx)
	i.Service.Close()
}

// listens waits until the instance serves a database.
func (i *instance) listens(database string) {
	i.t.Helper()
	eventually(i.t, "database "+database+" is served", func() bool { return i.serves(database) })
}

func (i *instance) serves(database string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, served := i.databases[database]
	return served
}

// session is a client's session on Postgres, whose statements an instance's
// engine runs.
type session struct {
	client
	t    *testing.T
	conn *pgx.Conn
}

func connect(t *testing.T, url string) *session {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	config := conn.Config()
	return &session{client{pgsession.FromPgx(conn), config.User, config.Database, zap.NewNop()}, t, conn}
}

// must runs statements of Postgres's.
func (s *session) must(statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
		if _, err := s.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatalf("%s\n%v", sql, err)
		}
	}
}

// through runs statements of rwproxy's by an instance, and returns the rows of
// the last.
func (s *session) through(i *instance, statements ...string) (rows []pgsession.Row) {
	s.t.Helper()
	for _, sql := range statements {
		statement, err := rewrite.Parse(sql, rewrite.Lexical{})
		if err != nil {
			s.t.Fatalf("%s\n%v", sql, err)
		}
		result, err := i.Engine.Run(s.t.Context(), s, statement)
		if err != nil {
			s.t.Fatalf("%s\n%v", sql, err)
		}
		rows = result.Rows
	}
	return rows
}

// value returns the values of a query's first row, separated by bars.
func (s *session) value(sql string) string {
	s.t.Helper()
	rows, err := s.Query(s.t.Context(), sql)
	if err != nil {
		s.t.Fatalf("%s\n%v", sql, err)
	}
	if len(rows) == 0 {
		return "no row"
	}
	values := make([]string, len(rows[0]))
	for i, v := range rows[0] {
		if values[i] = v.Text; v.Null {
			values[i] = "null"
		}
	}
	return strings.Join(values, "|")
}

// until waits until a query has a value.
func (s *session) until(sql, want string) {
	s.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		got := s.value(sql)
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("%s\nis %s, and never became %s", sql, got, want)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// in returns the URL of another database of a server.
func in(t *testing.T, server, database string) string {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + database
	return u.String()
}

// ours lists the service's sessions in a database.
func ours(database string) string {
	return "from pg_stat_activity where application_name = 'rwproxy' and datname = '" + database + "'"
}

// listening counts the sessions that listen in a database.
func listening(database string) string {
	return "select count(*) " + ours(database) + " and state = 'idle' and query ~ 'postmaster|rwproxy.request'"
}
