package refresh

import (
	"context"
	_ "embed" // SQL files
	"fmt"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// createParts is what creates a table's columns, constraints and indexes.
type createParts struct {
	before   []string // statements in front of CREATE STREAMING TABLE
	elements []string // its columns and constraints
	later    []string // statements in front of the flow
	after    []string // statements at the end
}

func tableParts(ctx context.Context, s pgsession.Session, d *flowstate.Description, columns []describedColumn) (createParts, error) {
	var parts createParts
	late := parts.columns(d, columns)
	if err := parts.sequences(ctx, s, d); err != nil {
		return parts, err
	}
	if err := parts.constraints(ctx, s, d, late); err != nil {
		return parts, err
	}
	rows, err := s.Query(ctx, `
		select pg_catalog.pg_get_indexdef(i.indexrelid)
		  from pg_catalog.pg_index i
		 where i.indrelid = $1::pg_catalog.oid
		   and not exists (select from pg_catalog.pg_constraint c where c.conindid = i.indexrelid and c.conrelid = i.indrelid)
		 order by i.indexrelid::pg_catalog.regclass::pg_catalog.text`, int64(d.OID))
	for _, r := range rows {
		parts.after = append(parts.after, r[0].Text)
	}
	return parts, err
}

// columns declares the columns, in their order. CREATE STREAMING TABLE has no
// generated ones; from the first of them on they are added later, and named.
func (p *createParts) columns(d *flowstate.Description, columns []describedColumn) (late []string) {
	for _, c := range columns {
		name := rewrite.QuoteIdentifier(c.name)
		definition, fallback := c.collate(), ""
		if c.notNull {
			definition += " NOT NULL"
		}
		switch {
		case c.generated != "":
			definition += " " + c.generated
		case c.fallback != "":
			fallback = "DEFAULT " + c.fallback
		}
		if c.generated == "" && len(late) == 0 {
			element := name + " " + typeIn(d, c.typ) + definition
			if fallback != "" {
				element += " " + printedIn(d, fallback)
			}
			if c.comment != nil {
				element += " COMMENT " + rewrite.QuoteLiteral(*c.comment)
			}
			p.elements = append(p.elements, element)
			continue
		}
		late = append(late, c.name)
		if fallback != "" {
			definition += " " + fallback
		}
		p.later = append(p.later, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s%s", d.Target.SQL(), name, c.typ, definition))
		if c.comment != nil {
			p.later = append(p.later, fmt.Sprintf("COMMENT ON COLUMN %s.%s IS %s", d.Target.SQL(), name, rewrite.QuoteLiteral(*c.comment)))
		}
	}
	return late
}

//go:embed sequences.sql
var sequencesSQL string

// sequences makes identity columns, and creates the sequences of others, which
// go with the table.
func (p *createParts) sequences(ctx context.Context, s pgsession.Session, d *flowstate.Description) error {
	rows, err := s.Query(ctx, sequencesSQL, int64(d.OID))
	for _, r := range rows {
		column, identity, name, typ, options := rewrite.QuoteIdentifier(r[0].Text), r[1].Text, r[2].Text, r[3].Text, r[4].Text
		if identity == "" {
			create := "CREATE SEQUENCE " + name + " AS " + typ
			if options != "" {
				create += " " + options
			}
			p.before = append(p.before, create)
			p.after = append(p.after, fmt.Sprintf("ALTER SEQUENCE %s OWNED BY %s.%s", name, d.Target.SQL(), column))
			continue
		}
		if options != "" {
			options = " (" + options + ")"
		}
		p.later = append(p.later, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s ADD GENERATED %s AS IDENTITY%s",
			d.Target.SQL(), column, identity, options))
	}
	return err
}

//go:embed constraints.sql
var constraintsSQL string

func (p *createParts) constraints(ctx context.Context, s pgsession.Session, d *flowstate.Description, late []string) error {
	rows, err := s.Query(ctx, constraintsSQL, int64(d.OID), late)
	for _, r := range rows {
		if r[1].Text == "t" {
			p.later = append(p.later, "ALTER TABLE "+d.Target.SQL()+" ADD "+r[0].Text)
		} else {
			p.elements = append(p.elements, printedIn(d, r[0].Text))
		}
	}
	return err
}

// typeIn spells a type of PostgreSQL so that a declaration of the table means
// it: in the dialect of Databricks a bare NUMERIC has no fraction.
func typeIn(d *flowstate.Description, typ string) string {
	if d.Settings[settingDialect] == rewrite.Databricks.String() && rewrite.DatabricksType(typ) != typ {
		return "pg_catalog." + typ
	}
	return typ
}

// printedIn is a piece of a declaration as Postgres prints it, so that a
// declaration of the table means it.
func printedIn(d *flowstate.Description, declaration string) string {
	if d.Settings[settingDialect] == rewrite.Databricks.String() {
		return rewrite.ForDatabricks(declaration)
	}
	return declaration
}

// collate is the COLLATE clause, if the column has another collation than its
// type.
func (c describedColumn) collate() string {
	if c.collation == "" {
		return ""
	}
	return " COLLATE " + c.collation
}
