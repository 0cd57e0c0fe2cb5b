package rewrite

import (
	"errors"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// Catalog is what the translation of a query has to ask Postgres.
type Catalog interface {
	// Aggregates says which of these function names are aggregates. A name is
	// as Postgres stores it, not quoted, behind its schema and a dot if the
	// query names one.
	Aggregates(names []string) (map[string]bool, error)
	// Operators says which of these operator names can be used unqualified.
	Operators(names []string) (map[string]bool, error)
	// Columns returns the names of the columns of a query's result.
	Columns(query string) ([]string, error)
}

// TranslateQuery translates the Databricks spellings of a flow's query that
// PostgreSQL rejects, GROUP BY ALL and ORDER BY ALL among them. It refuses
// what it recognises and cannot translate (0A000); everything else is left for
// Postgres to judge. Locate makes the positions of its errors exact.
func TranslateQuery(q Span, c Catalog, o Lexical) (Translation, error) {
	t, err := newTokenText(q, o)
	if err != nil {
		return Translation{}, err
	}
	if len(t.tokens) == 0 {
		return Translation{}, t.syntaxErrorWithHint(0, "A flow needs a query: SELECT, WITH, VALUES or TABLE.")
	}
	if err := t.translateSpellings(c); err != nil {
		return Translation{}, err
	}
	// Inner queries first: outer ones may have to be described with them.
	nested, outermost := t.queryClauses()
	for _, clauses := range [][]queryClause{nested, outermost} {
		for _, clause := range clauses {
			if err := t.translateClause(clause, c); err != nil {
				return Translation{}, err
			}
		}
	}
	return t.translation(), nil
}

// queryClause is a SELECT, or an ORDER BY ALL, and the query it belongs to.
type queryClause struct {
	at        int
	level     int  // where the query begins: the text, or behind a bracket
	outermost bool // not in brackets
}

// queryClauses finds what has to be looked at as a clause and not as a token.
func (t *tokenText) queryClauses() (nested, outermost []queryClause) {
	levels := []int{0}
	for i := range t.tokens {
		switch {
		case t.closes(i):
			levels = levels[:len(levels)-1]
		case t.partner[i] > i:
			levels = append(levels, i+1)
		case t.word(i) == "select", t.words(i, "order", "by", "all"), t.isMinus(i):
			clause := queryClause{at: i, level: levels[len(levels)-1], outermost: len(levels) == 1}
			if clause.outermost {
				outermost = append(outermost, clause)
			} else {
				nested = append(nested, clause)
			}
		}
	}
	return nested, outermost
}

func (t *tokenText) translateClause(clause queryClause, c Catalog) error {
	switch t.word(clause.at) {
	case "minus":
		t.replace(clause.at, clause.at+1, "EXCEPT")
		return nil
	case "order":
		return t.translateOrderByAll(clause, c)
	}
	s := t.readSelect(clause.at)
	for _, item := range s.items {
		if item.alias >= 0 && asWords[t.word(item.alias)] && t.word(item.alias-1) != "as" {
			t.insertBefore(item.alias, "AS ")
		}
	}
	if g := s.groupBy; g >= 0 && t.words(g, "group", "by", "all") && t.endsClause(g+3) {
		return t.translateGroupByAll(s, clause.outermost, c)
	}
	return nil
}

// endsClause says whether a clause is at its end before k.
func (t *tokenText) endsClause(k int) bool {
	return k >= len(t.tokens) || t.closes(k) || t.startsClause(k) || t.isSetOperation(k)
}

// starColumns returns how many columns the star item of a SELECT stands for.
// Only that of an outermost query can be described by itself.
func (t *tokenText) starColumns(s selectClauses, item selectItem, outermost bool, c Catalog) (int, error) {
	if !outermost {
		return 0, t.fail(item.expression.from,
			pgdiag.New(featureNotSupportedCode, "* together with GROUP BY ALL or ORDER BY ALL is not supported in a subquery").
				WithDetail("UNSUPPORTED_FEATURE").WithHint("List the columns."))
	}
	var probe translationBuilder
	sortEdits(t.edits)
	copied := func(r tokenRange) {
		if !r.empty() {
			probe.edited(t.sql, t.offset, t.edits, t.tokens[r.from].Start, t.tokens[r.to-1].End)
		}
	}
	copied(tokenRange{0, t.withEnd()})
	probe.generate(" SELECT ")
	copied(item.expression)
	probe.generate(" ")
	copied(s.from)
	return t.describe(probe.translation(), c)
}

// describe returns the number of columns of a query made of parts of the text.
func (t *tokenText) describe(query Translation, c Catalog) (int, error) {
	columns, err := c.Columns(query.SQL)
	var d *pgdiag.Diagnostic
	if errors.As(err, &d) && d.Position > 0 {
		moved := *d
		if origin := query.Origin(d.Position); origin >= 0 {
			return 0, t.at(&moved, origin-t.offset)
		}
		return 0, moved.At(0)
	}
	return len(columns), err
}

// withEnd returns where the main query begins: behind WITH, or at once.
func (t *tokenText) withEnd() int {
	if t.word(0) != "with" {
		return 0
	}
	for k := 1; k < len(t.tokens); k = t.skip(k) {
		if t.startsQuery(k) || t.punctuation(k-1, ")") && t.isSubquery(k) {
			return k
		}
	}
	return 0
}
