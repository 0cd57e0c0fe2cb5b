package refresh

import (
	"context"

	"github.com/rwproxy/rwproxy/rewrite"
)

// moved reports that a window may hold rows that the prior one excluded, in the
// target or in the flow's query: what is not known of them is more than what
// has changed in the sources. Both predicates are resolved.
func (r *run) moved(ctx context.Context, w rewrite.Window, prior string) (bool, error) {
	if w.Predicate == prior {
		return false, nil
	}
	strip := w
	strip.Predicate = "(" + w.Predicate + "\n) and (" + prior + "\n) is not true"
	var moved bool
	err := r.frame.asFlow(ctx, func() error {
		empty, err := r.provedEmpty(ctx, strip)
		if err != nil || empty {
			return err
		}
		rows, err := r.client.Query(ctx, strip.Remaining())
		if err != nil {
			return err
		}
		if moved = rows[0][0].Text == "t"; moved {
			return nil
		}
		if err := r.frame.limit(ctx); err != nil {
			return err
		}
		rows, err = r.client.Query(ctx, strip.Returns())
		if err != nil {
			return err
		}
		moved = rows[0][0].Text == "t"
		return nil
	})
	return moved, withoutPosition(err)
}

// provedEmpty asks the planner whether no row at all can be in a window: it
// then plans to read none.
func (r *run) provedEmpty(ctx context.Context, w rewrite.Window) (bool, error) {
	var plan explained
	err := withSettings(ctx, r.client, map[string]string{"constraint_exclusion": "on"}, func() (err error) {
		plan, err = explain(ctx, r.client, w.Probe())
		return err
	})
	return plan.NodeType == "Result" && plan.OneTimeFilter == "false" && len(plan.Plans) == 0, err
}
