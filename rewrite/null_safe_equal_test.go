package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Each expression is evaluated on every combination of NULL, 1 and 2 in a, b
// and c, and of NULL, true and false in p, next to the one it means, which is
// written out with all its brackets.
func TestNullSafeEqualityBindsAsInDatabricks(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create table t as
		select * from unnest(array[null, 1, 2]) a, unnest(array[null, 1, 2]) b, unnest(array[null, 1, 2]) c, unnest(array[null, true, false]) p`)
	for _, test := range []struct{ databricks, meaning string }{
		{`a <=> b`, `(a is not distinct from b)`},
		{`NOT a <=> b`, `not (a is not distinct from b)`},
		{`! a <=> b`, `not (a is not distinct from b)`},
		{`a + 1 <=> b AND p`, `((a + 1) is not distinct from b) and p`},
		{`p OR a <=> b + c`, `p or (a is not distinct from (b + c))`},
		{`a <=> b OR b <=> c`, `(a is not distinct from b) or (b is not distinct from c)`},
		{`a <=> b = p`, `(a is not distinct from b) = p`},
		{`p = (a <=> b)`, `p = (a is not distinct from b)`},
		{`a = b <=> p`, `(a = b) is not distinct from p`},
		{`a < b <=> p`, `(a < b) is not distinct from p`},
		{`a <=> b <=> p`, `(a is not distinct from b) is not distinct from p`},
		{`a <=> b IS NULL`, `(a is not distinct from b) is null`},
		{`a <=> b IN (p, false)`, `(a is not distinct from b) in (p, false)`},
		{`a <=> b BETWEEN false AND p`, `(a is not distinct from b) between false and p`},
		{`a BETWEEN 1 AND 2 AND b <=> c`, `(a between 1 and 2) and (b is not distinct from c)`},
		{`-a <=> -b`, `(-a) is not distinct from (-b)`},
		{`a::text || 'x' <=> b::text || 'x'`, `(a::text || 'x') is not distinct from (b::text || 'x')`},
		{`CASE WHEN a <=> b THEN b ELSE c END <=> c`, `(case when (a is not distinct from b) then b else c end) is not distinct from c`},
		{`CASE a <=> b WHEN p THEN 1 ELSE 2 END <=> c`, `(case (a is not distinct from b) when p then 1 else 2 end) is not distinct from c`},
		{`coalesce(a, 1) <=> least(b, c)`, `coalesce(a, 1) is not distinct from least(b, c)`},
		{`CAST(a AS STRING) <=> '1'`, `a::text is not distinct from '1'`},
		{`(ARRAY[a, b])[1] <=> (ARRAY[b, c])[2]`, `((array[a, b])[1]) is not distinct from ((array[b, c])[2])`},
		{`date '2024-01-01' + a <=> date '2024-01-02'`, `(date '2024-01-01' + a) is not distinct from (date '2024-01-02')`},
		{`timestamptz '2024-01-01 00:00+00' AT TIME ZONE 'UTC' + INTERVAL 1 DAY <=> timestamp '2024-01-02'`, `true`},
		{`a <=> NULL`, `a is null`},
		{`NULL <=> NULL`, `true`},
		{`(a, b) <=> (b, a)`, `(a is not distinct from b) and (b is not distinct from a)`},
		{`a <=> (SELECT max(x) FROM (VALUES (1)) v (x) WHERE x <=> b)`, `a is not distinct from (case when b = 1 then 1 end)`},
	} {
		query := "select " + test.databricks + " as result from t order by a, b, c, p"
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, catalog{t, c}, rewrite.Lexical{})
		if err != nil {
			t.Errorf("%s: %v", test.databricks, err)
			continue
		}
		want := rows(t, c, "select "+test.meaning+" as result from t order by a, b, c, p")
		if diff := cmp.Diff(want, rows(t, c, translation.SQL)); diff != "" {
			t.Errorf("%s became\n%s\n-want +got\n%s", test.databricks, translation.SQL, diff)
		}
		inPredicate(t, c, test.databricks, test.meaning)
	}
}

// inPredicate does the same with the text as a predicate.
func inPredicate(t *testing.T, c *pgx.Conn, databricks, meaning string) {
	t.Helper()
	translation, err := rewrite.TranslatePredicate(rewrite.Span{Text: databricks}, rewrite.PredicateContext{})
	if err != nil {
		if pgdiag.Code(err) != "0AKDC" {
			t.Errorf("%s: %v", databricks, err)
		}
		return
	}
	const all = "select a, b, c, p from t where (%s\n) order by a, b, c, p"
	if diff := cmp.Diff(rows(t, c, fmt.Sprintf(all, meaning)), rows(t, c, fmt.Sprintf(all, translation.SQL))); diff != "" {
		t.Errorf("predicate %s became\n%s\n-want +got\n%s", databricks, translation.SQL, diff)
	}
}

// Each operator of a chain becomes a bracket around all before it.
func TestALongChainOfOperatorsIsRefused(t *testing.T) {
	t.Parallel()
	for operator, lexical := range map[string]rewrite.Lexical{"<=>": {}, "+": databricks, "||": databricks} {
		for _, c := range []struct {
			operators int
			refused   bool
		}{{1000, false}, {1001, true}, {20000, true}} {
			query := "select a" + strings.Repeat(" "+operator+" b", c.operators) + " from t"
			_, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, nothing{}, lexical)
			got := ""
			if err != nil {
				got, _, _ = strings.Cut(errorText(query, err), "\nAT: ")
			}
			want := ""
			if c.refused {
				want = "54001: the chain of operators is too long\nHINT: It may have 1000 operators; put brackets around parts of it."
			}
			if got != want {
				t.Errorf("%d times %s: got %q, want %q", c.operators, operator, got, want)
			}
		}
	}
}

// Operators without operands, and names side by side, are PostgreSQL's to
// refuse. With a time that grows faster than the text this would not end.
func TestALongTextOfNoMeaningIsTranslatedSoon(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"! ", "- ", "* ", `"b" `, "'b' "} {
		for _, lexical := range []rewrite.Lexical{{}, databricks} {
			_, err := rewrite.TranslateQuery(rewrite.Span{Text: "select a " + strings.Repeat(unit, 50_000)}, nothing{}, lexical)
			if err != nil {
				t.Errorf("%s: %v", unit, err)
			}
		}
	}
}
