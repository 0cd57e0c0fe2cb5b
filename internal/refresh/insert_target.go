package refresh

import (
	"context"
	_ "embed" // SQL files
	"strconv"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// insertTarget is the table or view that rows go to.
type insertTarget struct {
	oid          uint32
	schema, name string
	isTable      bool // and can be locked as one
	columns      []column
	facts        targetFacts
	partitionKey []string // for a dynamic overwrite
}

func (t insertTarget) sql() string { return rewrite.Name{Schema: t.schema, Table: t.name}.SQL() }

func (t insertTarget) column(name string) (column, bool) {
	c, found := byName(t.columns)[name]
	return c, found
}

// resolveTarget finds the target as Postgres does, and its columns.
func (i *insertion) resolveTarget(ctx context.Context) error {
	name := i.statement.Target
	if name.Catalog != "" && name.Catalog != i.client.Database() {
		return crossDatabase(i.statement.Text, name)
	}
	var rows []pgsession.Row
	err := i.frame.asFlow(ctx, func() (err error) {
		rows, err = i.client.Query(ctx, `
		select c.oid, n.nspname, c.relname, c.relkind in ('r', 'p')
		  from pg_catalog.pg_class c
		  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
		 where c.oid = pg_catalog.to_regclass($1)`, name.SQL())
		return err
	})
	switch {
	case err != nil:
		return err
	case len(rows) == 0:
		return undefinedTable(i.statement.Text, name)
	}
	oid, err := strconv.ParseUint(rows[0][0].Text, 10, 32)
	if err != nil {
		return err
	}
	i.target = insertTarget{oid: uint32(oid), schema: rows[0][1].Text, name: rows[0][2].Text, isTable: rows[0][3].Text == "t"}
	if i.target.columns, err = columnsOf(ctx, i.client, i.target.sql()); err != nil {
		return err
	}
	if i.target.facts, err = readTargetFacts(ctx, i.client, i.target.oid); err != nil {
		return err
	}
	if i.replaces() {
		if err := i.target.facts.refuse(i.target.name); err != nil {
			return err
		}
	}
	if i.settings.dynamic && i.statement.Replaces == rewrite.ReplacesPartition {
		i.target.partitionKey, err = i.partitionKey(ctx)
	}
	return err
}

//go:embed partition_key.sql
var partitionKeySQL string

// partitionKey returns the columns that a table is partitioned by: those of
// PARTITIONED BY if it is a streaming table that has them, else its own.
func (i *insertion) partitionKey(ctx context.Context) ([]string, error) {
	installed, err := i.engine.service.Installed(ctx, i.client, i.client.Database())
	if err != nil {
		return nil, err
	}
	if installed {
		found, err := flowstate.Lookup(ctx, i.client, rewrite.Name{Schema: i.target.schema, Table: i.target.name})
		if err != nil {
			return nil, err
		}
		if found != nil && found.Table != nil && len(found.Table.PartitionBy) > 0 {
			return found.Table.PartitionBy, nil
		}
	}
	rows, err := i.client.Query(ctx, partitionKeySQL, i.target.oid)
	if err != nil {
		return nil, err
	}
	var key []string
	for _, r := range rows {
		if r[0].Null {
			return nil, i.fail(i.statement.Target.Offset, "0A000",
				"dynamic partition overwrite of a table that is partitioned by an expression is not supported", "",
				"Use INSERT INTO ... REPLACE WHERE or REPLACE ON with that expression.")
		}
		key = append(key, r[0].Text)
	}
	return key, nil
}

//go:embed locked_tables.sql
var lockedTablesSQL string

// lockedTables returns the tables and views that the transaction has locked,
// as a list for LOCK TABLE; "" if there are none. Parsing a query locks what
// it reads.
func lockedTables(ctx context.Context, s pgsession.Session) (string, error) {
	rows, err := s.Query(ctx, lockedTablesSQL)
	if err != nil {
		return "", err
	}
	return rows[0][0].Text, nil
}
