package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Why a window is recomputed. The first that applies, in this order, is given;
// what a predicate selects is looked at once the definitions are known to be
// those of the last refresh.
const (
	reasonFullRefresh       = "FULL_REFRESH"                        // REFRESH … FULL asks for it
	reasonFirstRefresh      = "FIRST_REFRESH"                       // nothing to compare with
	reasonPredicate         = "UNSUPPORTED_REPLACE_WHERE_PREDICATE" // an override, a window that has moved, a predicate that reaches no source
	reasonPolicy            = "REFRESH_POLICY"                      // the table's property asks for it
	reasonPredicateVolatile = "REPLACE_WHERE_NOT_DETERMINISTIC"
	reasonPriorVolatile     = "PRIOR_REPLACE_WHERE_NOT_DETERMINISTIC"
	reasonClusterChanged    = "CLUSTER_CHANGED"    // the database was restored from a dump since the last refresh, or upgraded
	reasonDefinitionChanged = "DEFINITION_CHANGED" // of the flow, or of what it reads
	reasonTargetNotTracked  = "TARGET_NOT_TRACKED" // whether somebody else wrote to the window is not known
	reasonExternalChange    = "EXTERNAL_CHANGE_IN_REPLACE_WINDOW"
	reasonSourceNotTracked  = "SOURCE_NOT_TRACKED" // what changed in a source is not recorded
	reasonQueryVolatile     = "QUERY_NOT_DETERMINISTIC"
	reasonNotNarrowable     = "CHANGE_NOT_NARROWABLE" // what a change can have reached is not known
	reasonTooManyChanges    = "TOO_MANY_CHANGES"      // recomputing the window costs less
)

// decide chooses the technique. Each step of it either finds a reason to
// recompute the window or leaves it to the next; the predicates of the last
// refresh and of this one are compared only once the definitions are known to
// be the same.
func (r *run) decide(ctx context.Context, w rewrite.Window, p *plan) (decision, error) {
	if reason := r.reasonOfRequest(p.changes); reason != "" {
		return recompute(reason), nil
	}
	if p.changes.ClusterChanged {
		return recompute(reasonClusterChanged), nil
	}
	if r.definitionChanged(p.changes) {
		return recompute(reasonDefinitionChanged), nil
	}
	if !p.changes.TargetTracked {
		return recompute(reasonTargetNotTracked, flowstate.Issue{
			Type: reasonTargetNotTracked, Table: r.target.Schema + "." + r.target.Name,
		}), nil
	}
	if p.changes.CursorFingerprint != p.changes.Fingerprint {
		return rewritten(p.changes), nil
	}
	moved, err := r.moved(ctx, w, r.target.Table.LastRefresh.Window)
	if err != nil || moved {
		return recompute(reasonPredicate), err
	}
	external, err := r.changedExternally(ctx, w, p.changes)
	if err != nil || external {
		return recompute(reasonExternalChange), err
	}
	if issues := untracked(p.changes); len(issues) > 0 {
		return recompute(reasonSourceNotTracked, issues...), nil
	}
	if p.changes.Proof == nil {
		return recompute(reasonSourceNotTracked), nil
	}
	if err := json.Unmarshal(p.changes.Proof, &p.proved); err != nil {
		return decision{}, fmt.Errorf("stored proof: %w", err)
	}
	if !p.proved.Deterministic {
		return recompute(reasonQueryVolatile, queryIssues(p.proved.Issues)...), nil
	}
	return r.narrow(ctx, w, p)
}

// followsPolicy refuses to recompute the window of a table whose property wants
// every refresh to be incremental, unless that was asked for.
func (r *run) followsPolicy() error {
	d, name := r.plan.decision, r.target.Name
	if d.technique != flowstate.TechniqueFullRecompute || r.kind != flowstate.KindWindow || r.defining ||
		d.reason == reasonFirstRefresh || r.target.Table.Properties[rewrite.PolicyProperty] != rewrite.PolicyIncremental {
		return nil
	}
	return pgdiag.New("55000", fmt.Sprintf("streaming table %q cannot be refreshed incrementally", name)).
		WithDetail(d.detail()).
		WithHint("EXPLAIN REFRESH STREAMING TABLE shows the plan. REFRESH STREAMING TABLE ... FULL recomputes the window; so does every " +
			"refresh that needs to with ALTER STREAMING TABLE ... SET TBLPROPERTIES ('" + rewrite.PolicyProperty + "' = '" + rewrite.PolicyAuto + "').")
}

// detail is the reason, and what it is about.
func (d decision) detail() string {
	about := d.about()
	if len(about) == 0 {
		return "The window has to be recomputed: " + d.reason + "."
	}
	return "The window has to be recomputed: " + d.reason + ", because of " + strings.Join(about, ", ") + "."
}

// about are the tables and functions that the reason is about.
func (d decision) about() (names []string) {
	for _, issue := range d.issues {
		if name := issue.Table + issue.Function; name != "" {
			names = append(names, name)
		}
	}
	return names
}

// String is the technique, with the reason if there is one.
func (d decision) String() string {
	if d.reason == "" {
		return d.technique
	}
	return d.technique + " (" + d.reason + ")"
}

func recompute(reason string, issues ...flowstate.Issue) decision {
	if len(issues) == 0 {
		issues = []flowstate.Issue{{Type: reason}}
	}
	return decision{technique: flowstate.TechniqueFullRecompute, reason: reason, issues: issues}
}

// reasonOfRequest is the reason to recompute that lies in what was asked for,
// now or at the last refresh.
func (r *run) reasonOfRequest(changes *flowstate.Changes) string {
	table := r.target.Table
	switch {
	case r.kind == flowstate.KindFull:
		return reasonFullRefresh
	case table.LastRefresh == nil || !changes.HasCursor:
		return reasonFirstRefresh
	case r.kind == flowstate.KindOverride:
		return reasonPredicate
	case table.Properties[rewrite.PolicyProperty] == rewrite.PolicyFull:
		return reasonPolicy
	case table.Flow.PredicateVolatile:
		return reasonPredicateVolatile
	case table.LastRefresh.PredicateVolatile:
		return reasonPriorVolatile
	}
	return ""
}

func (r *run) definitionChanged(changes *flowstate.Changes) bool {
	return r.target.Table.LastRefresh.DefinitionVersion != r.target.Table.DefinitionVersion ||
		!flowstate.SameDefinitions(changes.CursorFingerprint, changes.Fingerprint)
}

// rewritten is the decision for tables whose files have been replaced, as
// TRUNCATE does, which is logged, and ALTER TABLE, which is not.
func rewritten(changes *flowstate.Changes) decision {
	if changes.ExternalUnknown {
		return recompute(reasonExternalChange)
	}
	var truncated []flowstate.Issue
	for _, s := range changes.Sources {
		if s.Changed && s.Route < 0 {
			truncated = append(truncated, flowstate.Issue{Type: reasonNotNarrowable, Table: s.Name})
		}
	}
	if len(truncated) > 0 {
		return recompute(reasonNotNarrowable, truncated...)
	}
	return recompute(reasonDefinitionChanged)
}

// changedExternally reports that somebody else than a refresh has written rows
// of the window since the last one.
func (r *run) changedExternally(ctx context.Context, w rewrite.Window, changes *flowstate.Changes) (bool, error) {
	if changes.ExternalUnknown {
		return true, nil
	}
	if changes.External == "" {
		return false, nil
	}
	logged := w
	logged.Target = changes.External
	var external bool
	err := r.frame.asFlow(ctx, func() error {
		rows, err := r.client.Query(ctx, logged.Remaining())
		if err == nil {
			external = rows[0][0].Text == "t"
		}
		return withoutPosition(err)
	})
	return external, err
}

func untracked(changes *flowstate.Changes) (issues []flowstate.Issue) {
	for _, s := range changes.Sources {
		if !s.Tracked {
			issues = append(issues, flowstate.Issue{Type: reasonSourceNotTracked, Table: s.Name})
		}
	}
	return issues
}

// narrow restricts the window to what the changes of the sources can have
// reached.
func (r *run) narrow(ctx context.Context, w rewrite.Window, p *plan) (decision, error) {
	var reached []reach
	var unproved []flowstate.Issue
	for _, source := range p.changes.Sources {
		s := p.proved.source(source.OID)
		switch {
		case !source.Changed || s != nil && s.Unscanned:
		case s == nil || source.Route < 0:
			unproved = append(unproved, flowstate.Issue{Type: reasonNotNarrowable, Table: source.Name})
		default:
			if to := (reach{s.Routes[source.Route].Keys, source.Keys}); !to.nowhere() {
				reached = append(reached, to)
			}
		}
	}
	switch {
	case len(unproved) > 0:
		return recompute(reasonNotNarrowable, unproved...), nil
	case len(reached) == 0:
		return decision{technique: flowstate.TechniqueNoOp}, nil
	case p.rekeyed:
		// Rows of other keys than those that changed may be stored under them.
		return recompute(reasonNotNarrowable, flowstate.Issue{Type: reasonNotNarrowable, Table: r.target.Schema + "." + r.target.Name}), nil
	}
	whole, err := r.explainSelect(ctx, w)
	if err != nil {
		return decision{}, err
	}
	p.whole = whole.cost()
	everything := w
	everything.Predicate = ""
	all, err := r.explainSelect(ctx, everything)
	if err != nil || !reachesSource(whole, all) {
		return recompute(reasonPredicate), err
	}
	if tooManyKeys(p.whole, tuplesOf(reached)) {
		for i := range reached {
			reached[i] = reached[i].byLeadingKey()
		}
	}
	wanted := r.target.Table.Properties[rewrite.PolicyProperty] == rewrite.PolicyIncremental
	if !wanted && tooManyKeys(p.whole, tuplesOf(reached)) {
		return recompute(reasonTooManyChanges), nil
	}
	d := decision{technique: flowstate.TechniqueIncremental, narrowed: narrowedBy(reached)}
	part := w
	part.Predicate = plan{decision: d, window: w.Predicate}.applied()
	if p.part, err = r.costOf(ctx, part); err != nil {
		return decision{}, err
	}
	if !wanted && !p.part.worthwhile(p.whole, all.cost()) {
		return recompute(reasonTooManyChanges), nil
	}
	return d, nil
}
