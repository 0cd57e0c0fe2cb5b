package refresh

import (
	"context"
	_ "embed" // SQL files
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// description returns what a statement that PostgreSQL does not have is about.
// If that is no streaming table the statement is not ours, and the error is
// Postgres's own.
func (e *Engine) description(ctx context.Context, c Client, text string, name rewrite.Name, fault *pgdiag.Diagnostic) (*flowstate.Description, error) {
	installed, err := e.service.Installed(ctx, c, c.Database())
	switch {
	case err != nil:
		return nil, err
	case !installed:
		if err := e.service.Unusable(ctx, c, c.Database()); err != nil {
			return nil, err
		}
		return nil, refusedByPostgres(ctx, c, text, name)
	case name.Catalog != "" && name.Catalog != c.Database():
		return nil, refusedByPostgres(ctx, c, text, name)
	}
	d, err := flowstate.Describe(ctx, c, name)
	switch {
	case pgdiag.Code(err) == "42501":
		return nil, placed(err, rewrite.CharPosition(text, name.Offset))
	case err != nil:
		return nil, err
	case d == nil:
		return nil, refusedByPostgres(ctx, c, text, name)
	case fault != nil:
		return nil, fault
	}
	return d, nil
}

// refusedByPostgres is Postgres's error for a statement that only a streaming
// table makes ours.
func refusedByPostgres(ctx context.Context, c Client, text string, name rewrite.Name) error {
	if _, err := c.Describe(ctx, text); err != nil {
		return err
	}
	return notStreamingTable(text, name) // a later Postgres has such a statement
}

// describe is DESCRIBE.
func (e *Engine) describe(ctx context.Context, c Client, st *rewrite.Describe, result *Result) error {
	d, err := e.described(ctx, c, st)
	if err != nil {
		return err
	}
	result.Columns = textColumns(st.ResultColumns())
	if st.Column != "" {
		result.Rows = describeColumn(d.columns[0])
		return nil
	}
	result.Rows = describeTable(d.Description, d.columns)
	if st.Extended {
		result.Rows = append(result.Rows, describeExtended(c, d.Description)...)
	}
	return nil
}

// described is what a DESCRIBE shows: a streaming table and its columns, or the
// one column that is asked for.
type described struct {
	*flowstate.Description
	columns []describedColumn
}

func (e *Engine) described(ctx context.Context, c Client, st *rewrite.Describe) (described, error) {
	d, err := e.description(ctx, c, st.Text, st.Target, st.Fault)
	if err != nil {
		return described{}, err
	}
	columns, err := describedColumns(ctx, c, d.OID)
	if err != nil || st.Column == "" {
		return described{d, columns}, err
	}
	at := slices.IndexFunc(columns, func(c describedColumn) bool { return c.name == st.Column })
	if at < 0 {
		return described{}, pgdiag.New("42703", fmt.Sprintf("column %q of relation %q does not exist", st.Column, st.Target.Table)).
			WithDetail("UNRESOLVED_COLUMN.WITH_SUGGESTION").
			WithHint("DESCRIBE " + display(st.Target) + " lists the columns.").
			At(rewrite.CharPosition(st.Text, st.Offset))
	}
	return described{d, columns[at : at+1]}, nil
}

// describedColumn is a column as DESCRIBE and SHOW CREATE TABLE show it.
type describedColumn struct {
	name, typ string
	comment   *string
	notNull   bool
	fallback  string // the default, "" for none
	generated string // GENERATED ALWAYS AS …, "" for another column
	collation string // quoted, qualified; "" for the type's own
}

//go:embed described_columns.sql
var describedColumnsSQL string

func describedColumns(ctx context.Context, s pgsession.Session, table uint32) ([]describedColumn, error) {
	rows, err := s.Query(ctx, describedColumnsSQL, int64(table))
	if err != nil {
		return nil, err
	}
	columns := make([]describedColumn, 0, len(rows))
	for _, r := range rows {
		c := describedColumn{
			name: r[0].Text, typ: r[1].Text, notNull: r[3].Text == "t",
			fallback: r[4].Text, generated: r[5].Text, collation: r[6].Text,
		}
		if !r[2].Null {
			c.comment = &r[2].Text
		}
		columns = append(columns, c)
	}
	return columns, nil
}

// describeColumn are the facts about one column.
func describeColumn(c describedColumn) []pgsession.Row {
	comment := "NULL"
	if c.comment != nil {
		comment = *c.comment
	}
	return []pgsession.Row{row("col_name", c.name), row("data_type", c.typ), row("comment", comment)}
}

// describeTable are the columns of a table and those it is partitioned by.
func describeTable(d *flowstate.Description, columns []describedColumn) []pgsession.Row {
	rows := make([]pgsession.Row, 0, len(columns))
	of := map[string]pgsession.Row{}
	for _, c := range columns {
		r := row(c.name, c.typ, "")
		r[2].Null = c.comment == nil
		if c.comment != nil {
			r[2].Text = *c.comment
		}
		rows = append(rows, r)
		of[c.name] = r
	}
	if len(d.PartitionBy) > 0 {
		rows = append(rows, row("# Partition Information", "", ""), row("# col_name", "data_type", "comment"))
		for _, name := range d.PartitionBy {
			if r, found := of[name]; found {
				rows = append(rows, r)
			}
		}
	}
	return rows
}

// describeExtended is what EXTENDED adds. A fact that there is none of has no
// row.
func describeExtended(c Client, d *flowstate.Description) []pgsession.Row {
	var rows []pgsession.Row
	section := func(title string) { rows = append(rows, row("", "", ""), row(title, "", "")) }
	fact := func(name, value string) {
		if value != "" {
			rows = append(rows, row(name, value, ""))
		}
	}
	section("# Detailed Table Information")
	fact("Catalog", c.Database())
	fact("Database", d.Target.Schema)
	fact("Table", d.Target.Table)
	fact("Owner", d.Owner)
	fact("Created Time", d.CreatedAt)
	fact("Type", "STREAMING_TABLE")
	if d.Comment != nil {
		fact("Comment", *d.Comment)
	}
	if len(d.Properties) > 0 {
		fact("Table Properties", propertyList(d.Properties))
	}
	if d.Flow != nil {
		section("# Flow Information")
		fact("Flow Name", d.Flow.Name)
		if d.Flow.Comment != nil {
			fact("Flow Comment", *d.Flow.Comment)
		}
		fact("Replace Where", d.Flow.Predicate)
		fact("Query", d.Flow.Query)
	}
	section("# Refresh Information")
	fact("Last Refreshed", d.LastRefreshed)
	fact("Last Refresh Type", refreshType(d.LastTechnique))
	fact("Latest Refresh", d.LatestRefresh)
	fact("Latest Refresh Status", d.LatestState)
	schedule := d.Schedule
	if schedule == "" {
		schedule = "MANUAL"
	}
	fact("Refresh Schedule", schedule)
	if d.NextRun != "" {
		fact("Next Refresh", d.NextRun)
	}
	return rows
}

// propertyList is [key=value,…] in the order of the keys.
func propertyList(properties map[string]string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		list = append(list, key+"="+properties[key])
	}
	return "[" + strings.Join(list, ",") + "]"
}

// refreshType is Databricks' word for a technique.
func refreshType(technique string) string {
	if technique == flowstate.TechniqueFullRecompute {
		return "RECOMPUTED"
	}
	return technique
}

// showProperties is SHOW TBLPROPERTIES.
func (e *Engine) showProperties(ctx context.Context, c Client, st *rewrite.ShowProperties, result *Result) error {
	d, err := e.description(ctx, c, st.Text, st.Target, st.Fault)
	if err != nil {
		return err
	}
	result.Columns = textColumns(st.ResultColumns())
	if st.Key != nil {
		value, found := d.Properties[*st.Key]
		if !found {
			value = fmt.Sprintf("Table %s does not have property: %s", d.Target.SQL(), *st.Key)
		}
		result.Rows = []pgsession.Row{row(*st.Key, value)}
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(d.Properties)) {
		result.Rows = append(result.Rows, row(key, d.Properties[key]))
	}
	return nil
}

// describeHistory is DESCRIBE HISTORY, whose shadow answers it.
func (e *Engine) describeHistory(ctx context.Context, c Client, st *rewrite.DescribeHistory) error {
	_, err := e.description(ctx, c, st.Text, st.Target, st.Fault)
	return err
}

// eventLog lets Postgres run a statement that reads the event log of streaming
// tables, whose names are no PostgreSQL. It returns the types of its parameters.
func (e *Engine) eventLog(ctx context.Context, c Client, st *rewrite.EventLog, declared []string) ([]uint32, error) {
	for _, name := range st.Targets {
		d, err := e.description(ctx, c, st.Text, name, nil)
		if err != nil {
			return nil, err
		}
		if !d.OwnedByCaller {
			return nil, pgdiag.New("42501", "must be owner of table "+d.Target.Table).
				WithHint("rwproxy.event_log shows a role the events of the tables that it may read.").
				At(rewrite.CharPosition(st.Text, name.Offset))
		}
	}
	typed, err := rewrite.DeclareParameters(st.Shadow(), rewrite.Lexical{}, declared)
	if err != nil {
		return nil, rewrite.Locate(err, st.Text)
	}
	description, err := c.Describe(ctx, typed.SQL)
	return description.Parameters, relocate(relocate(err, st.Shadow(), typed, 0), st.Text, st.Native, 0)
}

// textColumns are columns of type text.
func textColumns(names []string) []pgsession.Column {
	const textOID = 25
	columns := make([]pgsession.Column, len(names))
	for i, name := range names {
		columns[i] = pgsession.Column{Name: name, TypeOID: textOID, TypeModifier: -1}
	}
	return columns
}

func row(values ...string) pgsession.Row {
	r := make(pgsession.Row, len(values))
	for i, v := range values {
		r[i].Text = v
	}
	return r
}
