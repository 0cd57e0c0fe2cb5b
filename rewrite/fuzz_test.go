package rewrite_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// nothing is a catalog without aggregates, in which * is two columns.
type nothing struct{}

func (nothing) Operators([]string) (map[string]bool, error) { return nil, nil }

func (nothing) Aggregates([]string) (map[string]bool, error) { return nil, nil }
func (nothing) Functions([]string) (map[string]bool, error)  { return nil, nil }
func (nothing) Columns(string) ([]rewrite.Column, error) {
	return []rewrite.Column{{Name: "a"}, {Name: "b"}}, nil
}

func FuzzTranslatePredicate(f *testing.F) {
	for _, file := range archive(f, "predicate.txtar")[1:] {
		input, _, _ := strings.Cut(string(file.Data), "\n=>\n")
		f.Add(input, "SELECT f.day AS date, * FROM facts f", false)
		f.Add(input, "", true)
	}
	for _, predicate := range []string{
		"!", "! !", `date 'a' '\'`, `x::pg_catalog."a".` + "`b`", `localtimestamp()'\'`, "current_user()()",
		"INTERVAL 7 DAYS '7'", "x % . current_date()",
	} {
		f.Add(predicate, "", true)
		f.Add(predicate, "", false)
	}
	f.Fuzz(func(t *testing.T, predicate, query string, backslash bool) {
		for _, dialect := range []rewrite.Dialect{rewrite.Postgres, rewrite.Databricks} {
			fuzzPredicate(t, predicate, query, rewrite.Lexical{BackslashEscapes: backslash, Dialect: dialect})
		}
	})
}

func fuzzPredicate(t *testing.T, predicate, query string, lexical rewrite.Lexical) {
	t.Helper()
	context := rewrite.PredicateContext{Target: rewrite.Name{Schema: "public", Table: "t"}, Lexical: lexical}
	if query != "" {
		context.Query = &rewrite.Span{Text: query}
	}
	translation, err := rewrite.TranslatePredicate(rewrite.Span{Text: predicate, Offset: len(before)}, context)
	if err != nil {
		checkError(t, before+predicate, err)
		return
	}
	checkTranslation(t, before+predicate, translation, lexical)
	tokens, _ := rewrite.Tokens(translation.SQL, lexical)
	for _, token := range tokens {
		if translation.SQL[token.Start:token.End] == ";" {
			t.Errorf("%q became %q", predicate, translation.SQL)
		}
	}
	rewrite.PredicateColumns(translation.SQL)
	same := func(expression string) (string, error) { return expression, nil }
	if _, err := rewrite.ResolveTemporal(translation.SQL, lexical, same); err != nil {
		t.Errorf("%q became %q: %v", predicate, translation.SQL, err)
	}
	for _, token := range tokens {
		if token.Kind == rewrite.Backtick {
			t.Errorf("%q became %q", predicate, translation.SQL)
		}
	}
	// It reads the same whatever standard_conforming_strings is.
	lexical.BackslashEscapes = !lexical.BackslashEscapes
	if other, _ := rewrite.Tokens(translation.SQL, lexical); !slices.Equal(tokens, other) {
		t.Errorf("%q became %q, which can be read in two ways", predicate, translation.SQL)
	}
}

func FuzzTranslateQuery(f *testing.F) {
	for _, file := range archive(f, "query.txtar") {
		input, _, _ := strings.Cut(string(file.Data), "\n=>\n")
		f.Add(input, false)
	}
	for _, query := range []string{
		"select *, count(*) from t group by all union (select 1) order by all desc nulls first",
		`CAS!A000<=>''""`,
		`select 'a' 'b' <=> "c" 'd' || r'e' "f", date "2024-01-31" <=> date '2024' '-01-31'`,
	} {
		f.Add(query, false)
	}
	f.Fuzz(func(t *testing.T, query string, backslash bool) {
		for _, dialect := range []rewrite.Dialect{rewrite.Postgres, rewrite.Databricks} {
			lexical := rewrite.Lexical{BackslashEscapes: backslash, Dialect: dialect}
			translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, nothing{}, lexical)
			if err != nil {
				checkError(t, before+query, err)
				continue
			}
			checkTranslation(t, before+query, translation, lexical)
		}
	})
}

func checkError(t *testing.T, statement string, err error) {
	t.Helper()
	var d *pgdiag.Diagnostic
	if !errors.As(rewrite.Locate(err, statement), &d) || len(d.Code) != 5 || d.Message == "" {
		t.Fatalf("%q: %v", statement, err)
	}
	if d.Position < 1 || d.Position > utf8.RuneCountInString(statement)+1 {
		t.Errorf("%q: position %d", statement, d.Position)
	}
}

func checkTranslation(t *testing.T, statement string, translation rewrite.Translation, lexical rewrite.Lexical) {
	t.Helper()
	tokens, err := rewrite.Tokens(translation.SQL, lexical)
	if err != nil {
		t.Errorf("%q became %q: %v", statement, translation.SQL, err)
	}
	depth := 0 // of brackets: a translation reaches out of none
	for _, token := range tokens {
		switch translation.SQL[token.Start:token.End] {
		case "(", "[":
			depth++
		case ")", "]":
			depth--
		}
		if depth < 0 {
			break
		}
	}
	if depth != 0 {
		t.Errorf("%q became %q, whose brackets do not match", statement, translation.SQL)
	}
	// Each position is looked for from the beginning: of a long text some are
	// enough, or a worker of the fuzzer takes so long that it is given up.
	last := utf8.RuneCountInString(translation.SQL) + 1
	for position := 1; position <= last; position += 1 + last/200 {
		origin := translation.Origin(position)
		if origin < 0 {
			continue
		}
		if origin > len(statement) {
			t.Fatalf("%q became %q: character %d is from %d", statement, translation.SQL, position, origin)
		}
	}
}
