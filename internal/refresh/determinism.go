package refresh

import (
	"context"
	_ "embed" // SQL files
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// issue is why a query's result does not follow from the rows it reads, so that
// it cannot be refreshed incrementally.
type issue struct {
	Type     string
	Function string `json:",omitempty"` // or the clause, or the column
}

// resolved reports that the issue is the clock, read in a way that a predicate
// is resolved of.
func (i issue) resolved() bool {
	return i.Type == issueClock && (clockFunctions[i.Function] || clockKeywords[i.Function])
}

// The types of issues.
const (
	issueVolatile     = "VOLATILE_FUNCTION"    // another value each time
	issueClock        = "TEMPORAL_FUNCTION"    // depends on when, or as whom, it is asked
	issueUserFunction = "USER_FUNCTION"        // may read anything
	issueState        = "STATE_FUNCTION"       // reads more than its arguments
	issueRowPlace     = "PHYSICAL_ROW"         // depends on where rows lie
	issueSkipLocked   = "SKIP_LOCKED"          // depends on what others lock
	issueOpaque       = "FUNCTION_WITH_TABLES" // an immutable function that reads tables
)

//go:embed determinism.sql
var determinismSQL string

// foldsSQL asks whether one of the collations $1 finds equal what is not the
// same, or one of the types $2 is somebody's own, with an equality of its own.
const foldsSQL = `
	select exists (select from pg_collation c where c.oid = any ($1::oid[]) and not c.collisdeterministic)
	    or exists (select from pg_type t where t.oid = any ($2::oid[]) and t.oid >= 16384 and t.typtype not in ('d', 'e'))`

// queryFacts are what the rules of a view tell about its query.
type queryFacts struct {
	issues []issue
	// aliases are the names in FROM of everything that is no table: views,
	// subqueries, CTEs, joins, functions.
	aliases map[string]bool
	// renamed are the tables that are read with column names of the query's own.
	renamed map[uint32]bool
	// names are the column names by which a rule knows a table.
	names map[uint32][][]string
	// wholeRows says that some row is used as one value: the columns read are
	// more than those named.
	wholeRows bool
	// implicit are the types whose values an implicit cast may have changed;
	// everything says that any may have.
	implicit map[uint32]bool
	anyCast  bool
	// folds says that values which are not the same may count as equal, in a way
	// that a plan does not show: the planner takes COLLATE, and casts between
	// types of one representation, out of expressions.
	folds bool
	// opaque says that a function may bring tables and names of its own into the
	// plan.
	opaque bool
}

// sqlValueFunctions are the functions without brackets, by their number in
// PostgreSQL's SQLValueFunctionOp.
var sqlValueFunctions = []string{
	"current_date", "current_time", "current_time", "current_timestamp", "current_timestamp",
	"localtime", "localtime", "localtimestamp", "localtimestamp",
	"current_role", "current_user", "user", "session_user", "current_catalog", "current_schema",
}

// clockKeywords are those of sqlValueFunctions that read the clock.
var clockKeywords = nameSet("current_date current_time current_timestamp localtime localtimestamp")

// readQueryFacts reads the rules of a view and asks Postgres about the
// functions in them.
func readQueryFacts(ctx context.Context, s pgsession.Session, rules []viewRule) (*queryFacts, error) {
	facts := &queryFacts{
		aliases: map[string]bool{}, renamed: map[uint32]bool{}, names: map[uint32][][]string{}, implicit: map[uint32]bool{},
	}
	c := calledFunctions{implicit: map[uint32]bool{}}
	for _, rule := range rules {
		facts.aliases[rule.name] = true
		parseTree(rule.action).walk(func(n *treeNode) {
			facts.readNode(n)
			c.readNode(n)
		})
	}
	rows, err := s.Query(ctx, determinismSQL, oidArray(c.functions), oidArray(c.operators), oidArray(c.types))
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		f := readFunction(r)
		if found := f.issue(); found != nil {
			facts.add(*found)
		}
		if c.implicit[f.oid] {
			facts.implicit[f.argument] = true
		}
		isCompat := f.schema == compatSchema
		facts.anyCast = facts.anyCast || f.isSQL
		facts.opaque = facts.opaque || f.isSQL && f.returnsSet && !isCompat
	}
	facts.anyCast = facts.anyCast || c.oddCast
	rows, err = s.Query(ctx, foldsSQL, oidArray(c.collations), oidArray(c.relabelled))
	if err != nil {
		return nil, err
	}
	facts.folds = rows[0][0].Text == "t"
	return facts, nil
}

func (facts *queryFacts) add(i issue) {
	if !slices.Contains(facts.issues, i) {
		facts.issues = append(facts.issues, i)
	}
}

// catalogTypes are the types whose values are printed as the names that objects
// of the database have at that time. Those of text search are left out: they
// choose what a function does, and the fingerprint has them.
var catalogTypes = map[string]string{
	"24": "regproc", "2202": "regprocedure", "2203": "regoper", "2204": "regoperator", "2205": "regclass", "2206": "regtype",
	"4096": "regrole", "4089": "regnamespace", "4191": "regcollation",
}

func (facts *queryFacts) readNode(n *treeNode) {
	for field, value := range n.fields {
		if name := catalogTypes[value.atom]; name != "" && strings.HasSuffix(field, "type") {
			facts.add(issue{Type: issueState, Function: name})
		}
	}
	if n.has("rtekind") { // RANGETBLENTRY; RTE in PostgreSQL 14
		facts.readRelation(n)
	}
	switch n.kind {
	case "VAR":
		number, _ := strconv.Atoi(n.atom("varattno")) // Postgres writes a number
		facts.wholeRows = facts.wholeRows || number == 0
		if number < 0 {
			facts.add(issue{Type: issueRowPlace, Function: systemColumns[number]})
		}
	case "SQLVALUEFUNCTION":
		name := ""
		if i, err := strconv.Atoi(n.atom("op")); err == nil && i >= 0 && i < len(sqlValueFunctions) {
			name = sqlValueFunctions[i]
		}
		facts.add(issue{Type: issueClock, Function: name})
	case "TABLESAMPLECLAUSE":
		facts.add(issue{Type: issueRowPlace, Function: "tablesample"})
	case "ROWMARKCLAUSE":
		if n.atom("waitPolicy") == "1" {
			facts.add(issue{Type: issueSkipLocked, Function: "skip locked"})
		}
	}
}

// systemColumns are named by their negative attribute numbers. An UPDATE can
// change them and no other.
var systemColumns = map[int]string{-1: "ctid", -2: "xmin", -3: "cmin", -4: "xmax", -5: "cmax", -6: "tableoid"}

func (facts *queryFacts) readRelation(n *treeNode) {
	names, alias := n.fields["eref"].node, n.fields["alias"].node
	if names == nil {
		return
	}
	if kind := n.atom("relkind"); n.atom("rtekind") != "0" || kind != "r" && kind != "p" {
		facts.aliases[names.atom("aliasname")] = true
		return
	}
	oid := parseOID(n.atom("relid"))
	facts.names[oid] = append(facts.names[oid], names.fields["colnames"].strings())
	if alias != nil && !alias.fields["colnames"].isNull() {
		facts.renamed[oid] = true
	}
}

// calledFunctions collects the OIDs in the nodes of a query.
type calledFunctions struct {
	functions, operators, types []uint32
	collations                  []uint32        // of every expression
	relabelled                  []uint32        // types that values are cast to as they are
	implicit                    map[uint32]bool // functions of implicit casts
	oddCast                     bool            // an implicit cast without a function, other than to text
}

// The number of an implicit cast in PostgreSQL's CoercionForm.
const implicitCast = "2"

func (c *calledFunctions) readNode(n *treeNode) {
	for _, field := range []string{"funcid", "opfuncid", "aggfnoid", "winfnoid"} {
		if oid := parseOID(n.atom(field)); oid != 0 {
			c.functions = append(c.functions, oid)
		}
	}
	switch {
	case n.atom("funcformat") == implicitCast:
		c.implicit[parseOID(n.atom("funcid"))] = true
	case n.has("relabelformat"):
		typ := parseOID(n.atom("resulttype"))
		c.relabelled = append(c.relabelled, typ)
		c.oddCast = c.oddCast || n.atom("relabelformat") == implicitCast && !isText(typ)
	case n.kind == "COERCEVIAIO":
		c.types = append(c.types, parseOID(n.atom("resulttype")))
		c.oddCast = c.oddCast || n.atom("coerceformat") == implicitCast
	}
	for field, value := range n.fields {
		if strings.Contains(field, "coll") {
			for _, element := range append(value.list, value) {
				if oid := parseOID(element.atom); oid != 0 {
					c.collations = append(c.collations, oid)
				}
			}
		}
	}
	for _, field := range []string{"opno", "opnos"} {
		value := n.fields[field]
		for _, element := range append(value.list, value) {
			if oid := parseOID(element.atom); oid != 0 {
				c.operators = append(c.operators, oid)
			}
		}
	}
}

// function is what the catalog says of a function that a query calls, or of a
// part of an aggregate that it calls.
type function struct {
	oid               uint32
	isBuiltin         bool
	schema, name      string
	volatility        string // pg_proc.provolatile
	arguments         string // how many
	isSQL, returnsSet bool
	readsTables       bool
	argument          uint32 // type of the first
}

func readFunction(r pgsession.Row) function {
	return function{
		oid: parseOID(r[0].Text), isBuiltin: r[1].Text == "t", schema: r[2].Text, name: r[3].Text, volatility: r[4].Text,
		arguments: r[5].Text, isSQL: r[6].Text == "t", returnsSet: r[7].Text == "t", readsTables: r[8].Text == "t",
		argument: parseOID(r[9].Text),
	}
}

// issue is why the function's result does not follow from its arguments, nil if
// it does.
func (f function) issue() *issue {
	name := f.name
	if !f.isBuiltin {
		name = rewrite.QuoteIdentifier(f.schema) + "." + rewrite.QuoteIdentifier(f.name)
	}
	isTrusted := f.isBuiltin || f.schema == compatSchema
	switch {
	case f.volatility == "v":
		return &issue{Type: issueVolatile, Function: name}
	case !isTrusted && f.readsTables:
		return &issue{Type: issueOpaque, Function: name}
	case f.volatility == "i":
		return nil
	case !isTrusted:
		return &issue{Type: issueUserFunction, Function: name}
	case clockFunctions[f.name] || f.isBuiltin && f.name == "age" && f.arguments == "1":
		return &issue{Type: issueClock, Function: name}
	case f.isBuiltin && !settledFunctions[f.name]:
		return &issue{Type: issueState, Function: name}
	}
	return nil
}
