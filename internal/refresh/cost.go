package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// cost is what the planner expects of reading the flow's query.
type cost struct {
	total float64 // in the planner's own unit
	rows  float64
}

// A narrowed window is worth it if the planner expects it to cost less by
// sureGain: that has always meant a real gain of several times, whatever the
// planner thinks of the number of groups, of which it knows little. Else it is up
// to these shares of the whole window's rows. Below the first it is even if it is
// expected to cost more: the rows that are not written count too. Above the
// second the saving does not pay for the plan. The measurements are in
// docs/performance.md.
const (
	sureGain        = 1.5
	worthwhileShare = 0.3
	largestShare    = 0.5
)

// From manyKeys tuples on, a window that is narrowed by them has rowsForKey rows
// for each: planning takes time for every one.
const (
	manyKeys   = 2000
	rowsForKey = 20
)

// worthwhile reports whether reading and writing a part of a window is expected
// to cost less than all of it. all is the flow's query without a window: to the
// planner a condition on the window's own column is one more condition, so that
// what it expects of the part can be too little by as much as the window is of
// all.
func (part cost) worthwhile(whole, all cost) bool {
	total := part.total * all.total / max(whole.total, 1)
	share := part.rows * all.rows / max(whole.rows*whole.rows, 1)
	return total*sureGain <= whole.total || share <= worthwhileShare ||
		share <= largestShare && total <= whole.total
}

// tooManyKeys reports whether a window that costs whole is not even worth to be
// planned for so many keys.
func tooManyKeys(whole cost, keys int) bool {
	return keys > manyKeys && whole.rows < float64(keys*rowsForKey)
}

// costOf asks the planner what it costs to read the rows of a window.
func (r *run) costOf(ctx context.Context, w rewrite.Window) (cost, error) {
	root, err := r.explainSelect(ctx, w)
	return root.cost(), err
}

func (r *run) explainSelect(ctx context.Context, w rewrite.Window) (root explained, err error) {
	err = r.frame.asFlow(ctx, func() error {
		root, err = explain(ctx, r.client, w.Select())
		return withoutPosition(err)
	})
	return root, err
}

// reachesSource reports that the predicate of a window, whose plan is whole,
// selects rows of a source; all is the plan without it. One on the result of an
// aggregate, say, only selects rows of the query. The planner takes a predicate
// down as far as it can go.
func reachesSource(whole, all explained) bool {
	return whole.conditions(true) != all.conditions(true) || whole.conditions(false) == all.conditions(false)
}

// explained is a node of a plan, as EXPLAIN has it in JSON.
type explained struct {
	NodeType      string      `json:"Node Type"`
	Relation      string      `json:"Relation Name"`
	OneTimeFilter string      `json:"One-Time Filter"`
	Filter        string      `json:"Filter"`
	IndexCond     string      `json:"Index Cond"`
	RecheckCond   string      `json:"Recheck Cond"`
	TotalCost     float64     `json:"Total Cost"`
	PlanRows      float64     `json:"Plan Rows"`
	Plans         []explained `json:"Plans"`
}

func (e explained) cost() cost { return cost{total: e.TotalCost, rows: e.PlanRows} }

// conditions are those that rows of a plan are selected by, where they are
// read, or anywhere above.
func (e explained) conditions(reading bool) string {
	var all strings.Builder
	if reading == (e.Relation != "" || len(e.Plans) == 0) {
		fmt.Fprintln(&all, e.Relation, e.OneTimeFilter, e.Filter, e.IndexCond, e.RecheckCond)
	}
	for _, below := range e.Plans {
		all.WriteString(below.conditions(reading))
	}
	return all.String()
}

func explain(ctx context.Context, s pgsession.Session, sql string) (explained, error) {
	rows, err := s.Query(ctx, "explain (format json) "+sql)
	if err != nil {
		return explained{}, err
	}
	var plans []struct {
		Plan explained `json:"Plan"`
	}
	if err := json.Unmarshal([]byte(rows[0][0].Text), &plans); err != nil || len(plans) != 1 {
		return explained{}, fmt.Errorf("EXPLAIN's answer cannot be read: %w", err)
	}
	return plans[0].Plan, nil
}
