package rewrite

import "slices"

// relation is one item of a FROM clause, by the names that qualify its columns.
type relation struct {
	names []string // the alias, or the parts of the table's name; nil without either
	alias bool
}

// answersTo says whether a column qualified by the given names is of r.
func (r relation) answersTo(qualifier []string) bool {
	if len(r.names) == 0 || len(qualifier) == 0 {
		return false
	}
	n := min(len(qualifier), len(r.names))
	if len(qualifier) > len(r.names) {
		return false
	}
	return slices.Equal(qualifier[len(qualifier)-n:], r.names[len(r.names)-n:])
}

// relations reads the FROM clause in r, which begins with FROM. Behind a JOIN
// … ON it looks for the next table only, so it needs no expression.
func (t *tokenText) relations(r tokenRange) []relation {
	if r.empty() {
		return nil
	}
	return t.fromList(r.from+1, r.to)
}

func (t *tokenText) fromList(i, end int) []relation {
	var list []relation
	expected := true // a table is
	for i < end {
		switch {
		case t.punctuation(i, ","), t.word(i) == "join":
			expected = true
			i++
		case expected && (t.word(i) == "lateral" || t.word(i) == "only"):
			i++
		case expected:
			var found []relation
			found, i = t.fromItem(i, end)
			list = append(list, found...)
			expected = false
		default:
			i = t.skip(i)
		}
	}
	return list
}

// fromItem reads the table, call, subquery or join in brackets at i, with its
// alias, and returns the place after it.
func (t *tokenText) fromItem(i, end int) ([]relation, int) {
	var found []relation
	next := t.nameEnd(i)
	switch {
	case next > i && t.punctuation(next, "("): // a call is called as its function
		found = []relation{{names: t.dottedName(i, next)[(next-i)/2:]}}
		next = t.skip(next)
		if t.words(next, "with", "ordinality") {
			next += 2
		}
	case next > i:
		found = []relation{{names: t.dottedName(i, next)}}
		if t.operator(next, "*") {
			next++
		}
	case t.punctuation(i, "("):
		next = t.skip(i)
		if inner := i + 1; !t.isSubquery(i) {
			found = t.fromList(inner, next-1)
		} else {
			found = []relation{{}}
		}
	default:
		return []relation{{}}, i + 1
	}
	if t.word(next) == "as" {
		next++
	}
	if next < end && t.isName(next) && !t.continuesQuery(next) && !reserved[t.word(next)] {
		return []relation{{names: []string{t.name(next)}, alias: true}}, next + 1
	}
	return found, next
}

// isSubquery says whether the bracket at i is around a query.
func (t *tokenText) isSubquery(i int) bool {
	for t.punctuation(i, "(") {
		i++
	}
	return t.startsQuery(i)
}
