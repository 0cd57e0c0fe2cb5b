package refresh

import (
	"context"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// ensureInstalled has the service connection install schema rwproxy in the
// client's database if it is not there yet.
func (e *Engine) ensureInstalled(ctx context.Context, c Client) error {
	installed, err := e.service.Installed(ctx, c, c.Database())
	if err != nil || installed {
		return err
	}
	if err := e.service.EnsureInstalled(ctx, c.Database()); err != nil || !c.Joined() {
		return err
	}
	rows, err := c.Query(ctx, "select pg_catalog.current_setting('transaction_isolation')")
	if err != nil || strings.HasPrefix(rows[0][0].Text, "read ") {
		return err
	}
	return pgdiag.New("40001", "could not serialize access: rwproxy has just been installed in this database").
		WithDetail("The snapshot of this transaction is older.").
		WithHint("Run the transaction again.")
}

// lookup finds a relation and, if it is a streaming table, its definition; nil
// if there is no such relation. Flows whose target was dropped without rwproxy
// are removed first.
func (e *Engine) lookup(ctx context.Context, c Client, statement string, name rewrite.Name) (*flowstate.Target, error) {
	if name.Catalog != "" && name.Catalog != c.Database() {
		return nil, crossDatabase(statement, name)
	}
	installed, err := e.service.Installed(ctx, c, c.Database())
	switch {
	case err != nil:
		return nil, err
	case !installed:
		if err := e.service.Unusable(ctx, c, c.Database()); err != nil {
			return nil, err
		}
		return plainRelation(ctx, c, name)
	}
	if err := flowstate.Sweep(ctx, c); err != nil {
		return nil, err
	}
	return flowstate.Lookup(ctx, c, name)
}

// plainRelation finds a relation in a database that has no streaming tables.
func plainRelation(ctx context.Context, s pgsession.Session, name rewrite.Name) (*flowstate.Target, error) {
	rows, err := s.Query(ctx, `
		select n.nspname, c.relname
		  from pg_catalog.pg_class c
		  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		 where c.oid = pg_catalog.to_regclass($1)`, name.SQL())
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	return &flowstate.Target{Schema: rows[0][0].Text, Name: rows[0][1].Text}, nil
}

// insertChecked inserts a window's rows and returns how many it wrote, and how
// many of those the target holds outside the window.
func insertChecked(ctx context.Context, s pgsession.Session, w rewrite.Window) (written, outside int64, err error) {
	rows, err := s.Query(ctx, w.InsertChecked())
	if err != nil {
		return 0, 0, err
	}
	if written, err = strconv.ParseInt(rows[0][0].Text, 10, 64); err != nil {
		return 0, 0, err
	}
	outside, err = strconv.ParseInt(rows[0][1].Text, 10, 64)
	return written, outside, err
}
