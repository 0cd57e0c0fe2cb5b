package refresh

import (
	"context"
	"strconv"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// drop removes the flows of tables that Postgres is about to drop, in the same
// transaction. Whether the tables exist and may be dropped is Postgres's to
// say: when they may not, its error takes this back too.
func (e *Engine) drop(ctx context.Context, c Client, st *rewrite.Drop) error {
	installed, err := e.service.Installed(ctx, c, c.Database())
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
		droppable, err := mayDrop(ctx, c, name)
		if err != nil {
			return err
		}
		if droppable == 0 {
			continue
		}
		// Before anything is locked that a refresh locks later.
		if err := lockInTransaction(ctx, c, droppable); err != nil {
			return err
		}
		if err := flowstate.Drop(ctx, c, droppable, st.Cascade); err != nil {
			return err
		}
	}
	e.collectGarbage(c.Database())
	return nil
}

// mayDrop returns the OID of a table that the client may drop, as its owner or
// its schema's, 0 if there is none of this name.
func mayDrop(ctx context.Context, s pgsession.Session, name rewrite.Name) (uint32, error) {
	name.Catalog = ""
	rows, err := s.Query(ctx, `
		select c.oid
		  from pg_catalog.pg_class c
		  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		 where c.oid = pg_catalog.to_regclass($1)
		   and (pg_catalog.pg_has_role(c.relowner, 'usage') or pg_catalog.pg_has_role(n.nspowner, 'usage'))`, name.SQL())
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	oid, err := strconv.ParseUint(rows[0][0].Text, 10, 32)
	return uint32(oid), err
}
