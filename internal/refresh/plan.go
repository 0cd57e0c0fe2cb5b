package refresh

import (
	"context"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/rewrite"
)

// plan is how a refresh is run, and why so.
type plan struct {
	decision
	window  string // the predicate, resolved
	diff    bool   // only the rows that differ are written
	mayMove bool   // rows may be stored with other values than the predicate saw
	rekeyed bool   // also in columns of the type that the query returns
	mayKeep bool   // rows may survive the DELETE
	differs bool   // an override may have selected other rows to delete than to insert
	changes *flowstate.Changes
	proved  proof
	whole   cost // of the window
	part    cost // of the narrowed window; zero if it is not narrowed
}

// decision is a technique, and what speaks for it.
type decision struct {
	technique string
	reason    string            // of a full recompute, else ""
	issues    []flowstate.Issue // what the reason is about
	narrowed  string            // the predicate of the rows of the window that can differ; "" for all
}

// makePlan chooses how to write a window. It reads what has changed, so the
// transaction has taken its snapshot.
func (r *run) makePlan(ctx context.Context, w rewrite.Window) (plan, error) {
	p := plan{window: w.Predicate, mayMove: r.plan.mayMove, differs: r.plan.differs}
	facts, err := readTargetFacts(ctx, r.client, r.target.OID)
	if err != nil {
		return plan{}, err
	}
	if err := facts.refuse(r.target.Name); err != nil {
		return plan{}, err
	}
	p.rekeyed = facts.beforeInsert
	p.mayMove = p.mayMove || facts.beforeInsert
	p.mayKeep = facts.beforeDelete
	if p.changes, err = r.readChanges(ctx); err != nil {
		return plan{}, err
	}
	if p.decision, err = r.decide(ctx, w, &p); err != nil {
		return plan{}, err
	}
	if p.technique == flowstate.TechniqueNoOp {
		return p, nil
	}
	p.diff, err = r.appliesDiff(ctx, facts, &p)
	return p, err
}

// applied is the predicate that DELETE and INSERT use.
func (p plan) applied() string {
	switch {
	case p.technique == flowstate.TechniqueNoOp:
		return "false"
	case p.narrowed == "":
		return p.window
	case p.window == "":
		return p.narrowed
	}
	return "(" + p.window + "\n) and (" + p.narrowed + ")"
}

func (p plan) record() flowstate.PlanRecord {
	return flowstate.PlanRecord{Technique: p.technique, Reason: p.reason, Window: p.window, Applied: p.applied(), Differs: p.differs, Issues: p.issues}
}
