package rewrite

import (
	"slices"
	"strings"
)

// isQualify says whether the word at i begins a QUALIFY clause, and is no name.
func (t *tokenText) isQualify(i int) bool {
	return t.word(i) == "qualify" && t.endsOperand(i-1) &&
		(t.is(i+1, QuotedIdentifier) || t.is(i+1, Backtick) || t.startsPrimary(i+1) || t.word(i+1) == "not" || t.is(i+1, Operator)) &&
		(!t.punctuation(i+1, "(") || !t.inFromItem(i) || t.partner[i+1] > i+2 && !t.isNameList(i+1))
}

// isNameList says whether the bracket at i is around names and commas, as that
// of an alias is.
func (t *tokenText) isNameList(i int) bool {
	for k := i + 1; k < t.partner[i]; k += 2 {
		if !t.isName(k) || k+1 < t.partner[i] && !t.punctuation(k+1, ",") {
			return false
		}
	}
	return true
}

// The names of what a QUALIFY becomes.
const (
	qualifyColumn = `"rwproxy qualify"`
	qualifyTable  = `"rwproxy qualified"`
)

// translateQualify puts a SELECT with QUALIFY into another that filters by the
// condition, which is one more column of the inner one.
func (t *tokenText) translateQualify(s selectClauses, c Catalog) error {
	if s.qualify.empty() || len(s.items) == 0 {
		return nil
	}
	qualify := s.qualify.from - 1
	if t.word(s.at+1) == "distinct" && t.word(s.at+2) == "on" {
		return t.unsupported(qualify, "QUALIFY with DISTINCT ON", "Put the window function into a subquery and filter outside of it.")
	}
	if err := t.substituteAliases(s.qualify, s, c); err != nil {
		return err
	}
	names, err := t.outputNames(s, qualify, c)
	if err != nil {
		return err
	}
	columns := make([]string, len(names))
	for i, name := range names {
		if slices.Contains(names[i+1:], name) || name == "?column?" {
			return t.unsupported(qualify, "QUALIFY over columns without names of their own", "Give every column of the select list its own name with AS.")
		}
		columns[i] = quoteAlways(name)
	}
	distinct := ""
	if t.word(s.at+1) == "distinct" {
		distinct = "DISTINCT "
		t.replace(s.at+1, s.at+2, "")
	}
	outer := "SELECT " + distinct + strings.Join(columns, ", ") + " FROM ("
	t.wrap(tokenRange{s.at, qualify}, outer, "")
	last := s.items[len(s.items)-1]
	end := max(last.expression.to, last.alias+1)
	t.insertParts(end-1, ", (", s.qualify, ") AS "+qualifyColumn)
	t.replace(qualify, s.qualify.to, ") AS "+qualifyTable+" WHERE "+qualifyColumn)
	return nil
}

// outputNames returns the names of the columns of a SELECT: from its text, or
// by asking for those of what stands in front of the place end.
func (t *tokenText) outputNames(s selectClauses, end int, c Catalog) ([]string, error) {
	var names []string
	for _, item := range s.items {
		name := t.outputName(item)
		if name == "" || t.star(item) || t.exceptWidths[item.expression.from] > 0 {
			names = nil
			break
		}
		names = append(names, name)
	}
	if names != nil {
		return names, nil
	}
	if c == nil {
		return nil, t.unsupported(end, "QUALIFY over columns without names of their own", "Give every column of the select list its own name with AS.")
	}
	columns, err := t.describe(s.at, c, " ", tokenRange{s.at, end})
	if err != nil && t.isNested(s.at) {
		return nil, t.unsupported(end, "QUALIFY over columns without names in this subquery", "List the columns, each with a name.")
	}
	return columnNames(columns), err
}

// translateAliases replaces names of the select list in HAVING, and in
// expressions of ORDER BY, where PostgreSQL knows columns of the tables only.
// In a subquery such a name may be a column of the query around it.
func (t *tokenText) translateAliases(s selectClauses, outermost bool, c Catalog) error {
	if !outermost || c == nil {
		return nil
	}
	if err := t.refuseLateralAliases(s, c); err != nil {
		return err
	}
	if !s.having.empty() {
		if err := t.substituteAliases(s.having, s, c); err != nil {
			return err
		}
	}
	if s.orderBy < 0 || t.isSetOperation(s.end) || t.isSetOperation(s.at-1) || !s.qualify.empty() {
		return nil
	}
	start := s.orderBy + 2
	for k := start; ; k = t.skip(k) {
		ends := k >= s.end || t.startsClause(k)
		if !ends && !t.punctuation(k, ",") {
			continue
		}
		if item := (tokenRange{start, k}); t.nameEnd(start) < k && !orderWords[t.word(t.nameEnd(start))] {
			if err := t.substituteAliases(item, s, c); err != nil {
				return err
			}
		}
		if ends {
			return nil
		}
		start = k + 1
	}
}

// refuseLateralAliases refuses an item of a select list that uses the name of
// one before it.
func (t *tokenText) refuseLateralAliases(s selectClauses, c Catalog) error {
	for i, item := range s.items {
		for k := item.expression.from; k < item.expression.to; k++ {
			if t.punctuation(k, "(") && t.isSubquery(k) {
				k = t.partner[k]
				continue
			}
			if !t.isBareName(k) || t.aliased(s.items[:i], k) < 0 {
				continue
			}
			isColumn, err := t.isInputColumn(s, k, c)
			if err != nil {
				return err
			}
			if !isColumn {
				return t.unsupported(k, "a name of the select list in the same select list", "Repeat the expression, or compute it in a subquery.")
			}
		}
	}
	return nil
}

// isBareName says whether a name stands at k that can only be a column's,
// without a qualifier: an operand begins there.
func (t *tokenText) isBareName(k int) bool {
	if !t.isName(k) || reserved[t.word(k)] || t.isSyntax(k) || t.punctuation(k+1, ".") || t.punctuation(k+1, "(") {
		return false
	}
	w := t.word(k - 1)
	return t.isBoundary(k-1) || t.is(k-1, Operator) || w == "between" || w == "like" || w == "ilike" || w == "qualify"
}

// aliased returns the index of the item that is given the name at k; -1 without
// one.
func (t *tokenText) aliased(items []selectItem, k int) int {
	return slices.IndexFunc(items, func(item selectItem) bool { return item.alias >= 0 && t.name(item.alias) == t.name(k) })
}

var orderWords = wordSet("asc desc nulls using")

// substituteAliases replaces the names in r that are of the select list and no
// columns of the tables by what they name.
func (t *tokenText) substituteAliases(r tokenRange, s selectClauses, c Catalog) error {
	for k := r.from; k < r.to; k++ {
		if t.punctuation(k, "(") && t.isSubquery(k) {
			k = t.partner[k]
			continue
		}
		item := t.aliased(s.items, k)
		if !t.isBareName(k) || item < 0 {
			continue
		}
		isColumn, err := t.isInputColumn(s, k, c)
		if err != nil {
			return err
		}
		if !isColumn {
			t.rebuild(tokenRange{k, k + 1}, "(", s.items[item].expression, ")")
		}
	}
	return nil
}

// isInputColumn says whether the name at k is a column of the tables of s. It
// asks for all of them: a question that Postgres answers with an error would
// end the transaction.
func (t *tokenText) isInputColumn(s selectClauses, k int, c Catalog) (bool, error) {
	if s.from.empty() || c == nil {
		return false, nil
	}
	columns, err := t.describe(s.at, c, " SELECT * ", s.from)
	if err != nil && t.isNested(s.at) {
		return false, t.unsupported(k, "this name of the select list in QUALIFY in a subquery", "Repeat the expression.")
	}
	return slices.Contains(columnNames(columns), t.name(k)), err
}
