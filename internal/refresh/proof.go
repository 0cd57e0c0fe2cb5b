package refresh

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// proof says which rows of a view can differ when rows of its sources do. It
// is kept with the flow, as JSON, for as long as nothing changes that it was
// made of.
type proof struct {
	Deterministic bool
	Issues        []issue
	Sources       []sourceProof
}

// sourceProof is the part of a proof about one source: a table, or the topmost
// of the partitioned or inherited tables that the view names.
type sourceProof struct {
	OID       uint32
	Name      string   // quoted, qualified
	Columns   []string // that the routes of this and of other sources need, leading first
	Reads     []string // columns that the view reads; nil for all
	Routes    []route  // in order of preference; none when a change may matter to any row
	Unscanned bool     // the view's rows do not depend on the source's
}

// key is a column of the view by which a change is narrowed. A row of the view
// that a change can touch has, in each key of a route, one of the values that
// the route's tuples have, or NULL.
type key struct {
	Column string
	Type   string // base type: quoted, qualified
	// NullProved says that a row with NULL in the column can be touched only when
	// a tuple has NULL there, NullFree that none can be.
	NullProved bool
	NullFree   bool
}

// knowsNull reports whether the tuples say if rows with NULL can be touched.
func (k key) knowsNull() bool { return k.NullProved || k.NullFree }

// maxCandidates bounds the columns that are tried as keys: each costs two plans
// of the view.
const maxCandidates = 24

// prove finds out which rows of a view can differ when its sources change. It
// runs in the client's session, inside a transaction; the frame is entered.
//
// view is quoted and qualified. candidates are the columns that may be keys, in
// order of preference: those whose type in the target is the view's.
//
// For each candidate k the planner is asked for the plan of the rows with one
// value of k. The plan is equivalent to the query. If every scan of a source in
// it carries a condition e = value, the rows with that value depend on the
// source only through its rows with that e.
func prove(ctx context.Context, f *frame, view string, candidates []string) (*proof, error) {
	all, err := readSources(ctx, f.session, view)
	if err != nil {
		return nil, err
	}
	facts, err := readQueryFacts(ctx, f.session, all.rules)
	if err != nil {
		return nil, err
	}
	all.judgeNames(facts)
	result := &proof{Deterministic: len(facts.issues) == 0, Issues: facts.issues}
	var plans *planSet
	if result.Deterministic && !facts.opaque && !facts.folds {
		if plans, err = planKeys(ctx, f.session, view, all, facts, candidates); err != nil {
			return nil, err
		}
	}
	for _, s := range all.list {
		p := sourceProof{OID: s.oid, Name: s.name, Reads: s.reads}
		if facts.wholeRows {
			p.Reads = nil
		}
		if plans != nil {
			p.Unscanned = plans.isUnscanned(s)
			p.Routes = routesOf(s, plans.keysOf(s))
		}
		result.Sources = append(result.Sources, p)
	}
	result.addColumns(all)
	return result, nil
}

// addColumns collects what each source's change log has to hold: what its own
// routes need first, then what those of others need.
func (p *proof) addColumns(all *sources) {
	for i := range p.Sources {
		s := &p.Sources[i]
		collect := func(of *sourceProof) {
			for _, r := range slices.Backward(of.Routes) { // the fewest keys first
				for _, needed := range r.Needs {
					if needed.Relation != s.OID {
						continue
					}
					for _, name := range needed.Columns {
						if !slices.Contains(s.Columns, name) {
							s.Columns = append(s.Columns, name)
						}
					}
				}
			}
		}
		collect(s)
		for k := range p.Sources {
			collect(&p.Sources[k])
		}
	}
}

// judgeNames finds the sources whose columns EXPLAIN may show under other
// names. It shows a plain table's columns by their names of today, unless the
// query gives them others, and those of partitions and children by the names
// that the parent's columns had when the query was written.
func (all *sources) judgeNames(facts *queryFacts) {
	for _, s := range all.list {
		isNamed := false
		for _, member := range s.members {
			isNamed = isNamed || len(facts.names[member]) > 0
			s.unreadable = s.unreadable || facts.renamed[member]
		}
		s.unreadable = s.unreadable || !isNamed // the rule is not understood
		if !s.inherited {
			continue
		}
		for _, names := range facts.names[s.oid] {
			for _, c := range s.columns {
				s.unreadable = s.unreadable || c.number <= len(names) && names[c.number-1] != c.name
			}
		}
	}
}

// planSet holds the plans that a proof is made of.
type planSet struct {
	whole *planProof // nil if it cannot be read
	keys  []keyPlans
}

// keyPlans are the plans for one candidate: of the rows with one value in it,
// and of those with NULL.
type keyPlans struct {
	column      *sourceColumn
	equal, null *planProof // nil if it cannot be read
}

func (s *planSet) isUnscanned(of *source) bool {
	if s.whole == nil {
		return false
	}
	scans, all := s.whole.scansOf(of)
	return all && len(scans) == 0
}

// provedKey is a key of one source, and how the source's rows lead to it.
type provedKey struct {
	key
	typ   uint32
	paths []path
}

// isDirect reports whether the key's values are those of the changed rows
// themselves.
func (k provedKey) isDirect() bool {
	return !slices.ContainsFunc(k.paths, func(p path) bool { return len(p.links) > 0 })
}

// keysOf returns the keys that are proved for a source, those first that know
// about NULL.
func (s *planSet) keysOf(of *source) []provedKey {
	var known, others []provedKey
	for _, k := range s.keys {
		if k.equal == nil {
			continue
		}
		proved := provedKey{key: key{Column: k.column.name, Type: k.column.typeName}, typ: k.column.typ}
		var nullPaths []path
		nullIsProved := false
		if k.null != nil {
			nullPaths, _ = k.null.nullPaths(of, nil)
		}
		var ok bool
		if proved.paths, ok = k.equal.paths(of, nullPaths); !ok || len(proved.paths) == 0 {
			continue
		}
		if k.null != nil {
			nullPaths, nullIsProved = k.null.nullPaths(of, proved.paths)
		}
		proved.NullFree = nullIsProved && len(nullPaths) == 0
		proved.NullProved = nullIsProved && !slices.ContainsFunc(nullPaths, func(p path) bool {
			return !slices.ContainsFunc(proved.paths, p.equal)
		})
		if proved.knowsNull() {
			known = append(known, proved)
		} else {
			others = append(others, proved)
		}
	}
	return append(known, others...)
}

// plannerSettings are those under which a plan proves something: no partition
// is left out because of the value, and no table because of a constraint that
// the fingerprint does not know; one process, so that the plan is simple.
var plannerSettings = map[string]string{
	"plan_cache_mode":                 "force_generic_plan",
	"enable_partition_pruning":        "off",
	"constraint_exclusion":            "off",
	"max_parallel_workers_per_gather": "0",
	"enable_partitionwise_join":       "off",
	"enable_partitionwise_aggregate":  "off",
}

// planKeys asks for the plans of a view, under planner settings that are put
// back afterwards.
func planKeys(ctx context.Context, s pgsession.Session, view string, all *sources, facts *queryFacts, candidates []string) (*planSet, error) {
	before, err := setLocal(ctx, s, plannerSettings)
	if err != nil {
		return nil, err
	}
	plans := &planSet{}
	if plans.whole, err = readPlan(ctx, s, preparedPlan{statement: "select * from " + view + " as q"}, all, facts); err != nil {
		return nil, err
	}
	tried := 0
	for _, name := range candidates {
		at := slices.IndexFunc(all.view, func(c *sourceColumn) bool { return c.name == name })
		if at < 0 || !all.view[at].isKey() || tried == maxCandidates || plans.whole == nil {
			continue
		}
		tried++
		k, err := planKey(ctx, s, view, all, facts, all.view[at])
		if err != nil {
			return nil, err
		}
		plans.keys = append(plans.keys, k)
	}
	_, err = setLocal(ctx, s, before)
	return plans, err
}

func planKey(ctx context.Context, s pgsession.Session, view string, all *sources, facts *queryFacts, column *sourceColumn) (keyPlans, error) {
	k := keyPlans{column: column}
	accepts := func(e *expression) bool { return derivable(e.typ, column.typ) }
	condition := " as q where q." + rewrite.QuoteIdentifier(column.name)
	var err error
	k.null, err = readPlan(ctx, s, preparedPlan{statement: "select * from " + view + condition + " is null"}, all, facts)
	if err != nil {
		return k, err
	}
	if k.null != nil {
		k.null.accepts, k.null.direct = accepts, comparedWithNull
	}

	// The parameter's number is one that no subplan's result has: before
	// PostgreSQL 17 EXPLAIN shows both as $1.
	typeName := column.typeName
	if column.typ == oidVarchar {
		typeName = keyTypes[oidText] // varchar has no equality of its own: EXPLAIN would show two casts
	}
	name := rewrite.QuoteIdentifier(viewName("rwproxy_proof"))
	types := strings.Repeat("pg_catalog.int4, ", parameterNumber-1) + typeName
	values := strings.Repeat("null, ", parameterNumber-1) + "null"
	k.equal, err = readPlan(ctx, s, preparedPlan{
		name: name, prepare: "prepare " + name + " (" + types + ") as select * from " + view + condition + " operator(pg_catalog.=) " + parameterName,
		statement: "execute " + name + " (" + values + ")",
	}, all, facts)
	if k.equal != nil {
		k.equal.accepts, k.equal.direct = accepts, comparedWithParameter
		if k.equal.root.namesParameter(parameterName) {
			k.equal = nil
		}
	}
	return k, err
}

// The parameter that stands for a key's value.
const parameterNumber = 1000

var parameterName = "$" + strconv.Itoa(parameterNumber)

// comparedWithParameter returns e of e = value, nil of another condition.
func comparedWithParameter(t *term) *term {
	switch {
	case t.kind != termOperator || t.name != "=":
	case t.args[0].kind == termParameter:
		return t.args[1]
	case t.args[1].kind == termParameter:
		return t.args[0]
	}
	return nil
}

// comparedWithNull returns e of e IS NULL, nil of another condition.
func comparedWithNull(t *term) *term {
	if t.kind == termIsNull {
		return t.args[0]
	}
	return nil
}

// derivable reports whether a key of one type can be computed from an e of
// another that the planner found equal to it.
func derivable(e, key uint32) bool {
	return comparableTypes(e, key) || e == oidFloat4 && key == oidFloat8 || e == oidDate && key == oidTimestamp
}

// preparedPlan is a statement to be planned.
type preparedPlan struct {
	name, prepare string // a prepared statement that it executes, "" for none
	statement     string
}

// planSetting takes a plan out of the block that catches what planning raises.
const planSetting = "rwproxy.plan"

// block has a statement planned, and leaves its plan in planSetting: "" if
// planning fails. It fails for functions of the user's that name something
// which is not in pg_catalog, when they are inlined or evaluated.
func (p preparedPlan) block() string {
	prepare, deallocate := "", ""
	if p.name != "" {
		prepare = "execute " + rewrite.QuoteLiteral(p.prepare) + ";\n"
		deallocate = "if exists (select from pg_prepared_statements p where quote_ident(p.name) = " + rewrite.QuoteLiteral(p.name) +
			") then execute " + rewrite.QuoteLiteral("deallocate "+p.name) + "; end if;\n"
	}
	return "do " + rewrite.QuoteLiteral("declare plan text := '';\nbegin\nbegin\n"+prepare+
		"execute "+rewrite.QuoteLiteral("explain (verbose, costs off, format json) "+p.statement)+" into plan;\n"+
		"exception when others then plan := '';\nend;\n"+deallocate+
		"perform set_config('"+planSetting+"', plan, true);\nend")
}

// readPlan returns what EXPLAIN shows of a statement, nil for a plan that
// proves nothing.
func readPlan(ctx context.Context, s pgsession.Session, p preparedPlan, all *sources, facts *queryFacts) (*planProof, error) {
	if _, err := s.Exec(ctx, p.block()); err != nil {
		return nil, withoutContext(err)
	}
	rows, err := s.Query(ctx, "select current_setting($1), set_config($1, '', true)", planSetting)
	if err != nil {
		return nil, err
	}
	if rows[0][0].Text == "" {
		return nil, nil //nolint:nilnil // what cannot be planned proves nothing
	}
	root, err := parsePlan(rows[0][0].Text)
	if err != nil {
		if unreadable := (unreadablePlan{}); errors.As(err, &unreadable) {
			return nil, nil //nolint:nilnil // the plan is a fact: it proves nothing
		}
		return nil, err
	}
	return newPlanProof(root, all, facts), nil
}
