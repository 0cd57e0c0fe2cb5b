package refresh

import (
	"slices"
)

// binding says that rows of a scan matter only if fromExpression on them equals
// toExpression on some row that the group to returns.
type binding struct {
	fromExpression, toExpression *expression
	to                           *scanGroup
}

// carriesValues are the nodes that return, as a column shown under a table's
// name, values that some row of that table below them has: what it shows was
// read by the scan of that name, whatever else the node does with rows. Append
// and its kin show the columns of their first input for those of all; a CTE, a
// subquery, a set operation and a recursive query give columns names of their
// own.
var carriesValues = map[string]bool{
	"Nested Loop": true, "Hash Join": true, "Merge Join": true,
	"Hash": true, "Sort": true, "Incremental Sort": true, "Materialize": true, "Memoize": true,
	"Gather": true, "Gather Merge": true,
	"Group": true, "Aggregate": true, "Unique": true, "WindowAgg": true, "Limit": true,
}

// carriesRows are the nodes that handle each row of an input by itself: what
// they return of one does not depend on another of the same table, and holds
// its columns. Above a window, LIMIT or DISTINCT, a row that a join drops may
// have changed others; above an aggregate, those of its group.
var carriesRows = map[string]bool{
	"Nested Loop": true, "Hash Join": true, "Merge Join": true,
	"Hash": true, "Sort": true, "Incremental Sort": true, "Materialize": true, "Memoize": true,
	"Gather": true, "Gather Merge": true,
}

// side is an input of a join.
type side struct{ joinType, relationship string }

// dropsUnmatched are the inputs whose rows matter to a join's result only if
// they match a row of the other input. Not here are the inputs that a join
// preserves (the outer one of Left, the inner one of Right, both of Full), and
// those in front of NOT EXISTS (the outer one of Anti, the inner one of Right
// Anti).
var dropsUnmatched = map[side]bool{
	{"Inner", "Outer"}: true, {"Inner", "Inner"}: true,
	{"Left", "Inner"}: true, {"Right", "Outer"}: true,
	{"Semi", "Outer"}: true, {"Semi", "Inner"}: true,
	{"Right Semi", "Outer"}: true, {"Right Semi", "Inner"}: true,
	{"Anti", "Inner"}: true, {"Right Anti", "Outer"}: true,
}

// returnsColumns are the inputs whose rows a join passes on. Of EXISTS and NOT
// EXISTS only one side is returned.
var returnsColumns = map[side]bool{
	{"Inner", "Outer"}: true, {"Inner", "Inner"}: true,
	{"Left", "Outer"}: true, {"Left", "Inner"}: true,
	{"Right", "Outer"}: true, {"Right", "Inner"}: true,
	{"Full", "Outer"}: true, {"Full", "Inner"}: true,
	{"Semi", "Outer"}: true, {"Right Semi", "Inner"}: true,
	{"Anti", "Outer"}: true, {"Right Anti", "Inner"}: true,
}

var joins = map[string]bool{"Nested Loop": true, "Hash Join": true, "Merge Join": true}

// bindings returns what binds the rows of a scan to those of other groups: the
// conditions of its own that name another table, and those of the joins above
// that drop its rows.
//
// The claim is: take away the rows of the scan that match no row of the other
// group that matters itself, and the plan's result is the same. A scan's own
// condition never lets them through. A join drops them, if nothing between has
// let them change other rows; what they are joined with in between has their
// columns and is dropped with them.
func (p *planProof) bindings(g *scanGroup, scan *planNode) []binding {
	var found []binding
	for _, t := range scanConditions(scan) {
		if b, ok := p.equality(t, g, scan.alias); ok && p.suppliesScan(scan, b.to) {
			found = append(found, b)
		}
	}
	var grouped []*planNode
	for node := g.top; node.parent != nil; node = node.parent {
		above, at := node.parent, side{node.parent.joinType, node.relationship}
		switch {
		case node.relationship != "Outer" && node.relationship != "Inner":
			return found
		case len(above.groupKeys) > 0 && (above.kind == "Aggregate" || above.kind == "Group"):
			grouped = append(grouped, above)
		case !carriesRows[above.kind]:
			return found
		case joins[above.kind]:
			if dropsUnmatched[at] {
				for _, b := range p.joinBindings(g, node, above) {
					if p.groupBy(grouped, g, b.fromExpression) {
						found = append(found, b)
					}
				}
			}
			if !returnsColumns[at] {
				return found
			}
		}
	}
	return found
}

// groupBy reports whether aggregates group by an expression, so that rows of
// other values of it are in other groups.
func (p *planProof) groupBy(aggregates []*planNode, g *scanGroup, e *expression) bool {
	for _, aggregate := range aggregates {
		if !imageTypes[e.typ] || !slices.ContainsFunc(aggregate.groupKeys, func(shown string) bool {
			terms := conjuncts(shown)
			if len(terms) != 1 {
				return false
			}
			groupedBy := p.resolver(g, g.name).resolve(terms[0])
			return groupedBy != nil && groupedBy.sql(columnText) == e.sql(columnText)
		}) {
			return false
		}
	}
	return true
}

// joinBindings returns the equalities between a group and the other input of a
// join that its rows come to in node.
func (p *planProof) joinBindings(g *scanGroup, node, join *planNode) []binding {
	other := join.child("Inner")
	if node.relationship == "Inner" {
		other = join.child("Outer")
	}
	var found []binding
	for _, field := range []string{fieldHashCond, fieldMergeCond, fieldJoinFilter} {
		if join.conditions[field] == "" {
			continue
		}
		for _, t := range conjuncts(join.conditions[field]) {
			if b, ok := p.equality(t, g, g.name); ok && returnsValues(other, b.to) {
				found = append(found, b)
			}
		}
	}
	return found
}

// equality reads a condition as an equality between a group, under a name, and
// another group.
func (p *planProof) equality(t *term, g *scanGroup, name string) (binding, bool) {
	if t.kind != termOperator || t.name != "=" || p.byName[g.name] != g {
		return binding{}, false
	}
	for _, sides := range [][2]*term{{t.args[0], t.args[1]}, {t.args[1], t.args[0]}} {
		to := p.byName[onlyAlias(sides[1])]
		if onlyAlias(sides[0]) != name || to == nil || to == g {
			continue
		}
		from, onto := p.resolver(g, name).resolve(sides[0]), p.resolver(to, to.name).resolve(sides[1])
		if from != nil && onto != nil && joinable(from, onto) && to.source.isReadable() {
			return binding{fromExpression: from, toExpression: onto, to: to}, true
		}
	}
	return binding{}, false
}

// isReadable reports whether a route may read the source's rows as they are:
// planning a query runs functions in the indexes, constraints and statistics of
// its tables.
func (s *source) isReadable() bool { return !s.runsFunctions }

// joinable reports whether an equality of the two can be asked again in SQL of
// our own.
func joinable(a, b *expression) bool {
	return keyTypes[a.typ] != "" && comparableTypes(a.typ, b.typ)
}

// onlyAlias returns the one relation that a term names, "" if it names none or
// several.
func onlyAlias(t *term) string {
	if t.kind == termColumn {
		return t.alias
	}
	only := ""
	for _, argument := range t.args {
		if argument.kind == termConstant {
			continue
		}
		alias := onlyAlias(argument)
		if alias == "" || only != "" && only != alias {
			return ""
		}
		only = alias
	}
	return only
}

// suppliesScan reports whether a group's values reach the condition of a scan:
// the scan is the inner input of a nested loop whose outer input returns them,
// or belongs to a subplan that is called with them.
func (p *planProof) suppliesScan(scan *planNode, to *scanGroup) bool {
	for node := scan; node.parent != nil; node = node.parent {
		caller := node.parent
		switch node.relationship {
		case "Inner":
			if caller.kind == "Nested Loop" && returnsValues(caller.child("Outer"), to) {
				return true
			}
		case "SubPlan":
			if returnsValues(caller, to) {
				return true
			}
		}
	}
	return false
}

// returnsValues reports whether a column shown under the group's name at a
// node, or above it, holds a value that the group's scans have read.
func returnsValues(node *planNode, g *scanGroup) bool {
	if node == nil {
		return false
	}
	if node == g.top {
		return true
	}
	if !carriesValues[node.kind] {
		return false
	}
	for _, input := range node.inputs() {
		if returnsValues(input, g) {
			return true
		}
	}
	return false
}
