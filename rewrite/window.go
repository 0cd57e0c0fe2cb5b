package rewrite

import "strings"

// TargetAlias is what the target, and the query standing in for it, are called
// in the statements that write a window. A predicate names bare columns, so it
// means the same on both sides.
const TargetAlias = "rwproxy_target"

// Window is the rows of a target for which a predicate is true, and the flow
// that writes them.
type Window struct {
	Target    string         // qualified and quoted
	View      string         // the flow's view, qualified and quoted
	Columns   []WindowColumn // of the target
	Predicate string         // translated, on bare columns of the target; "" means every row
}

// WindowColumn is one column of a target.
type WindowColumn struct {
	Name string
	// Type is what the view's column is cast to before the predicate sees it,
	// "" when it has the target's type already.
	Type string
	// Function is what makes a value one of Type where the dialect's cast is
	// another than PostgreSQL's, else "".
	Function string
	// Collation is the target's, quoted and qualified, if the view's column has
	// another: comparisons in the predicate depend on it. Else it is "".
	Collation string
	// Missing says that the flow's query has no such column: the predicate
	// sees a NULL of Type, the row gets the column's default.
	Missing bool
}

// Delete removes the window's rows from the target.
func (w Window) Delete() string {
	return "delete from " + w.Target + " as " + TargetAlias + w.where()
}

// Remaining returns one row: whether the target has rows in the window.
func (w Window) Remaining() string {
	return "select exists (select from " + w.Target + " as " + TargetAlias + w.where() + ")"
}

// Select returns the rows of the flow's query that lie in the window.
func (w Window) Select() string {
	return "select " + w.insertedNames() + "\n" + w.source() + w.where()
}

// Returns returns one row: whether the flow's query has rows in the window.
func (w Window) Returns() string {
	return "select exists (select " + w.source() + w.where() + ")"
}

// Insert writes the rows of the flow's query that lie in the window.
//
// Each column is cast to the target's type before the predicate sees it:
// a timestamp stored into a date column would else be inserted under a value
// that the next Delete does not find.
func (w Window) Insert() string {
	return "insert into " + w.Target + " as " + TargetAlias + " (" + w.insertedNames() + ")\n" + w.Select()
}

// InsertChecked is Insert that returns one row: how many rows it wrote, and
// how many of them the target holds outside the window, where a trigger, a
// default or a generated column has moved them.
func (w Window) InsertChecked() string {
	return "with written as (\n" + w.Insert() + "\nreturning (" + w.predicate() + "\n) is true as inside)\n" +
		"select count(*), count(*) filter (where not inside) from written"
}

// Probe is a statement that fails if the predicate is not a boolean expression
// on the target's columns. It reads nothing when it is only described.
func (w Window) Probe() string {
	return probePrefix + w.Target + " as " + TargetAlias + w.where()
}

// ProbeSource is Probe against the flow's query.
func (w Window) ProbeSource() string { return "select 1 " + w.source() + w.where() }

const probePrefix = "select 1 from "

// PredicateOffset is where the predicate begins in a statement of w, in bytes.
func (w Window) PredicateOffset(statement string) int {
	return len(statement) - len(w.predicate()) - len(whereEnd)
}

const (
	whereStart = "\nwhere ("
	// The line end closes a line comment at the end of the predicate.
	whereEnd = "\n)"
)

func (w Window) where() string { return whereStart + w.predicate() + whereEnd }

func (w Window) predicate() string {
	if w.Predicate == "" {
		return "true"
	}
	return w.Predicate
}

func (w Window) insertedNames() string {
	var names []string
	for _, c := range w.Columns {
		if !c.Missing {
			names = append(names, QuoteIdentifier(c.Name))
		}
	}
	return strings.Join(names, ", ")
}

func (w Window) source() string {
	var columns []string
	for _, c := range w.Columns {
		name := QuoteIdentifier(c.Name)
		value := "q." + name
		if c.Missing {
			value = "null"
		}
		if c.Function != "" {
			value = c.Function + "(" + value + ")"
		}
		if c.Type != "" {
			value += "::" + c.Type
		}
		if c.Collation != "" {
			value += " collate " + c.Collation
		}
		columns = append(columns, value+" as "+name)
	}
	return "from (select " + strings.Join(columns, ", ") + " from " + w.View + " as q) as " + TargetAlias
}
