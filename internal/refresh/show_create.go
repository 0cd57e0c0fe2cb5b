package refresh

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// showCreateTable is SHOW CREATE TABLE: the statements that create a streaming
// table like it, once it is dropped.
func (e *Engine) showCreateTable(ctx context.Context, c Client, st *rewrite.ShowCreateTable, result *Result) error {
	d, err := e.description(ctx, c, st.Text, st.Target, st.Fault)
	if err != nil {
		return err
	}
	columns, err := describedColumns(ctx, c, d.OID)
	if err != nil {
		return err
	}
	constraints, err := constraintsOf(ctx, c, d.OID)
	if err != nil {
		return err
	}
	session, err := authorSettings(ctx, c, d.Properties)
	if err != nil {
		return err
	}
	var b createBuilder
	b.settings(d.Settings, session)
	b.table(d, columns, constraints)
	result.Columns = textColumns(st.ResultColumns())
	result.Rows = []pgsession.Row{row(b.String())}
	return nil
}

// constraintsOf returns the constraints of a table as CREATE TABLE takes them.
// NOT NULL is a property of its column.
func constraintsOf(ctx context.Context, s pgsession.Session, table uint32) ([]string, error) {
	rows, err := s.Query(ctx, `
		select pg_catalog.format('CONSTRAINT %I %s', conname, pg_catalog.pg_get_constraintdef(oid))
		  from pg_catalog.pg_constraint
		 where conrelid = $1::pg_catalog.oid
		   and contype in ('c', 'p', 'u', 'f', 'x')
		 order by contype <> 'p', conname`, int64(table))
	if err != nil {
		return nil, err
	}
	constraints := make([]string, len(rows))
	for i, r := range rows {
		constraints[i] = r[0].Text
	}
	return constraints, nil
}

// createBuilder writes the statements that create a streaming table.
type createBuilder struct{ strings.Builder }

// settings says, in a comment, which settings the flow's text was written under
// where they are not the session's: its words may mean something else there.
func (b *createBuilder) settings(written, session map[string]string) {
	if _, both := written[settingDialect]; !both && session[settingDialect] != "" {
		written = maps.Clone(written)
		written[settingDialect] = rewrite.Postgres.String()
	}
	var differing []string
	for _, name := range slices.Sorted(maps.Keys(written)) {
		if value := written[name]; value != session[name] {
			value = strings.TrimSuffix(strings.TrimSuffix(value, compatSchema), ", ")
			differing = append(differing, name+" = "+strconv.Quote(value)) // no line end gets out of the comment
		}
	}
	if len(differing) > 0 {
		fmt.Fprintf(b, "-- written under %s\n", strings.Join(differing, ", "))
	}
}

func (b *createBuilder) table(d *flowstate.Description, columns []describedColumn, constraints []string) {
	later := laterColumns(d, columns)
	// What CREATE STREAMING TABLE cannot say needs a flow of its own behind it.
	longForm := d.Flow != nil && (d.Flow.Name != d.Target.Table || d.Flow.Comment != nil || len(later) > 0)

	fmt.Fprintf(b, "CREATE STREAMING TABLE %s", d.Target.SQL())
	if elements := append(columnElements(d, columns), constraints...); len(elements) > 0 {
		fmt.Fprintf(b, " (\n  %s\n)", strings.Join(elements, ",\n  "))
	}
	b.clauses(d)
	if d.Flow != nil && !longForm {
		fmt.Fprintf(b, "\nFLOW REPLACE WHERE %s\nBY NAME\n%s", d.Flow.Predicate, d.Flow.Query)
	}
	for _, statement := range later {
		fmt.Fprintf(b, ";\n%s", statement)
	}
	if longForm {
		fmt.Fprintf(b, ";\nCREATE FLOW %s", rewrite.QuoteIdentifier(d.Flow.Name))
		if d.Flow.Comment != nil {
			fmt.Fprintf(b, " COMMENT %s", rewrite.QuoteLiteral(*d.Flow.Comment))
		}
		fmt.Fprintf(b, " AS\nINSERT INTO %s BY NAME\nREPLACE WHERE %s\n%s", d.Target.SQL(), d.Flow.Predicate, d.Flow.Query)
	}
}

// clauses writes the clauses of the table.
func (b *createBuilder) clauses(d *flowstate.Description) {
	if d.Comment != nil {
		fmt.Fprintf(b, "\nCOMMENT %s", rewrite.QuoteLiteral(*d.Comment))
	}
	if len(d.PartitionBy) > 0 {
		quoted := make([]string, len(d.PartitionBy))
		for i, name := range d.PartitionBy {
			quoted[i] = rewrite.QuoteIdentifier(name)
		}
		fmt.Fprintf(b, "\nPARTITIONED BY (%s)", strings.Join(quoted, ", "))
	}
	if d.ClusterBy != "" {
		fmt.Fprintf(b, "\n%s", d.ClusterBy)
	}
	if len(d.Properties) > 0 {
		var properties []string
		for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
			properties = append(properties, rewrite.QuoteLiteral(key)+" = "+rewrite.QuoteLiteral(d.Properties[key]))
		}
		fmt.Fprintf(b, "\nTBLPROPERTIES (\n  %s\n)", strings.Join(properties, ",\n  "))
	}
	switch {
	case strings.HasPrefix(d.Schedule, "TRIGGER "):
		fmt.Fprintf(b, "\n%s", d.Schedule)
	case d.Schedule != "":
		fmt.Fprintf(b, "\nSCHEDULE %s", d.Schedule)
	}
}

// columnElements are the columns that the statement can declare.
func columnElements(d *flowstate.Description, columns []describedColumn) []string {
	var elements []string
	for _, c := range columns {
		if c.generated != "" {
			continue
		}
		element := rewrite.QuoteIdentifier(c.name) + " " + typeIn(d, c.typ) + c.collate()
		if c.notNull {
			element += " NOT NULL"
		}
		if c.fallback != "" {
			element += " DEFAULT " + c.fallback
		}
		if c.comment != nil {
			element += " COMMENT " + rewrite.QuoteLiteral(*c.comment)
		}
		elements = append(elements, element)
	}
	return elements
}

// laterColumns are the statements for what ALTER TABLE has made of columns and
// CREATE STREAMING TABLE cannot declare.
func laterColumns(d *flowstate.Description, columns []describedColumn) []string {
	var statements []string
	for _, c := range columns {
		column := rewrite.QuoteIdentifier(c.name)
		switch {
		case c.identity != "":
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s ALTER COLUMN %s ADD GENERATED %s AS IDENTITY",
				d.Target.SQL(), column, c.identity))
		case c.generated != "":
			statements = append(statements, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s %s",
				d.Target.SQL(), column, c.typ+c.collate(), c.generated))
			if c.comment != nil {
				statements = append(statements, fmt.Sprintf("COMMENT ON COLUMN %s.%s IS %s",
					d.Target.SQL(), column, rewrite.QuoteLiteral(*c.comment)))
			}
		}
	}
	return statements
}

// typeIn spells a type of PostgreSQL so that a declaration of the table means
// it: in the dialect of Databricks a bare NUMERIC has no fraction.
func typeIn(d *flowstate.Description, typ string) string {
	if d.Settings[settingDialect] == rewrite.Databricks.String() && rewrite.DatabricksColumnType(typ) != typ {
		return "pg_catalog." + typ
	}
	return typ
}

// collate is the COLLATE clause, if the column has another collation than its
// type.
func (c describedColumn) collate() string {
	if c.collation == "" {
		return ""
	}
	return " COLLATE " + c.collation
}
