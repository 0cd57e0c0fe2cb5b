package rewrite

import (
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// translateGroupByAll makes GROUP BY ALL to GROUP BY with the ordinals of the
// items that hold no aggregate. Should an item be misread, Postgres refuses
// the result: a column outside of an aggregate must be grouped, an aggregate
// must not.
//
// A column that is called "all" does not change what a bare ALL means: in
// PostgreSQL such a name is always quoted.
func (t *tokenText) translateGroupByAll(s selectClauses, c Catalog) error {
	isAggregate, err := t.aggregates(s, c)
	if err != nil {
		return err
	}
	var ordinals []string
	column := 1
	for _, item := range s.items {
		if at := t.grouping(item); at >= 0 {
			return t.unsupported(at, t.word(at)+" together with GROUP BY ALL", "List the grouping columns in ROLLUP, CUBE or GROUPING SETS.")
		}
		width := 1
		if isStar, columns, err := t.starWidth(s, item, c); err != nil {
			return err
		} else if isStar {
			width = columns
		} else if over := t.window(item); over >= 0 {
			return t.unsupported(over, "a window function together with GROUP BY ALL", "List the grouping columns.")
		} else if t.calls(item, isAggregate) {
			column++
			continue
		}
		for range width {
			ordinals = append(ordinals, strconv.Itoa(column))
			column++
		}
	}
	g := s.groupBy
	if len(ordinals) > 0 {
		t.replace(g, g+3, "GROUP BY "+strings.Join(ordinals, ", "))
		return nil
	}
	for _, item := range s.items {
		if refersOutside(t.translated(item.expression), isAggregate) {
			return t.fail(g, pgdiag.New("42803", "cannot infer grouping columns for GROUP BY ALL").
				WithDetail("UNRESOLVED_ALL_IN_GROUP_BY").
				WithHint("Every item of the select list holds an aggregate; list the grouping columns."))
		}
	}
	t.replace(g, g+3, "")
	return nil
}

// grouping returns the place of a call in the item that asks by what the row is
// grouped, -1 without one.
func (t *tokenText) grouping(item selectItem) int {
	for k := item.expression.from; k < item.expression.to; k++ {
		if w := t.word(k); (w == "grouping" || w == "grouping_id") && t.punctuation(k+1, "(") {
			return k
		}
	}
	return -1
}

// grammarAggregates are aggregates that are no functions: PostgreSQL's grammar
// knows them, or the translation makes another aggregate of them.
var grammarAggregates = wordSet(`json_arrayagg json_objectagg any approx_count_distinct approx_percentile collect_list
	collect_set listagg max_by median min_by percentile percentile_approx some`)

// aggregates returns a test for the function names of a select list.
func (t *tokenText) aggregates(s selectClauses, c Catalog) (func(name string) bool, error) {
	var names []string
	seen := map[string]bool{}
	for _, item := range s.items {
		t.calls(item, func(name string) bool {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
			return false
		})
	}
	var found map[string]bool
	if len(names) > 0 {
		var err error
		if found, err = c.Aggregates(names); err != nil {
			return nil, err
		}
	}
	return func(name string) bool { return found[name] || grammarAggregates[name] }, nil
}

// starWidth returns how many columns a star item stands for.
func (t *tokenText) starWidth(s selectClauses, item selectItem, c Catalog) (isStar bool, columns int, err error) {
	if width, found := t.exceptWidths[item.expression.from]; found {
		return true, width, nil
	}
	if !t.star(item) {
		return false, 0, nil
	}
	names, err := t.starColumns(s, item.expression, c)
	return true, len(names), err
}

// calls says whether match accepts the name of a function that the item calls,
// outside of subqueries.
func (t *tokenText) calls(item selectItem, match func(name string) bool) bool {
	for k := item.expression.from; k < item.expression.to; {
		end := t.nameEnd(k)
		switch {
		case t.punctuation(k, "(") && t.isSubquery(k):
			k = t.skip(k)
		case end == k:
			k++
		case t.punctuation(end, "(") && (!reserved[t.word(k)] || grammarAggregates[t.word(k)] && t.isBoundary(k-1)) && match(strings.Join(t.dottedName(k, end), ".")):
			return true
		default:
			k = end
		}
	}
	return false
}

// window returns the place of an OVER of the item, outside of subqueries; -1
// if there is none.
func (t *tokenText) window(item selectItem) int {
	for k := item.expression.from; k < item.expression.to; k++ {
		switch {
		case t.punctuation(k, "(") && t.isSubquery(k):
			k = t.partner[k]
		case t.word(k) == "over" && t.punctuation(k-1, ")"):
			return k
		}
	}
	return -1
}

// translated returns the tokens of r with the edits so far.
func (t *tokenText) translated(r tokenRange) string {
	if r.empty() {
		return ""
	}
	sortEdits(t.edits)
	var b translationBuilder
	b.edited(t.sql, t.offset, t.edits, t.tokens[r.from].Start, t.tokens[r.to-1].End)
	return b.translation().SQL
}
