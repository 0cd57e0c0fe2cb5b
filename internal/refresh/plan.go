package refresh

import (
	"context"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Why a window is recomputed. The first that applies, in this order, is given.
const (
	reasonFullRefresh       = "FULL_REFRESH"                        // REFRESH … FULL asks for it
	reasonFirstRefresh      = "FIRST_REFRESH"                       // nothing to compare with
	reasonOverride          = "UNSUPPORTED_REPLACE_WHERE_PREDICATE" // REFRESH … WHERE: the sources' changes are not told apart by it
	reasonPredicateVolatile = "REPLACE_WHERE_NOT_DETERMINISTIC"
	reasonPriorVolatile     = "PRIOR_REPLACE_WHERE_NOT_DETERMINISTIC"
	reasonDefinitionChanged = "DEFINITION_CHANGED"
	reasonSourceNotTracked  = "SOURCE_NOT_TRACKED" // what changed in the sources since is not recorded
)

// plan is how a refresh is run, and why so.
type plan struct {
	technique string
	reason    string
	window    string
	mayMove   bool // rows may be stored with other values than the predicate saw
	mayKeep   bool // rows may survive the DELETE
}

func (r *run) makePlan(ctx context.Context, w rewrite.Window) (plan, error) {
	p := plan{technique: flowstate.TechniqueFullRecompute, reason: r.reason(), window: w.Predicate, mayMove: r.plan.mayMove}
	facts, err := readTargetFacts(ctx, r.client, r.target.OID)
	if err != nil {
		return plan{}, err
	}
	if err := facts.refuse(r.target.Name); err != nil {
		return plan{}, err
	}
	p.mayMove = p.mayMove || facts.beforeInsert
	p.mayKeep = facts.beforeDelete
	return p, nil
}

func (r *run) reason() string {
	table, flow := r.target.Table, r.target.Table.Flow
	switch {
	case r.kind == flowstate.KindFull:
		return reasonFullRefresh
	case table.LastRefresh == nil:
		return reasonFirstRefresh
	case r.kind == flowstate.KindOverride:
		return reasonOverride
	case flow.PredicateVolatile:
		return reasonPredicateVolatile
	case table.LastRefresh.PredicateVolatile:
		return reasonPriorVolatile
	case table.LastRefresh.DefinitionVersion != table.DefinitionVersion:
		return reasonDefinitionChanged
	}
	return reasonSourceNotTracked
}

func (p plan) record() flowstate.PlanRecord {
	return flowstate.PlanRecord{Technique: p.technique, Reason: p.reason, Window: p.window, Applied: p.window}
}
