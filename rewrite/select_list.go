package rewrite

// tokenRange is the tokens [from, to).
type tokenRange struct{ from, to int }

func (r tokenRange) empty() bool { return r.from >= r.to }

// selectClauses is one SELECT of a query and where its clauses are.
type selectClauses struct {
	at      int // SELECT
	items   []selectItem
	from    tokenRange // with the word FROM; empty without one
	where   tokenRange // the condition
	groupBy int        // GROUP, -1 without
	having  tokenRange // the condition
	qualify tokenRange // the condition of Databricks' QUALIFY
	orderBy int        // ORDER, -1 without
	end     int        // the place after its last clause: a set operation, a bracket, the end
}

// selectItem is one item of a select list.
type selectItem struct {
	expression tokenRange
	alias      int // the place of its name, -1 if none is given
}

// star says whether the item is * or x.*.
func (t *tokenText) star(item selectItem) bool {
	last := item.expression.to - 1
	return t.operator(last, "*") && (last == item.expression.from || t.punctuation(last-1, "."))
}

// readSelect reads the SELECT at i.
func (t *tokenText) readSelect(i int) selectClauses {
	s := selectClauses{at: i, groupBy: -1, orderBy: -1}
	k := i + 1
	switch t.word(k) {
	case "all":
		k++
	case "distinct":
		if k++; t.word(k) == "on" && t.punctuation(k+1, "(") {
			k = t.skip(k + 1)
		}
	}
	listEnd, start := -1, k
	var clause *tokenRange // the one that k is in, if its end matters
	for ; k < len(t.tokens) && !t.closes(k) && !t.isSetOperation(k); k = t.skip(k) {
		if !t.startsClause(k) {
			if t.punctuation(k, ",") && listEnd < 0 {
				s.items = append(s.items, t.readItem(start, k))
				start = k + 1
			}
			continue
		}
		if listEnd < 0 {
			listEnd = k
		}
		if clause != nil {
			clause.to = k
		}
		clause = s.begin(t.word(k), k)
	}
	s.end = k
	if clause != nil {
		clause.to = k
	}
	if listEnd < 0 {
		listEnd = k
	}
	if start < listEnd {
		s.items = append(s.items, t.readItem(start, listEnd))
	}
	return s
}

// begin notes the clause whose first word stands at k, and returns the range
// that it begins, if there is one.
func (s *selectClauses) begin(word string, k int) *tokenRange {
	switch word {
	case "from":
		s.from.from = k
		return &s.from
	case "where":
		s.where.from = k + 1
		return &s.where
	case "group":
		s.groupBy = k
	case "having":
		s.having.from = k + 1
		return &s.having
	case "qualify":
		s.qualify.from = k + 1
		return &s.qualify
	case "order":
		s.orderBy = k
	}
	return nil
}

// startsClause says whether the word at k begins a clause of a SELECT.
func (t *tokenText) startsClause(k int) bool {
	switch t.word(k) {
	case "from":
		return t.word(k-1) != "distinct" || t.word(k-2) != "is" && t.word(k-2) != "not" // IS [NOT] DISTINCT FROM
	case "group", "order":
		return t.word(k+1) == "by"
	case "where", "having", "window", "limit", "offset", "fetch", "for", "into":
		return true
	case "qualify":
		return t.isQualify(k)
	}
	return false
}

func (t *tokenText) isSetOperation(k int) bool {
	switch t.word(k) {
	case "union", "intersect":
		return true
	case "except":
		return !t.isStarExcept(k)
	}
	return t.isMinus(k)
}

// isMinus says whether the word at k is Databricks' MINUS, and not a name.
func (t *tokenText) isMinus(k int) bool {
	if t.word(k) != "minus" {
		return false
	}
	k++
	if w := t.word(k); w == "all" || w == "distinct" {
		k++
	}
	for t.punctuation(k, "(") {
		k++
	}
	return t.startsQuery(k)
}

// asWords are the words that PostgreSQL takes for an alias only behind AS.
var asWords = wordSet("day hour minute month second year")

// readItem reads the item in [from, to).
func (t *tokenText) readItem(from, to int) selectItem {
	item := selectItem{tokenRange{from, to}, -1}
	last := to - 1
	switch {
	case last <= from || !t.isName(last) || t.punctuation(last-1, "."):
	case t.word(last-1) == "as":
		item = selectItem{tokenRange{from, last - 1}, last}
	case t.endsOperand(last-1) && !t.isPartOfExpression(from, last):
		item = selectItem{tokenRange{from, last}, last}
	}
	return item
}

// isPartOfExpression says whether the name at last, which has no AS, belongs
// to the expression that begins at from.
func (t *tokenText) isPartOfExpression(from, last int) bool {
	if w := t.word(last); reserved[w] {
		return true
	}
	for at := from; at < last; {
		end := t.comparisonEnd(at)
		switch {
		case end > last:
			return true
		case end == at:
			at++
		default:
			at = end
		}
	}
	return false
}

// columnReference returns the parts of the name that is the whole expression
// of the item, nil if it is anything else.
func (t *tokenText) columnReference(item selectItem) []string {
	e := item.expression
	if e.empty() || t.nameEnd(e.from) != e.to || reserved[t.word(e.from)] {
		return nil
	}
	return t.dottedName(e.from, e.to)
}

// outputName returns the name of the item's column, "" when PostgreSQL makes
// one up.
func (t *tokenText) outputName(item selectItem) string {
	if item.alias >= 0 {
		return t.name(item.alias)
	}
	if parts := t.columnReference(item); parts != nil {
		return parts[len(parts)-1]
	}
	return ""
}
