package rewrite_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

func TestParametersAreReplacedWhereTheyAreParameters(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"select 1":                           "select 1",
		"select $1, $2+$1":                   "select (<1>), (<2>)+(<1>)",
		"select '$1', \"$1\", $$ $1 $$, a$1": "select '$1', \"$1\", $$ $1 $$, a$1",
		"select /* $1 */ $10[1] -- $2":       "select /* $1 */ (<10>)[1] -- $2",
		"select $1::int":                     "select (<1>)::int",
		"where ä=$3and b":                    "where ä=(<3>)and b",
	} {
		literal := func(n int) string { return "<" + strconv.Itoa(n) + ">" }
		got, err := rewrite.SubstituteParameters(sql, rewrite.Lexical{}, literal)
		if err != nil || got.SQL != want {
			t.Errorf("%s\ngot  %s %v\nwant %s", sql, got.SQL, err, want)
		}
		if found := rewrite.FirstParameter(sql, rewrite.Lexical{}) >= 0; found != (sql != want) {
			t.Errorf("%s: found a parameter: %v", sql, found)
		}
	}
}

func TestAPositionBehindAReplacedParameterLeadsBack(t *testing.T) {
	t.Parallel()
	const sql = "select 'ä', $1, nonsense"
	got, err := rewrite.SubstituteParameters(sql, rewrite.Lexical{}, func(int) string { return "'a long value'::text" })
	if err != nil {
		t.Fatal(err)
	}
	position := rewrite.CharPosition(got.SQL, strings.Index(got.SQL, "nonsense"))
	if origin := got.Origin(position); sql[max(origin, 0):] != "nonsense" {
		t.Errorf("got %d", origin)
	}
}

func TestAParameterThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"select ä, $0", "select ä, $99999999999999999999"} {
		_, err := rewrite.SubstituteParameters(sql, rewrite.Lexical{}, func(int) string { return "null" })
		d, ok := err.(*pgdiag.Diagnostic) //nolint:errorlint // it wraps nothing
		if !ok || d.Code != "42P02" || d.Position != 11 || !strings.HasPrefix(d.Message, "there is no parameter $") {
			t.Errorf("%s: got %v", sql, err)
		}
	}
	if _, err := rewrite.SubstituteParameters("select 'x", rewrite.Lexical{}, nil); pgdiag.Code(err) != "42601" {
		t.Errorf("got %v", err)
	}
}

func TestDeclaredParametersAreCast(t *testing.T) {
	t.Parallel()
	got, err := rewrite.DeclareParameters("a = $1 and b = $2 and c = $3", rewrite.Lexical{}, []string{"", "pg_catalog.date"})
	if want := "a = $1 and b = ($2::pg_catalog.date) and c = $3"; err != nil || got.SQL != want {
		t.Errorf("got %s, %v, want %s", got.SQL, err, want)
	}
}
