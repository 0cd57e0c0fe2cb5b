package rewrite_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// connect returns a session on a database of the test's own, which has the
// functions of rwproxy_compat behind everything else on its search_path.
func connect(t testing.TB) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	execute(t, c, "create schema rwproxy_compat; set search_path = pg_catalog")
	execute(t, c, rewrite.CompatSQL())
	execute(t, c, "set search_path = public, rwproxy_compat; set time zone 'America/New_York'")
	return c
}

func execute(t testing.TB, c *pgx.Conn, sql string) {
	t.Helper()
	if _, err := c.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
}

// rows returns the result of a query as text, NULL as "NULL".
func rows(t testing.TB, c *pgx.Conn, sql string) [][]string {
	t.Helper()
	results, err := c.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	var rows [][]string
	for _, r := range results[len(results)-1].Rows {
		row := make([]string, len(r))
		for i, value := range r {
			if row[i] = string(value); value == nil {
				row[i] = "NULL"
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// catalog asks the test's Postgres, as the refresh engine asks a session's.
type catalog struct {
	t testing.TB
	c *pgx.Conn
}

func (c catalog) Operators(names []string) (map[string]bool, error) {
	own := map[string]bool{}
	for _, name := range names {
		var visible bool
		if err := c.c.QueryRow(c.t.Context(),
			"select exists (select from pg_operator where oprname = $1 and pg_operator_is_visible(oid))", name).Scan(&visible); err != nil {
			return nil, err
		}
		own[name] = visible
	}
	return own, nil
}

func (c catalog) Functions(names []string) (map[string]bool, error) {
	own := map[string]bool{}
	for _, name := range names {
		var found bool
		if err := c.c.QueryRow(c.t.Context(), `select exists (select from pg_proc p join pg_namespace n on n.oid = p.pronamespace
			where proname = $1 and nspname not in ('pg_catalog', 'rwproxy_compat') and nspname = any (current_schemas(true)))`, name).Scan(&found); err != nil {
			return nil, err
		}
		own[name] = found
	}
	return own, nil
}

func (c catalog) Aggregates(names []string) (map[string]bool, error) {
	found := map[string]bool{}
	for _, name := range names {
		var aggregate bool
		if err := c.c.QueryRow(c.t.Context(),
			"select exists (select from pg_proc where prokind = 'a' and proname = regexp_replace($1, '^.*\\.', ''))", name).Scan(&aggregate); err != nil {
			return nil, err
		}
		found[name] = aggregate
	}
	return found, nil
}

func (c catalog) Columns(query string) ([]rewrite.Column, error) {
	description, err := c.c.Prepare(c.t.Context(), "", query)
	if err != nil {
		return nil, err
	}
	var columns []rewrite.Column
	for _, field := range description.Fields {
		columns = append(columns, rewrite.Column{Name: field.Name, Scaled: field.DataTypeOID == pgtype.NumericOID && field.TypeModifier >= 0})
	}
	return columns, nil
}

// diagnosing is a catalog that reports errors as a session does.
type diagnosing struct{ catalog }

func (c diagnosing) Columns(query string) ([]rewrite.Column, error) {
	columns, err := c.catalog.Columns(query)
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return nil, pgdiag.New(e.Code, e.Message).At(int(e.Position))
	}
	return columns, err
}

// diagnosticOf returns an error of Postgres as a session reports it.
func diagnosticOf(t testing.TB, err error) *pgdiag.Diagnostic {
	t.Helper()
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	return pgdiag.New(e.Code, e.Message).At(int(e.Position))
}

// postgresPosition returns the position of an error of Postgres.
func postgresPosition(t testing.TB, err error, code ...string) int {
	t.Helper()
	var e *pgconn.PgError
	if !errors.As(err, &e) || len(code) > 0 && e.Code != code[0] {
		t.Fatalf("want SQLSTATE %v, got %v", code, err)
	}
	return int(e.Position)
}
