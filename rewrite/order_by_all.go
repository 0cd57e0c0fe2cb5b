package rewrite

import (
	"strconv"
	"strings"
)

// translateOrderByAll makes ORDER BY ALL [ASC|DESC] [NULLS FIRST|LAST] to
// ORDER BY with the ordinal of every column, each with the same options.
func (t *tokenText) translateOrderByAll(clause queryClause, c Catalog) error {
	end := t.orderAllEnd(clause.at)
	if !t.endsClause(end) {
		return nil
	}
	if !t.startsQuery(clause.level) && !t.isSubquery(clause.level) {
		return t.unsupported(clause.at, "ORDER BY ALL outside of a query's own ORDER BY", "list the expressions")
	}
	columns, err := t.outputColumns(clause.level, c)
	if err != nil {
		return err
	}
	options := ""
	if from := clause.at + 3; from < end {
		options = " " + t.sql[t.tokens[from].Start:t.tokens[end-1].End]
	}
	if t.dialect == Databricks && t.word(end-2) != "nulls" {
		options += map[bool]string{false: " NULLS FIRST", true: " NULLS LAST"}[t.word(end-1) == "desc"]
	}
	ordinals := make([]string, columns)
	for i := range ordinals {
		ordinals[i] = strconv.Itoa(i+1) + options
	}
	t.replace(clause.at, end, "ORDER BY "+strings.Join(ordinals, ", "))
	return nil
}

// outputColumns returns the number of columns of the query at level. The
// branches of a set operation have as many each, so any of them will do.
func (t *tokenText) outputColumns(level int, c Catalog) (int, error) {
	for k := level; k < len(t.tokens) && !t.closes(k); k = t.skip(k) {
		switch {
		case t.word(k) == "select":
			return t.selectColumns(t.readSelect(k), c)
		case t.word(k) == "values" && t.startsQuery(k):
			return t.commas(k+1) + 1, nil
		case t.word(k) == "table":
			names, err := t.describe(k, c, " ", tokenRange{k, t.nameEnd(k + 1)})
			if err != nil && t.isNested(k) {
				return 0, t.unsupported(k, "a table whose columns only the query around it tells", "List the columns.")
			}
			return len(names), err
		}
	}
	for k := level; k < len(t.tokens) && !t.closes(k); k = t.skip(k) {
		if t.punctuation(k, "(") {
			return t.outputColumns(k+1, c)
		}
	}
	return 0, nil
}

func (t *tokenText) selectColumns(s selectClauses, c Catalog) (int, error) {
	columns := 0
	for _, item := range s.items {
		isStar, width, err := t.starWidth(s, item, c)
		if err != nil {
			return 0, err
		}
		if !isStar {
			width = 1
		}
		columns += width
	}
	return columns, nil
}

// commas returns the number of commas directly in the bracket at i.
func (t *tokenText) commas(i int) int {
	n := 0
	for k := i + 1; k < t.partner[i]; k = t.skip(k) {
		if t.punctuation(k, ",") {
			n++
		}
	}
	return n
}
