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
	parts, err := tableParts(ctx, c, d, columns)
	if err != nil {
		return err
	}
	session, err := authorSettings(ctx, c, d.Properties)
	if err != nil {
		return err
	}
	lost, err := lostByTarget(ctx, c, d)
	if err != nil {
		return err
	}
	var b createBuilder
	b.settings(d.Settings, session)
	if lost != "" {
		fmt.Fprintf(&b, "-- the table has no column %q, which the flow's query returns: give it one, or define the flow again\n", lost)
	}
	b.table(d, parts)
	result.Columns = textColumns(st.ResultColumns())
	result.Rows = []pgsession.Row{row(b.String())}
	return nil
}

// lostByTarget returns a column of a flow's query that its table has lost since
// the flow was defined, "" if there is none: the statements would not run.
func lostByTarget(ctx context.Context, s pgsession.Session, d *flowstate.Description) (string, error) {
	if d.Flow == nil {
		return "", nil
	}
	rows, err := s.Query(ctx, "select pg_catalog.current_setting('transaction_read_only')")
	if err != nil || rows[0][0].Text == "on" {
		return "", err // the definition is asked for with an INSERT
	}
	found, err := flowstate.Lookup(ctx, s, d.Target)
	if err != nil || found == nil || found.Table == nil || found.Table.Flow == nil || found.Table.Flow.View == "" {
		return "", err
	}
	inTable, err := columnsOf(ctx, s, d.Target.SQL())
	if err != nil {
		return "", err
	}
	ofQuery, err := columnsOf(ctx, s, found.Table.Flow.View)
	return lostColumn(inTable, ofQuery), err
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

func (b *createBuilder) table(d *flowstate.Description, parts createParts) {
	// What CREATE STREAMING TABLE cannot say needs a flow of its own behind it.
	longForm := d.Flow != nil && (d.Flow.Name != d.Target.Table || d.Flow.Comment != nil || len(parts.later) > 0)

	for _, statement := range parts.before {
		fmt.Fprintf(b, "%s;\n", statement)
	}
	fmt.Fprintf(b, "CREATE STREAMING TABLE %s", d.Target.SQL())
	if len(parts.elements) > 0 {
		fmt.Fprintf(b, " (\n  %s\n)", strings.Join(parts.elements, ",\n  "))
	}
	b.clauses(d)
	if d.Flow != nil && !longForm {
		fmt.Fprintf(b, "\nFLOW REPLACE WHERE %s\nBY NAME\n%s", d.Flow.Predicate, d.Flow.Query)
	}
	for _, statement := range parts.later {
		fmt.Fprintf(b, ";\n%s", statement)
	}
	if longForm {
		fmt.Fprintf(b, ";\nCREATE FLOW %s", rewrite.QuoteIdentifier(d.Flow.Name))
		if d.Flow.Comment != nil {
			fmt.Fprintf(b, " COMMENT %s", rewrite.QuoteLiteral(*d.Flow.Comment))
		}
		fmt.Fprintf(b, " AS\nINSERT INTO %s BY NAME\nREPLACE WHERE %s\n%s", d.Target.SQL(), d.Flow.Predicate, d.Flow.Query)
	}
	for _, statement := range parts.after {
		fmt.Fprintf(b, ";\n%s", statement)
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
