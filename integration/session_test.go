package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
)

// protocol is how a session sends statements.
type protocol string

const (
	simple   protocol = "simple protocol"   // Query
	extended protocol = "extended protocol" // Parse, Bind, Describe, Execute, Sync
)

// session is one connection. Its methods fail the test by themselves.
type session struct {
	t        testing.TB
	conn     *pgconn.PgConn
	protocol protocol
	notices  []*pgconn.Notice // all that arrived, oldest first
}

// connect opens a session that speaks the simple protocol. It is closed with
// the test.
func connect(t testing.TB, url string) *session {
	t.Helper()
	s := &session{t: t, protocol: simple}
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { s.notices = append(s.notices, n) }
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.conn, err = pgconn.ConnectConfig(ctx, config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// eachProtocol runs a test once a protocol, each with a fresh database.
func eachProtocol(t *testing.T, test func(t *testing.T, d database, s *session)) {
	t.Helper()
	t.Parallel()
	for _, p := range []protocol{simple, extended} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			d := newDatabase(t)
			s := connect(t, d.url)
			s.protocol = p
			test(t, d, s)
		})
	}
}

func (s *session) close() {
	// The backend may be gone already: that is some tests' purpose.
	_ = s.conn.Close(context.Background())
}

// run sends one statement (or, in the simple protocol, several) and returns
// the last result.
func (s *session) run(sql string) (*pgconn.Result, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s.protocol == extended {
		result := s.conn.ExecParams(ctx, sql, nil, nil, nil, nil).Read()
		return result, result.Err
	}
	results, err := s.conn.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(results) == 0 {
		return &pgconn.Result{}, nil
	}
	return results[len(results)-1], nil
}

// exec runs statements that must succeed, one after the other, and returns the
// command tag of the last.
func (s *session) exec(statements ...string) string {
	s.t.Helper()
	tag := ""
	for _, sql := range statements {
		result, err := s.run(sql)
		if err != nil {
			s.t.Fatalf("%s\n%s", sql, describe(err))
		}
		tag = result.CommandTag.String()
	}
	return tag
}

// fails runs a statement that must fail with an SQLSTATE and returns the error.
func (s *session) fails(code, sql string) *pgconn.PgError {
	s.t.Helper()
	_, err := s.run(sql)
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		s.t.Fatalf("%s\nsucceeded, want SQLSTATE %s", sql, code)
	case !errors.As(err, &pgErr) || pgErr.Code != code:
		s.t.Fatalf("%s\nwant SQLSTATE %s, got\n%s", sql, code, describe(err))
	}
	return pgErr
}

// rows runs a query and returns its rows: values in text format with | between
// them, NULL as psql shows it with \pset null NULL.
func (s *session) rows(sql string) []string {
	s.t.Helper()
	result, err := s.run(sql)
	if err != nil {
		s.t.Fatalf("%s\n%s", sql, describe(err))
	}
	return textRows(result)
}

// want runs a query and compares its rows.
func (s *session) want(sql string, rows ...string) {
	s.t.Helper()
	if diff := cmp.Diff(strings.Join(rows, "\n"), strings.Join(s.rows(sql), "\n")); diff != "" {
		s.t.Errorf("%s\n(-want +got)\n%s", sql, diff)
	}
}

// value runs a query that returns one value.
func (s *session) value(sql string) string {
	s.t.Helper()
	rows := s.rows(sql)
	if len(rows) != 1 {
		s.t.Fatalf("%s\nwant one row, got %q", sql, rows)
	}
	return rows[0]
}

// noticed reports whether a notice with this text in its message has arrived,
// and forgets all that have.
func (s *session) noticed(text string) bool {
	found := false
	for _, n := range s.notices {
		found = found || strings.Contains(n.Message, text)
	}
	s.notices = nil
	return found
}

// pid is the process id of the session's backend.
func (s *session) pid() uint32 { return s.conn.PID() }

func textRows(result *pgconn.Result) []string {
	rows := make([]string, 0, len(result.Rows))
	for _, row := range result.Rows {
		values := make([]string, len(row))
		for i, v := range row {
			if values[i] = string(v); v == nil {
				values[i] = "NULL"
			}
		}
		rows = append(rows, strings.Join(values, "|"))
	}
	return rows
}

// describe shows every field of a Postgres error that a reader needs.
func describe(err error) string {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := e.Severity + " " + e.Code + ": " + e.Message
	for _, field := range []struct{ name, value string }{{"DETAIL", e.Detail}, {"HINT", e.Hint}, {"WHERE", e.Where}} {
		if field.value != "" {
			text += "\n" + field.name + ": " + field.value
		}
	}
	return text
}

// sqlState returns the SQLSTATE of an error, "" if it is not Postgres's.
func sqlState(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}
