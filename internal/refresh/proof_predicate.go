package refresh

import (
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// reach is what the changes of one source can have touched: rows with one of
// the tuples in the keys.
type reach struct {
	keys   []key
	tuples [][]pgsession.Value
}

// byLeadingKey is the same by one of the keys only, for a shorter condition that
// holds for more rows.
func (r reach) byLeadingKey() reach {
	if len(r.keys) < 2 {
		return r
	}
	lead := leadingKey(r.keys, r.tuples)
	short := reach{keys: r.keys[lead : lead+1]}
	for _, value := range distinct(r.tuples, lead) {
		short.tuples = append(short.tuples, []pgsession.Value{value})
	}
	return short
}

// mostArms bounds the arms of an OR. The time that planning takes grows faster
// than their number: from a tenth of a second for some hundreds of them to
// minutes for some thousands.
const mostArms = 300

// nowhere reports that no row can have been touched. Without tuples that is not
// so yet: what is not known of NULL may still have led to rows with it.
func (r reach) nowhere() bool { return len(r.tuples) == 0 && narrowed(r.keys, nil) == "false" }

func tuplesOf(reached []reach) (n int) {
	for _, r := range reached {
		n += len(r.tuples)
	}
	return n
}

// narrowedBy is the predicate of the rows that the changes of some sources can
// have reached.
func narrowedBy(reached []reach) string {
	parts := make([]string, len(reached))
	for i, r := range reached {
		parts[i] = narrowed(r.keys, r.tuples)
	}
	return strings.Join(parts, "\nor ")
}

// narrowed returns the condition that holds for every row of the view that a
// source's changes can have touched, given the tuples of one of its routes: a
// predicate on bare columns, which means the same under every search_path.
//
// Planners do best with literals, OR-ed for each value of the key that has
// fewest: an index on it, or a partition, is then used. Of more than mostArms
// each key gets one list, for a condition that holds for more rows.
func narrowed(keys []key, tuples [][]pgsession.Value) string {
	if len(keys) == 0 {
		return "true"
	}
	lead := leadingKey(keys, tuples)
	others := slices.Delete(slices.Clone(keys), lead, lead+1)
	var arms []string
	for _, group := range groupTuples(tuples, lead) {
		arms = append(arms, withOthers(valuesOf(keys[lead], group.values), others, group.rest))
	}
	if null, rest := nullTuples(keys[lead], tuples, lead); null {
		arms = append(arms, withOthers(isNullSQL(keys[lead]), others, rest))
	}
	switch len(arms) {
	case 0:
		return "false"
	case 1:
		return arms[0]
	}
	return "(" + strings.Join(arms, "\n or ") + ")"
}

// leadingKey is the key with the fewest distinct values.
func leadingKey(keys []key, tuples [][]pgsession.Value) int {
	lead, fewest := 0, -1
	for i := range keys {
		if n := len(distinct(tuples, i)); fewest < 0 || n < fewest {
			lead, fewest = i, n
		}
	}
	return lead
}

// distinct returns the values of one key, each once, in their order.
func distinct(tuples [][]pgsession.Value, i int) []pgsession.Value {
	seen := map[pgsession.Value]bool{}
	var values []pgsession.Value
	for _, tuple := range tuples {
		if !seen[tuple[i]] {
			seen[tuple[i]] = true
			values = append(values, tuple[i])
		}
	}
	return values
}

// tupleGroup are the tuples of some values of the leading key that have the
// same values of the others.
type tupleGroup struct {
	values []pgsession.Value   // of the leading key
	rest   [][]pgsession.Value // tuples of the others
}

// groupTuples puts together the tuples of one leading value other than NULL,
// and then the values whose tuples are the same, or all if they would be too
// many groups.
func groupTuples(tuples [][]pgsession.Value, lead int) []tupleGroup {
	rests := map[pgsession.Value][][]pgsession.Value{}
	for _, tuple := range tuples {
		rests[tuple[lead]] = append(rests[tuple[lead]], slices.Delete(slices.Clone(tuple), lead, lead+1))
	}
	var groups []tupleGroup
	byRest := map[string]int{}
	for _, value := range notNull(distinct(tuples, lead)) {
		text := restText(rests[value])
		at, known := byRest[text]
		if !known {
			at = len(groups)
			byRest[text] = at
			groups = append(groups, tupleGroup{rest: rests[value]})
		}
		groups[at].values = append(groups[at].values, value)
	}
	if len(groups) <= mostArms {
		return groups
	}
	all := tupleGroup{}
	for _, group := range groups {
		all.values, all.rest = append(all.values, group.values...), append(all.rest, group.rest...)
	}
	return []tupleGroup{all}
}

func restText(tuples [][]pgsession.Value) string {
	lines := make([]string, len(tuples))
	for i, tuple := range tuples {
		for _, v := range tuple {
			if v.Null {
				lines[i] += "null, "
			} else {
				lines[i] += rewrite.QuoteLiteral(v.Text) + ", "
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// nullTuples reports whether rows with NULL in a key can be touched, and the
// tuples of the other keys that they go with. Where NULL is not proved, that is
// every tuple.
func nullTuples(k key, tuples [][]pgsession.Value, lead int) (bool, [][]pgsession.Value) {
	if k.NullFree {
		return false, nil
	}
	var rest [][]pgsession.Value
	touched := !k.NullProved
	for _, tuple := range tuples {
		if tuple[lead].Null || !k.NullProved {
			touched = true
			rest = append(rest, slices.Delete(slices.Clone(tuple), lead, lead+1))
		}
	}
	return touched, rest
}

// withOthers adds to a condition on the leading key what holds for each of the
// other keys.
func withOthers(condition string, others []key, rest [][]pgsession.Value) string {
	if len(others) == 0 {
		return condition
	}
	conditions := []string{condition}
	for i, k := range others {
		var arms []string
		if values := notNull(distinct(rest, i)); len(values) > 0 {
			arms = append(arms, valuesOf(k, values))
		}
		if null, _ := nullTuples(k, rest, i); null {
			arms = append(arms, isNullSQL(k))
		}
		switch len(arms) {
		case 0:
			return "false"
		case 1:
			conditions = append(conditions, arms[0])
		default:
			conditions = append(conditions, "("+strings.Join(arms, " or ")+")")
		}
	}
	return "(" + strings.Join(conditions, " and ") + ")"
}

func notNull(values []pgsession.Value) []pgsession.Value {
	return slices.DeleteFunc(values, func(v pgsession.Value) bool { return v.Null })
}

// valuesOf is the condition that a key has one of some values.
func valuesOf(k key, values []pgsession.Value) string {
	column := rewrite.QuoteIdentifier(k.Column) + " operator(pg_catalog.=) "
	if len(values) == 1 {
		return column + rewrite.QuoteLiteral(values[0].Text) + "::" + k.Type
	}
	literals := make([]string, len(values))
	for i, v := range values {
		literals[i] = rewrite.QuoteLiteral(v.Text)
	}
	return column + "any (array[" + strings.Join(literals, ", ") + "]::" + k.Type + "[])"
}

func isNullSQL(k key) string { return rewrite.QuoteIdentifier(k.Column) + " is null" }
