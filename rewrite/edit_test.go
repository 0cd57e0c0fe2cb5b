package rewrite_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/rewrite"
)

func TestOriginFollowsTheTextThroughEveryEdit(t *testing.T) {
	t.Parallel()
	query := `SELECT 'ü', a<=>b, ` + "`X`" + `, x == INTERVAL 7 DAYS FROM t -- end`
	translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, nil, rewrite.Lexical{})
	if err != nil {
		t.Fatal(err)
	}
	want := `SELECT 'ü', (a IS NOT DISTINCT FROM b), "x", x = INTERVAL '7 days' FROM t`
	if translation.SQL != want {
		t.Fatalf("got %s", translation.SQL)
	}
	for at, origin := range map[string]string{
		`SELECT`: `SELECT`, `ü`: `ü`, `a IS`: `a<=>`, `IS NOT`: `<=>`, `DISTINCT`: `<=>`, `b),`: `b,`,
		`, "x"`: ", `X`", `"x"`: "`X`", `x"`: "`X`", `x = `: `x ==`, `= INT`: `==`, `INTERVAL`: `INTERVAL`,
		`days`: `INTERVAL`, ` FROM`: ` FROM`, `t`: `t -- end`,
	} {
		offset := strings.LastIndex(translation.SQL, at)
		got := translation.Origin(rewrite.CharPosition(translation.SQL, offset))
		if got < len(before) || !strings.HasPrefix(query[got-len(before):], origin) {
			t.Errorf("%s: got %d", at, got)
		}
	}
	for _, inserted := range []string{`(a`, `), "x"`} {
		if got := translation.Origin(rewrite.CharPosition(want, strings.Index(want, inserted))); got != -1 {
			t.Errorf("%s: got %d", inserted, got)
		}
	}
	characters := utf8.RuneCountInString(want)
	for position, origin := range map[int]int{0: -1, -1: -1, characters + 1: len(before) + len(query) - len(` -- end`), characters + 2: -1} {
		if got := translation.Origin(position); got != origin {
			t.Errorf("position %d: got %d, want %d", position, got, origin)
		}
	}
	if got := (rewrite.Translation{}).Origin(1); got != -1 {
		t.Errorf("of nothing: got %d", got)
	}
}

// What Postgres refuses in a translation is shown where the user typed it.
func TestAnErrorOfPostgresIsAtItsPlaceInTheStatement(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create table t (a integer, b integer, day date)`)
	for query, want := range map[string]string{
		"SELECT `a`, 'ü' <=> 'ö', missing == 1 FROM t":           "missing == 1 FROM t",
		"SELECT a <=> b FROM t WHERE a == day":                   "== day",
		"SELECT `missing` FROM t":                                "`missing` FROM t",
		"SELECT day, nothing(a) FROM t GROUP BY ALL":             "nothing(a) FROM t GROUP BY ALL",
		"SELECT (SELECT sum(a)) + b, max(a) FROM t GROUP BY ALL": "sum(a)) + b, max(a) FROM t GROUP BY ALL",
		"SELECT day <=> a FROM t":                                "<=> a FROM t",
		"SELECT a + (b <=> 1) FROM t":                            "+ (b <=> 1) FROM t",
		"SELECT current_date() + current_timestamp() FROM t":     "+ current_timestamp() FROM t",
		"SELECT a FROM t WHERE a =":                              "",
	} {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, catalog{t, c}, rewrite.Lexical{})
		if err != nil {
			t.Errorf("%s: %v", query, err)
			continue
		}
		_, err = c.Prepare(t.Context(), "", translation.SQL)
		if err == nil {
			t.Errorf("%s became %s, which Postgres runs", query, translation.SQL)
			continue
		}
		at := translation.Origin(postgresPosition(t, err))
		if at < len(before) || (before + query)[at:] != want {
			t.Errorf("%s became %s\n%v\nat %d", query, translation.SQL, err, at)
		}
	}
}
