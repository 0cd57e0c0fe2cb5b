package refresh

import (
	"context"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/rewrite"
)

// drop removes the flows of tables that Postgres is about to drop, in the same
// transaction. Whether the tables exist and may be dropped is Postgres's to
// say: when they may not, its error takes this back too.
func (e *Engine) drop(ctx context.Context, c Client, st *rewrite.Drop) error {
	installed, err := flowstate.Installed(ctx, c)
	if err != nil || !installed {
		return err
	}
	if err := flowstate.Sweep(ctx, c); err != nil {
		return err
	}
	for _, name := range st.Targets {
		if name.Catalog != "" && name.Catalog != c.Database() {
			continue // Postgres refuses it
		}
		target, err := flowstate.Lookup(ctx, c, name)
		if err != nil {
			return err
		}
		if target == nil || target.Table == nil || !target.OwnedByCaller {
			continue
		}
		if err := flowstate.Drop(ctx, c, target.OID); err != nil {
			return err
		}
	}
	return nil
}
