package refresh

import (
	"context"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// catalog answers what the translation of a query has to ask Postgres. It
// implements rewrite.Catalog.
type catalog struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one translation, whose interface has no context
	session pgsession.Session
}

// Aggregates implements rewrite.Catalog.
func (c catalog) Aggregates(names []string) (map[string]bool, error) {
	bare := make([]string, len(names))
	for i, name := range names {
		bare[i] = name[strings.LastIndexByte(name, '.')+1:]
	}
	rows, err := c.session.Query(c.ctx,
		"select distinct proname from pg_catalog.pg_proc where prokind = 'a' and proname = any ($1::text[])", bare)
	if err != nil {
		return nil, err
	}
	aggregate := make(map[string]bool, len(rows))
	for _, r := range rows {
		aggregate[r[0].Text] = true
	}
	found := make(map[string]bool, len(names))
	for i, name := range names {
		found[name] = aggregate[bare[i]]
	}
	return found, nil
}

// Operators implements rewrite.Catalog.
func (c catalog) Operators(names []string) (map[string]bool, error) {
	rows, err := c.session.Query(c.ctx, `
		select distinct o.oprname
		  from pg_catalog.pg_operator o
		 where o.oprname = any ($1::text[])
		   and pg_catalog.pg_operator_is_visible(o.oid)`, names)
	if err != nil {
		return nil, err
	}
	own := make(map[string]bool, len(rows))
	for _, r := range rows {
		own[r[0].Text] = true
	}
	return own, nil
}

// Functions implements rewrite.Catalog.
func (c catalog) Functions(names []string) (map[string]bool, error) {
	rows, err := c.session.Query(c.ctx, `
		select distinct p.proname
		  from pg_catalog.pg_proc p
		  join pg_catalog.pg_namespace n on n.oid = p.pronamespace
		 where p.proname = any ($1::text[])
		   and n.nspname <> all ('{pg_catalog,rwproxy_compat}')
		   and n.nspname = any (pg_catalog.current_schemas(true))`, names)
	if err != nil {
		return nil, err
	}
	own := make(map[string]bool, len(rows))
	for _, r := range rows {
		own[r[0].Text] = true
	}
	return own, nil
}

// Columns implements rewrite.Catalog.
func (c catalog) Columns(query string) ([]rewrite.Column, error) {
	description, err := c.session.Describe(c.ctx, query)
	if err != nil {
		return nil, inDialect(err)
	}
	columns := make([]rewrite.Column, len(description.Columns))
	for i, column := range description.Columns {
		columns[i] = rewrite.Column{Name: column.Name, Scaled: column.TypeOID == oidNumeric && column.TypeModifier >= 0}
	}
	return columns, nil
}
