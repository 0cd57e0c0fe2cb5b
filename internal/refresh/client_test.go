package refresh_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap/zaptest"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/refresh"
	"github.com/rwproxy/rwproxy/rewrite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// database is a fresh database with an engine in front of it.
type database struct {
	t       *testing.T
	url     string
	service *flowstate.Service
	engine  *refresh.Engine
	counts  *counts
}

func newDatabase(t *testing.T) *database {
	t.Helper()
	url := pgtest.Database(t)
	service, err := flowstate.NewService(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	c := &counts{}
	return &database{t: t, url: url, service: service, engine: refresh.New(service, zaptest.NewLogger(t), c), counts: c}
}

// counts remembers the refreshes that were counted.
type counts struct {
	mu   sync.Mutex
	list []string
}

func (c *counts) Refreshed(e flowstate.Ended) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, e.Technique+" "+e.Reason+" "+e.State)
}

// session is a client's session, without a proxy between.
type session struct {
	pgsession.Session
	t       *testing.T
	engine  *refresh.Engine
	conn    *pgx.Conn
	joined  bool
	notices []*pgdiag.Diagnostic
}

func (d *database) connect() *session {
	d.t.Helper()
	conn, err := pgx.Connect(d.t.Context(), d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close(context.Background()) })
	return &session{Session: pgsession.FromPgx(conn), t: d.t, engine: d.engine, conn: conn}
}

func (s *session) Joined() bool                { return s.joined }
func (s *session) Notice(d *pgdiag.Diagnostic) { s.notices = append(s.notices, d) }
func (s *session) User() string                { return s.conn.Config().User }
func (s *session) Database() string            { return s.conn.Config().Database }

// run runs one statement, ours or Postgres's.
func (s *session) run(sql string) error {
	s.t.Helper()
	statement, err := rewrite.Parse(sql, rewrite.Lexical{})
	if err != nil {
		return err
	}
	if statement == nil {
		_, err := s.Exec(s.t.Context(), sql)
		return err
	}
	result, err := s.engine.Run(s.t.Context(), s, statement)
	if err == nil && result.Forward {
		_, err = s.Exec(s.t.Context(), statement.Shadow())
	}
	return err
}

// must runs statements that have to succeed.
func (s *session) must(statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
		if err := s.run(sql); err != nil {
			s.t.Fatalf("%s\n%v", sql, err)
		}
	}
}

// fails runs a statement that has to fail and returns the error.
func (s *session) fails(code, sql string) *pgdiag.Diagnostic {
	s.t.Helper()
	err := s.run(sql)
	if got := pgdiag.Code(err); got != code {
		s.t.Fatalf("%s\ngot error %v, want SQLSTATE %s", sql, err, code)
	}
	d, _ := err.(*pgdiag.Diagnostic) //nolint:errorlint // the engine's errors reach the wire unwrapped
	return d
}

// rows returns a query's rows, columns separated by spaces.
func (s *session) rows(sql string) []string {
	s.t.Helper()
	result, err := s.Query(s.t.Context(), sql)
	if err != nil {
		s.t.Fatalf("%s\n%v", sql, err)
	}
	var lines []string
	for _, r := range result {
		values := make([]string, len(r))
		for i, v := range r {
			if values[i] = v.Text; v.Null {
				values[i] = "null"
			}
		}
		lines = append(lines, strings.Join(values, " "))
	}
	return lines
}

// shown returns the rows of a statement of ours, columns separated by bars.
func (s *session) shown(sql string) []string {
	s.t.Helper()
	statement, err := rewrite.Parse(sql, rewrite.Lexical{})
	if err != nil {
		s.t.Fatalf("%s\n%v", sql, err)
	}
	result, err := s.engine.Run(s.t.Context(), s, statement)
	if err != nil {
		s.t.Fatalf("%s\n%v", sql, err)
	}
	var lines []string
	for _, r := range result.Rows {
		values := make([]string, len(r))
		for i, v := range r {
			if values[i] = v.Text; v.Null {
				values[i] = "null"
			}
		}
		lines = append(lines, strings.Join(values, "|"))
	}
	return lines
}
