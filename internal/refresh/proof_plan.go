package refresh

import (
	"encoding/json"
	"fmt"
	"strings"
)

// planNode is one node of a plan, as EXPLAIN (VERBOSE, FORMAT JSON) shows it.
type planNode struct {
	kind         string // "Seq Scan"
	relationship string // to the node above: "Outer", "SubPlan"
	joinType     string // "Inner"
	schema       string
	relation     string
	alias        string
	subplan      string // "CTE recent", "InitPlan 1 (returns $0)"
	output       []string
	groupKeys    []string          // of an Aggregate or Group with one grouping
	conditions   map[string]string // by field: "Filter", "Hash Cond"
	parent       *planNode
	children     []*planNode
}

// unreadablePlan is why a plan proves nothing at all.
type unreadablePlan struct{ what string }

func (u unreadablePlan) Error() string { return u.what + " proves nothing" }

// The fields of a node whose text is a condition on its rows.
const (
	fieldFilter      = "Filter"
	fieldIndexCond   = "Index Cond"
	fieldRecheckCond = "Recheck Cond"
	fieldTidCond     = "TID Cond"
	fieldHashCond    = "Hash Cond"
	fieldMergeCond   = "Merge Cond"
	fieldJoinFilter  = "Join Filter"
)

// planFields are the fields of a node that are understood; true for those that
// are kept as conditions. A field that a later PostgreSQL adds could change
// what the others mean.
var planFields = map[string]bool{
	fieldFilter: true, fieldIndexCond: true, fieldRecheckCond: true, fieldTidCond: true,
	fieldHashCond: true, fieldMergeCond: true, fieldJoinFilter: true,

	"Node Type": false, "Parent Relationship": false, "Join Type": false, "Schema": false, "Relation Name": false,
	"Alias": false, "Subplan Name": false, "Output": false, "Plans": false, "Subplans Removed": false,

	// How rows are produced, never which.
	"Parallel Aware": false, "Async Capable": false, "Strategy": false, "Partial Mode": false, "Scan Direction": false,
	"Inner Unique": false, "Disabled": false, "Single Copy": false, "Workers Planned": false, "Params Evaluated": false,
	"Cache Key": false, "Cache Mode": false, "Index Name": false, "Sort Key": false, "Presorted Key": false,
	"Planned Partitions": false, "Order By": false,

	// What a node above the scans computes, or drops: a proof holds whatever
	// becomes of the rows that the scans return.
	"Group Key": false, "Grouping Sets": false, "Hash Key": false, "Hash Keys": false, "Group Keys": false, "Key": false,
	"Window": false, "Run Condition": false, "One-Time Filter": false, "Command": false, "CTE Name": false,
	"Function Name": false, "Function Call": false, "Table Function Name": false, "Table Function Call": false,
}

// tableScans are the nodes that read a table's rows and return those for which
// their conditions hold.
var tableScans = map[string]bool{
	"Seq Scan": true, "Index Scan": true, "Index Only Scan": true, "Bitmap Heap Scan": true,
	"Tid Scan": true, "Tid Range Scan": true,
}

// otherNodes are the nodes that read no table themselves. Not here, so that
// they prove nothing: Sample Scan (its rows depend on where rows lie), Foreign
// Scan and Custom Scan (they may read several tables), LockRows, Named
// Tuplestore Scan, ModifyTable, and what a later PostgreSQL adds.
var otherNodes = map[string]bool{
	"Bitmap Index Scan": true, "BitmapAnd": true, "BitmapOr": true, // below a Bitmap Heap Scan, which rechecks
	"Nested Loop": true, "Hash Join": true, "Merge Join": true,
	"Hash": true, "Sort": true, "Incremental Sort": true, "Materialize": true, "Memoize": true,
	"Gather": true, "Gather Merge": true,
	"Result": true, "ProjectSet": true, "Append": true, "Merge Append": true, "Recursive Union": true,
	"Subquery Scan": true, "Function Scan": true, "Table Function Scan": true, "Values Scan": true,
	"CTE Scan": true, "WorkTable Scan": true,
	"Group": true, "Aggregate": true, "WindowAgg": true, "Unique": true, "SetOp": true, "Limit": true,
}

// parsePlan reads the output of EXPLAIN. It fails for a plan that holds
// anything it does not know.
func parsePlan(text string) (*planNode, error) {
	var explained []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &explained); err != nil {
		return nil, fmt.Errorf("reading a plan: %w", err)
	}
	if len(explained) != 1 {
		return nil, unreadablePlan{"a query of several plans"}
	}
	for field := range explained[0] {
		if field != "Plan" && field != "Query Identifier" && field != "Settings" && field != "JIT" {
			return nil, unreadablePlan{"a plan with " + field}
		}
	}
	return parsePlanNode(explained[0]["Plan"], nil)
}

func parsePlanNode(text json.RawMessage, parent *planNode) (*planNode, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, fmt.Errorf("reading a plan: %w", err)
	}
	var known struct {
		Kind         string   `json:"Node Type"`
		Relationship string   `json:"Parent Relationship"`
		JoinType     string   `json:"Join Type"`
		Schema       string   `json:"Schema"`
		Relation     string   `json:"Relation Name"`
		Alias        string   `json:"Alias"`
		Subplan      string   `json:"Subplan Name"`
		Output       []string `json:"Output"`
		GroupKeys    []string `json:"Group Key"`
		Removed      int      `json:"Subplans Removed"`
		Plans        []json.RawMessage
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("reading a plan: %w", err)
	}
	n := &planNode{
		kind: known.Kind, relationship: known.Relationship, joinType: known.JoinType,
		schema: known.Schema, relation: known.Relation, alias: known.Alias, subplan: known.Subplan,
		output: known.Output, groupKeys: known.GroupKeys, conditions: map[string]string{}, parent: parent,
	}
	switch {
	case !tableScans[n.kind] && !otherNodes[n.kind]:
		return nil, unreadablePlan{"a node " + n.kind}
	case tableScans[n.kind] != (n.relation != ""):
		return nil, unreadablePlan{"a node " + n.kind + " of relation " + n.relation}
	case known.Removed != 0:
		return nil, unreadablePlan{"a plan that leaves partitions out"}
	}
	if fields["Grouping Sets"] != nil {
		n.groupKeys = nil
	}
	for field, value := range fields {
		isCondition, isKnown := planFields[field]
		if !isKnown {
			return nil, unreadablePlan{"a node with " + field}
		}
		if !isCondition {
			continue
		}
		var condition string
		if err := json.Unmarshal(value, &condition); err != nil {
			return nil, unreadablePlan{"a node with several " + field}
		}
		n.conditions[field] = condition
	}
	for _, plan := range known.Plans {
		child, err := parsePlanNode(plan, n)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, child)
	}
	return n, nil
}

// walk calls visit for the node and every node below it, subplans included.
func (n *planNode) walk(visit func(*planNode)) {
	visit(n)
	for _, child := range n.children {
		child.walk(visit)
	}
}

// inputs are the children that the node reads rows from: not the subplans that
// its expressions call.
func (n *planNode) inputs() []*planNode {
	var inputs []*planNode
	for _, child := range n.children {
		switch child.relationship {
		case "Outer", "Inner", "Member", "Subquery":
			inputs = append(inputs, child)
		}
	}
	return inputs
}

// child returns the input on one side, nil if there is none.
func (n *planNode) child(relationship string) *planNode {
	for _, c := range n.children {
		if c.relationship == relationship {
			return c
		}
	}
	return nil
}

// namesParameter reports whether a subplan below stores its result in the
// parameter of that name. Before PostgreSQL 17 EXPLAIN shows it as it shows a
// parameter of the statement.
func (n *planNode) namesParameter(name string) bool {
	found := false
	n.walk(func(n *planNode) {
		_, returned, _ := strings.Cut(n.subplan, " (returns ")
		for _, parameter := range strings.FieldsFunc(returned, func(r rune) bool { return r == ',' || r == ')' || r == ' ' }) {
			found = found || parameter == name
		}
	})
	return found
}
