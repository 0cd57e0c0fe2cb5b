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
	// Functions says which of these names, not qualified, are functions that
	// the search_path finds and that are neither PostgreSQL's nor of schema
	// rwproxy_compat.
	Functions(names []string) (map[string]bool, error)
	// Columns returns the columns of a query's result.
	Columns(query string) ([]Column, error)
}

// Column is a column of a query's result.
type Column struct {
	Name string
	// Scaled says that it is a decimal whose declared type says how many digits
	// its values have behind the point.
	Scaled bool
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
	t.writeOtherTexts()
	return t.balancedTranslation()
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
	if err := t.translateSemiJoins(s); err != nil {
		return err
	}
	if err := t.writeTexts(s, c); err != nil {
		return err
	}
	for _, item := range s.items {
		if err := t.translateStarExcept(s, item, c); err != nil {
			return err
		}
	}
	if err := t.translateAliases(s, clause.outermost, c); err != nil {
		return err
	}
	if err := t.translateGroupBy(s, c); err != nil {
		return err
	}
	return t.translateQualify(s, c)
}

func (t *tokenText) translateGroupBy(s selectClauses, c Catalog) error {
	g := s.groupBy
	switch {
	case g < 0:
		return nil
	case t.words(g, "group", "by", "all") && t.endsClause(g+3):
		return t.translateGroupByAll(s, c)
	}
	return t.translateWithRollup(g)
}

// endsClause says whether a clause is at its end before k.
func (t *tokenText) endsClause(k int) bool {
	return k >= len(t.tokens) || t.closes(k) || t.startsClause(k) || t.isSetOperation(k)
}

// starColumns returns the names of the columns that a star of a SELECT stands
// for; expression is the star with its qualifier.
func (t *tokenText) starColumns(s selectClauses, expression tokenRange, c Catalog) ([]string, error) {
	columns, err := t.describe(s.at, c, " SELECT ", expression, " ", s.from)
	if err != nil && t.isNested(s.at) {
		// It may be a table of the query around it that is missing.
		return nil, t.unsupported(expression.from, "* whose columns only the query around it tells", "List the columns.")
	}
	return columnNames(columns), err
}

// isNested says whether token i is in brackets.
func (t *tokenText) isNested(i int) bool {
	for k := i - 1; k >= 0; k-- {
		if t.closes(k) {
			k = t.partner[k]
		} else if t.partner[k] > k {
			return true
		}
	}
	return false
}

func columnNames(columns []Column) []string {
	names := make([]string, len(columns))
	for i, column := range columns {
		names[i] = column.Name
	}
	return names
}

// describe returns the columns of a query made of texts and token ranges, as it
// would be at the place at.
func (t *tokenText) describe(at int, c Catalog, parts ...any) ([]Column, error) {
	var probe translationBuilder
	sortEdits(t.edits)
	for _, p := range t.parts(append([]any{t.visibleWith(at)}, parts...)) {
		if p.to > p.from {
			probe.edited(t.sql, t.offset, t.edits, p.from, p.to)
		} else {
			probe.generate(p.text)
		}
	}
	query := probe.translation()
	columns, err := c.Columns(query.SQL)
	var d *pgdiag.Diagnostic
	if errors.As(err, &d) && d.Position > 0 {
		moved := *d
		if origin := query.Origin(d.Position); origin >= 0 {
			return nil, t.at(&moved, origin-t.offset)
		}
		return nil, moved.At(0)
	}
	return columns, err
}

// visibleWith is the part of the WITH that the text begins with whose tables
// can be named at a place: all of it, or what stands in front of the table that
// the place is in.
func (t *tokenText) visibleWith(at int) tokenRange {
	end := t.withEnd()
	if at >= end {
		return tokenRange{0, end}
	}
	visible := tokenRange{}
	for k := 0; k < at; k = t.skip(k) {
		if t.punctuation(k, ",") {
			visible.to = k
		}
	}
	return visible
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
