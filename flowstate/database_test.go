package flowstate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// session is one connection of a test.
type session struct {
	pgsession.Session
	t    *testing.T
	conn *pgx.Conn
}

// connect opens a session as a role; "" is the superuser.
func connect(t *testing.T, url, role string) *session {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		config.User = role
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return &session{pgsession.FromPgx(conn), t, conn}
}

// installed returns the URL of a fresh database with rwproxy's schemas.
func installed(t *testing.T) string {
	t.Helper()
	url := pgtest.Database(t)
	if err := flowstate.Install(t.Context(), connect(t, url, "").conn); err != nil {
		t.Fatal(err)
	}
	return url
}

var roles atomic.Int64

// newRole creates a login role, dropped with what it owns at the end.
func newRole(t *testing.T, url, prefix string) string {
	t.Helper()
	name := fmt.Sprintf("%s_%d", prefix, roles.Add(1))
	connect(t, url, "").must("create role " + name + " login")
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), "drop owned by "+name+" cascade; drop role "+name); err != nil {
			t.Error(err)
		}
	})
	return name
}

func (s *session) must(statements ...string) {
	s.t.Helper()
	for _, sql := range statements {
		if _, err := s.Exec(s.t.Context(), sql); err != nil {
			s.t.Fatalf("%s\n%v", sql, err)
		}
	}
}

// value returns the first value of a query, "null" for NULL.
func (s *session) value(sql string, args ...any) string {
	s.t.Helper()
	rows := s.rows(sql, args...)
	if len(rows) == 0 {
		return "no row"
	}
	return rows[0]
}

// rows returns a query's rows, values separated by |.
func (s *session) rows(sql string, args ...any) []string {
	s.t.Helper()
	result, err := s.Query(s.t.Context(), sql, args...)
	if err != nil {
		s.t.Fatalf("%s\n%v", sql, err)
	}
	lines := make([]string, len(result))
	for i, r := range result {
		values := make([]string, len(r))
		for j, v := range r {
			if values[j] = v.Text; v.Null {
				values[j] = "null"
			}
		}
		lines[i] = strings.Join(values, "|")
	}
	return lines
}

// untilNone waits for a query to return no row. It waits for less than an idle
// service connection is kept.
func (s *session) untilNone(sql string) {
	s.t.Helper()
	deadline := time.Now().Add(4 * time.Second)
	for len(s.rows(sql)) > 0 {
		if time.Now().After(deadline) {
			s.t.Fatalf("still rows: %s", sql)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// refused checks that err is a refusal with this SQLSTATE and message.
func refused(t *testing.T, err error, code, message string) {
	t.Helper()
	var d *pgdiag.Diagnostic
	if !errors.As(err, &d) || d.Code != code || !strings.Contains(d.Message, message) {
		t.Fatalf("got error %v, want %s: %s", err, code, message)
	}
	if d.Where != "" {
		t.Errorf("the error shows where in rwproxy it was raised: %s", d.Where)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var views atomic.Int64

// newView creates the view of a flow and returns its SQL name.
func (s *session) newView(query string) string {
	s.t.Helper()
	view := fmt.Sprintf("rwproxy_flows.view_%d", views.Add(1))
	s.must("create view " + view + " as " + query)
	return view
}

// flow is a flow of table orders into daily, whose view it creates.
func (s *session) flow(name string) *flowstate.Flow {
	s.t.Helper()
	return &flowstate.Flow{
		Name:      name,
		View:      s.newView("select day, sum(amount) as amount from orders group by day"),
		Predicate: "day >= current_date - 3",
		Condition: "day >= current_date - 3",
		Query:     "SELECT day, sum(amount) AS amount FROM orders GROUP BY ALL",
	}
}

var settings = map[string]string{"TimeZone": "UTC", "search_path": "public, rwproxy_compat"}

// dailyTable creates tables orders and daily, and makes daily a streaming table
// with a flow. It returns daily's OID.
func (s *session) dailyTable() uint32 {
	s.t.Helper()
	s.must("create table orders (day date, amount int)", "create table daily (day date, amount bigint)")
	ok(s.t, flowstate.Create(s.t.Context(), s, flowstate.StreamingTable{
		Target:     rewrite.Name{Schema: "public", Table: "daily"},
		Statement:  "CREATE STREAMING TABLE daily FLOW …",
		Properties: map[string]string{"quality": "gold"},
		Settings:   settings,
		Flow:       s.flow("daily"),
	}))
	return s.lookup("daily").OID
}

func (s *session) lookup(table string) *flowstate.Target {
	s.t.Helper()
	target, err := flowstate.Lookup(s.t.Context(), s, rewrite.Name{Table: table})
	if err != nil {
		s.t.Fatal(err)
	}
	return target
}

// lock takes the refresh lock of a table for the session.
func (s *session) lock(oid uint32) {
	s.t.Helper()
	class, object := flowstate.LockKeys(oid)
	if _, err := s.Query(s.t.Context(), "select pg_advisory_lock($1::int, $2::int)", class, object); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) unlock(oid uint32) {
	s.t.Helper()
	class, object := flowstate.LockKeys(oid)
	if got := s.value("select pg_advisory_unlock($1::int, $2::int)", class, object); got != "t" {
		s.t.Fatal("the session did not hold the lock")
	}
}

func (s *session) start(oid uint32, kind flowstate.Kind) string {
	s.t.Helper()
	id, err := flowstate.Start(s.t.Context(), s, flowstate.Refresh{Target: oid, Kind: kind, Cause: flowstate.CauseStatement})
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *session) plan(id, window string) {
	s.t.Helper()
	ok(s.t, flowstate.Plan(s.t.Context(), s, id, flowstate.PlanRecord{
		Technique: flowstate.TechniqueFullRecompute, Reason: "SOURCE_NOT_TRACKED", Window: window, Applied: window,
	}))
}

// refresh records a whole refresh and returns its id.
func (s *session) refresh(oid uint32, kind flowstate.Kind, window string) string {
	s.t.Helper()
	s.lock(oid)
	defer s.unlock(oid)
	id := s.start(oid, kind)
	s.plan(id, window)
	ok(s.t, flowstate.Finish(s.t.Context(), s, id, flowstate.Outcome{RowsDeleted: 2, RowsInserted: 3}))
	return id
}
