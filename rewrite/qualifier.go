package rewrite

import (
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// resolveQualified makes every qualified column of a predicate a bare one.
func (t *tokenText) resolveQualified(c PredicateContext) error {
	var source *sourceColumns // read when the first name asks for it
	for i := 0; i < len(t.tokens); {
		end := t.nameEnd(i)
		if end == i {
			i++
			continue
		}
		if t.punctuation(end, ".") && t.operator(end+1, "*") {
			return t.unsupported(i, "a whole row in a predicate", "Compare the columns.")
		}
		if end == i+1 || !t.isColumn(i, end) {
			i = end
			continue
		}
		if source == nil {
			source = readSource(c)
		}
		parts := t.dottedName(i, end)
		qualifier, column := parts[:len(parts)-1], parts[len(parts)-1]
		if source.isAmbiguous(qualifier, column, c.Target) {
			return t.fail(i, ambiguousColumn(t.sql[t.tokens[i].Start:t.tokens[end-1].End]))
		}
		name, ok := source.resolve(qualifier, column, c.Target)
		if !ok {
			return t.fail(i, unresolvedColumn(t.sql[t.tokens[i].Start:t.tokens[end-1].End], source, c))
		}
		for k := range t.edits { // of backticks in the name
			if e := &t.edits[k]; e.start >= t.tokens[i].Start && e.end <= t.tokens[end-1].End && e.order == replacing {
				*e = edit{start: e.start, end: e.start, order: insertedAfter}
			}
		}
		t.replace(i, end, QuoteIdentifier(name))
		i = end
	}
	return nil
}

// isColumn says whether the dotted name in [i, end) is a column, and not a
// function, a type, a collation or an operator's schema.
func (t *tokenText) isColumn(i, end int) bool {
	return !t.punctuation(end, "(") && !t.is(end, String) &&
		!t.punctuation(i-1, "::") && !t.punctuation(i-1, ".") &&
		t.word(i-1) != "as" && t.word(i-1) != "collate" &&
		!(t.punctuation(i-1, "(") && t.word(i-2) == "operator")
}

func ambiguousColumn(column string) *pgdiag.Diagnostic {
	return pgdiag.New("42702", "column "+excerpt(column)+" is ambiguous in the predicate").
		WithDetail("The target and a table of the query have this name, and the query returns the column of that name changed.").
		WithHint("Leave the qualifier out for the column of the target; give the table of the query an alias to name its own.")
}

func unresolvedColumn(column string, source *sourceColumns, c PredicateContext) *pgdiag.Diagnostic {
	d := pgdiag.New("42703", "column "+excerpt(column)+" cannot be resolved in the predicate").
		WithDetail("UNRESOLVED_COLUMN")
	switch names := source.outputNames(); {
	case c.Query == nil:
		return d.WithHint("Name the columns of the target table without a qualifier.")
	case len(names) == 0:
		return d.WithHint("Name the columns that the flow's query returns without a qualifier.")
	default:
		return d.WithHint("The flow's query has to return the column; it returns " + strings.Join(names, ", ") + ".")
	}
}

// sourceColumns is what a flow's query returns, as far as its text shows it.
type sourceColumns struct {
	text      *tokenText
	items     []selectItem
	relations []relation
}

// readSource reads the query of a flow. It knows the columns of one SELECT;
// the names in a set operation mean something else in each branch.
func readSource(c PredicateContext) *sourceColumns {
	source := &sourceColumns{}
	if c.Query == nil {
		return source
	}
	t, err := newTokenText(*c.Query, c.Lexical)
	if err != nil {
		return source // reported when the query is translated
	}
	at := t.withEnd()
	for t.punctuation(at, "(") && t.isSubquery(at) {
		at++
	}
	if t.word(at) != "select" {
		return source
	}
	s := t.readSelect(at)
	if t.isSetOperation(s.end) || s.end < len(t.tokens) && !t.onlyClosesBehind(s.end) {
		return source
	}
	source.text, source.items, source.relations = t, s.items, t.relations(s.from)
	return source
}

// onlyClosesBehind says whether only closing brackets are left at i.
func (t *tokenText) onlyClosesBehind(i int) bool {
	for ; i < len(t.tokens); i++ {
		if !t.closes(i) {
			return false
		}
	}
	return true
}

// isAmbiguous says whether a qualifier names both the target and a table of
// the query, whose columns of that name are not the same.
func (s *sourceColumns) isAmbiguous(qualifier []string, column string, target Name) bool {
	if !qualifies(target, qualifier) || !s.returns(column) || s.relation(qualifier) < 0 {
		return false
	}
	name, ok := s.returnedAs(qualifier, column)
	return !ok || name != column
}

// resolve returns the column of the target that a qualified name stands for.
// The target comes first: the predicate is a condition on its rows.
func (s *sourceColumns) resolve(qualifier []string, column string, target Name) (string, bool) {
	isTarget := qualifies(target, qualifier)
	if isTarget && s.returns(column) {
		return column, true
	}
	if name, ok := s.returnedAs(qualifier, column); ok {
		return name, true
	}
	return column, isTarget
}

// qualifies says whether a column qualified so is one of the table's.
func qualifies(table Name, qualifier []string) bool {
	full := []string{table.Catalog, table.Schema, table.Table}
	if len(qualifier) > len(full) {
		return false
	}
	return slices.Equal(qualifier, full[len(full)-len(qualifier):])
}

// returns says whether the query has an output column of that name.
func (s *sourceColumns) returns(column string) bool {
	return slices.ContainsFunc(s.items, func(item selectItem) bool { return s.text.outputName(item) == column })
}

// returnedAs returns the name under which the query returns the column of one
// of its tables.
func (s *sourceColumns) returnedAs(qualifier []string, column string) (string, bool) {
	table := s.relation(qualifier)
	if table < 0 {
		return "", false
	}
	for _, item := range s.items {
		if s.text.star(item) {
			continue
		}
		reference := s.text.columnReference(item)
		if len(reference) == 0 || reference[len(reference)-1] != column {
			continue
		}
		of := s.relation(reference[:len(reference)-1])
		// Which table a bare name is of the text tells only if there is one.
		if of == table || len(reference) == 1 && len(s.relations) == 1 {
			return s.text.outputName(item), true
		}
	}
	for _, item := range s.items {
		if !s.text.star(item) {
			continue
		}
		e := item.expression
		if e.to-e.from == 1 || s.relation(s.text.dottedName(e.from, e.to-2)) == table {
			return column, true
		}
	}
	return "", false
}

// relation returns the index of the table that a qualifier names, -1 if there
// is none.
func (s *sourceColumns) relation(qualifier []string) int {
	return slices.IndexFunc(s.relations, func(r relation) bool { return r.answersTo(qualifier) })
}

// outputNames returns the names of the query's columns, quoted where they need
// it, as far as the text shows them.
func (s *sourceColumns) outputNames() []string {
	var names []string
	for _, item := range s.items {
		name := s.text.outputName(item)
		switch {
		case s.text.star(item):
			e := item.expression
			names = append(names, s.text.sql[s.text.tokens[e.from].Start:s.text.tokens[e.to-1].End])
		case name != "":
			names = append(names, QuoteIdentifier(name))
		}
	}
	return names
}
