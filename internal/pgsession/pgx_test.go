package pgsession_test

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func connect(t *testing.T) (pgsession.Session, *pgx.Conn) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), pgtest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return pgsession.FromPgx(conn), conn
}

func TestArgumentsArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	s, _ := connect(t)
	rows, err := s.Query(t.Context(), `
		select $1::text, $2::text, $3::bool, $4::bigint, $5::bigint, $6::oid, $7::int, $8::text[],
		       cardinality($8::text[]), $9::text[]`,
		nil, "", true, int64(math.MinInt64), 42, uint32(math.MaxUint32), int32(-1),
		[]string{`a"b`, `c\d`, "e,{f}", "", "NULL", " g "}, []string(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := []pgsession.Row{{
		{Null: true},
		{Text: ""},
		{Text: "t"},
		{Text: "-9223372036854775808"},
		{Text: "42"},
		{Text: "4294967295"},
		{Text: "-1"},
		{Text: `{"a\"b","c\\d","e,{f}","","NULL"," g "}`},
		{Text: "6"},
		{Text: "{}"},
	}}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Query(t.Context(), "select $1", 1.5); err == nil {
		t.Error("an argument of a type that Session does not have is accepted")
	}
}

func TestExecCountsRows(t *testing.T) {
	t.Parallel()
	s, _ := connect(t)
	for _, step := range []struct {
		sql  string
		want int64
	}{
		{"create table numbers (n int)", 0},
		{"insert into numbers select generate_series(1, 7)", 7},
		{"delete from numbers where n > 3", 4},
		{"begin", 0},
	} {
		got, err := s.Exec(t.Context(), step.sql)
		if err != nil || got != step.want {
			t.Errorf("%s: %d, %v, want %d", step.sql, got, err, step.want)
		}
	}
	if _, err := s.Exec(t.Context(), "select 1; select 2"); pgdiag.Code(err) != "42601" {
		t.Errorf("two statements: %v, want 42601", err)
	}
}

func TestDescribeSaysWhatAStatementTakesAndReturns(t *testing.T) {
	t.Parallel()
	s, _ := connect(t)
	got, err := s.Describe(t.Context(), "select $1::int + 1 as sum, 'x'::varchar(10) as name")
	if err != nil {
		t.Fatal(err)
	}
	want := pgsession.Description{
		Parameters: []uint32{23},
		Columns:    []pgsession.Column{{Name: "sum", TypeOID: 23, TypeModifier: -1}, {Name: "name", TypeOID: 1043, TypeModifier: 14}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	got, err = s.Describe(t.Context(), "create table never ()")
	if err != nil || got.Columns != nil {
		t.Errorf("got %+v, %v for a statement without rows", got, err)
	}
	rows, err := s.Query(t.Context(), "select to_regclass('never')")
	if err != nil || !rows[0][0].Null {
		t.Error("describing ran the statement")
	}
	if _, err := s.Describe(t.Context(), "select missing"); pgdiag.Code(err) != "42703" {
		t.Errorf("got %v, want 42703", err)
	}
}

func TestErrorsKeepEveryField(t *testing.T) {
	t.Parallel()
	s, conn := connect(t)
	_, err := s.Query(t.Context(), "select  missing from pg_class")
	var d *pgdiag.Diagnostic
	if !errors.As(err, &d) || d.Code != "42703" || d.Position != 9 || d.Severity != "ERROR" {
		t.Errorf("got %+v", d)
	}
	_, err = s.Exec(t.Context(), `do $$ begin raise exception using message = 'm', detail = 'd', hint = 'h', errcode = 'P9999',
		schema = 's', table = 't', column = 'c', datatype = 'dt', constraint = 'k'; end $$`)
	if !errors.As(err, &d) {
		t.Fatalf("got %v", err)
	}
	got := []string{d.Message, d.Detail, d.Hint, d.Code, d.SchemaName, d.TableName, d.ColumnName, d.DataTypeName, d.ConstraintName}
	if diff := cmp.Diff([]string{"m", "d", "h", "P9999", "s", "t", "c", "dt", "k"}, got); diff != "" {
		t.Error(diff)
	}
	if r := d.ErrorResponse(); d.Where == "" || r.File == "" || r.Line == 0 || r.Routine == "" {
		t.Errorf("fields are lost: %+v", r)
	}
	_, err = s.Exec(t.Context(), `do $$ begin execute 'select  missing'; end $$`)
	if !errors.As(err, &d) || d.ErrorResponse().InternalPosition != 9 || d.ErrorResponse().InternalQuery != "select  missing" {
		t.Errorf("got %+v", d)
	}

	conn.Close(t.Context())
	if _, err := s.Query(t.Context(), "select 1"); err == nil || errors.As(err, &d) && pgdiag.Code(err) != "" {
		t.Errorf("got %v of a closed connection, want an error that is not Postgres's", err)
	}
}
