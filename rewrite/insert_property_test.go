package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/rwproxy/rwproxy/rewrite"
)

// insertPieces are what INSERTs are made of, ours and PostgreSQL's.
var insertPieces = []string{
	"insert ", "into ", "overwrite ", "table ", "t ", "t ", "replace ", "replace ", "where ", "using ", "on ", "by ", "name ", "partition ", "as ", "x ",
	"(a) ", "(a, b) ", "(", ") ", "a ", "= 1 ", "1 ", "select ", "select 1 ", "values (1) ", "with ", "with x as (select 1 as a) ", "from t ",
	", ", "returning a ", "on conflict do nothing ", "default values ", "overriding system value ", "schema evolution ", "true ", "union ",
	"'replace where' ", "/* x */ ", "`a` ", "\"replace\" ", ";",
}

func inserts() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		start := rapid.SampledFrom([]string{"insert into t ", "insert into ", "insert ", "with x as (select 1 as a) insert into t ", "with "}).Draw(t, "start")
		return start + strings.Join(rapid.SliceOfN(rapid.SampledFrom(insertPieces), 0, 8).Draw(t, "rest"), "")
	})
}

// What Postgres can parse is none of ours; it alone is asked.
func TestNoInsertThatPostgresReadsIsOurs(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, "create table t (a int, b int); create table replace (a int); create table x (a int)")
	ours := 0
	rapid.Check(t, func(t *rapid.T) {
		sql := inserts().Draw(t, "sql")
		statement, err := rewrite.Parse(sql, rewrite.Lexical{})
		if statement == nil && err == nil {
			return
		}
		ours++
		if !rewrite.MayBeOurs([]byte(sql)) {
			t.Fatalf("%q is missed by MayBeOurs", sql)
		}
		_, err = c.PgConn().Prepare(t.Context(), "", sql, nil)
		var e *pgconn.PgError
		if !errors.As(err, &e) || e.Code != "42601" {
			t.Fatalf("%q is taken for ours, Postgres says %v", sql, err)
		}
	})
	if ours == 0 {
		t.Error("no statement was ours")
	}
}
