package refresh

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// createStreamingTable is CREATE [OR REFRESH] STREAMING TABLE. The table, its
// flow and the first load commit together: a definition that cannot be loaded
// leaves nothing behind.
func (e *Engine) createStreamingTable(ctx context.Context, c Client, st *rewrite.CreateStreamingTable) error {
	if err := e.ensureInstalled(ctx, c); err != nil {
		return err
	}
	target, err := e.lookup(ctx, c, st.Text, st.Target)
	if err != nil {
		return err
	}
	switch {
	case target == nil:
		return e.createNew(ctx, c, st)
	case st.IfNotExists:
		return notify(ctx, c, pgdiag.New("42P07", fmt.Sprintf("relation %q already exists, skipping", target.Name)))
	case target.Table == nil && !st.OrRefresh:
		return pgdiag.New("42P07", fmt.Sprintf("relation %q already exists", target.Name)).
			WithDetail("TABLE_OR_VIEW_ALREADY_EXISTS").
			WithHint("It is not a streaming table: drop or rename it, or choose another name.").
			At(rewrite.CharPosition(st.Text, st.Target.Offset))
	case !st.OrRefresh:
		return pgdiag.New("42P07", fmt.Sprintf("relation %q already exists", target.Name)).
			WithDetail("TABLE_OR_VIEW_ALREADY_EXISTS").
			WithHint("CREATE OR REFRESH STREAMING TABLE changes the definition of one that exists.").
			At(rewrite.CharPosition(st.Text, st.Target.Offset))
	case target.Table == nil:
		return notStreamingTable(st.Text, st.Target).
			WithHint("Drop or rename it, or choose another name.")
	}
	return e.replaceTable(ctx, c, st, target)
}

func (e *Engine) createNew(ctx context.Context, c Client, st *rewrite.CreateStreamingTable) error {
	run := newRun(e, c, flowstate.KindWindow)
	err := inTransaction(ctx, c, func() error {
		settings, err := authorSettings(ctx, c, st.Properties)
		if err != nil {
			return err
		}
		name, err := creationName(ctx, c, st)
		if err != nil {
			return err
		}
		if run.frame, err = enter(ctx, c, settings, run.began); err != nil {
			return err
		}
		table, err := e.define(ctx, run.frame, st, name, settings)
		if err != nil {
			return err
		}
		if err := e.mayRunOwn(ctx, c, st); err != nil {
			return err
		}
		if err := flowstate.Create(ctx, c, *table); err != nil {
			return atTrigger(err, st.Text, st.Schedule)
		}
		if err := noticeStoredOnly(ctx, c, st); err != nil {
			return err
		}
		if st.Flow != nil {
			if err := run.inPlace(ctx, name); err != nil {
				return err
			}
		}
		return run.frame.leave(ctx)
	})
	return run.settle(ctx, err)
}

// creationName is the schema and name of a table that is to be created, in
// this database: looking for it has refused another.
func creationName(ctx context.Context, s pgsession.Session, st *rewrite.CreateStreamingTable) (rewrite.Name, error) {
	name := st.Target
	rows, err := s.Query(ctx, "select pg_catalog.current_schema()")
	if err != nil {
		return name, err
	}
	name.Catalog = ""
	if name.Schema == "" {
		if rows[0][0].Null {
			return name, pgdiag.New("3F000", "no schema has been selected to create in").
				At(rewrite.CharPosition(st.Text, name.Offset))
		}
		name.Schema = rows[0][0].Text
	}
	if name.Schema == "pg_temp" || strings.HasPrefix(name.Schema, "pg_temp_") {
		return name, pgdiag.New("0A000", "a streaming table cannot be temporary").
			WithHint("Other sessions refresh it too; name a schema that is not temporary.").
			At(rewrite.CharPosition(st.Text, name.Offset))
	}
	return name, nil
}

// define creates the table, and the view of its flow if it has one, and
// returns what is to be stored.
func (e *Engine) define(ctx context.Context, f *frame, st *rewrite.CreateStreamingTable, name rewrite.Name, settings map[string]string) (*flowstate.StreamingTable, error) {
	table := &flowstate.StreamingTable{
		Target:      name,
		Statement:   st.Text,
		Properties:  st.Properties,
		Comment:     st.Comment,
		PartitionBy: partitionBy(st),
		Settings:    settings,
		Declared:    len(st.Columns) > 0,
	}
	if err := storeClauses(ctx, f.session, st, table); err != nil {
		return nil, err
	}
	if err := declareInDialect(ctx, f, st, lexicalOf(settings)); err != nil {
		return nil, err
	}
	var err error
	var query *flowQuery
	var view string
	if st.Flow != nil {
		if query, err = readQuery(ctx, f, st.Text, st.Flow.Query, lexicalOf(settings)); err != nil {
			return nil, err
		}
		if view, err = query.createView(ctx, f, name); err != nil {
			return nil, err
		}
	}
	if err := createTarget(ctx, f, st, name, view); err != nil {
		return nil, err
	}
	if err := checkPartitionBy(ctx, f.session, st, name); err != nil {
		return nil, err
	}
	if st.Flow == nil {
		return table, nil
	}
	flow, err := e.defineFlow(ctx, f, st.Text, name.Table, name, *st.Flow, query, view)
	if err != nil {
		return nil, err
	}
	table.Flow = flow
	return table, nil
}

// createTarget creates the target table: with its declared columns, else with
// those of the flow's view, else without any.
func createTarget(ctx context.Context, f *frame, st *rewrite.CreateStreamingTable, name rewrite.Name, view string) error {
	head := "create table " + name.SQL() + " ("
	create := head + ")"
	var elements rewrite.Translation
	switch {
	case len(st.Columns) > 0:
		elements = rewrite.TableElements(st)
		create = head + elements.SQL + ")"
	case view != "":
		create = "create table " + name.SQL() + " as select * from " + view + " with no data"
	}
	err := f.asFlow(ctx, func() error {
		_, err := f.session.Exec(ctx, create)
		return err
	})
	if err != nil {
		before := utf8.RuneCountInString(head)
		at := rewrite.CharPosition(st.Text, st.Target.Offset)
		switch d := diagnostic(err); {
		case d.Position > 0 && d.Position <= before, d.Code == "3F000" && elements.SQL == "": // it is about the name
			return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) { d.Position = at })
		}
		return relocate(err, st.Text, elements, before)
	}
	return writeComments(ctx, f.session, st, name, nil)
}

// writeComments makes the comments on a target those of the statement; old are
// its columns before it, whose comments go when they are not repeated.
func writeComments(ctx context.Context, s pgsession.Session, st *rewrite.CreateStreamingTable, name rewrite.Name, old []column) error {
	comments := map[string]*string{}
	for _, c := range old {
		if c.hasComment {
			comments[c.name] = nil
		}
	}
	for _, c := range st.Columns {
		if c.Comment != nil {
			comments[c.Name] = c.Comment
		}
	}
	if st.Comment != nil || old != nil {
		if _, err := s.Exec(ctx, "comment on table "+name.SQL()+" is "+commentLiteral(st.Comment)); err != nil {
			return err
		}
	}
	for column, comment := range comments {
		_, err := s.Exec(ctx, "comment on column "+name.SQL()+"."+rewrite.QuoteIdentifier(column)+" is "+commentLiteral(comment))
		if err != nil {
			return err
		}
	}
	return nil
}

func commentLiteral(comment *string) string {
	if comment == nil {
		return "null"
	}
	return rewrite.QuoteLiteral(*comment)
}

// partitionBy are the names of the columns in PARTITIONED BY.
func partitionBy(st *rewrite.CreateStreamingTable) []string {
	var names []string
	for _, c := range st.PartitionBy {
		names = append(names, c.Name)
	}
	return names
}

// checkPartitionBy refuses a PARTITIONED BY column that the table lacks. The
// columns of a table that has none yet come with its flow.
func checkPartitionBy(ctx context.Context, s pgsession.Session, st *rewrite.CreateStreamingTable, name rewrite.Name) error {
	if len(st.PartitionBy) == 0 || len(st.Columns) == 0 && st.Flow == nil {
		return nil
	}
	columns, err := columnsOf(ctx, s, name.SQL())
	if err != nil {
		return err
	}
	existing := byName(columns)
	for _, c := range st.PartitionBy {
		if _, found := existing[c.Name]; !found {
			return pgdiag.New("42703", fmt.Sprintf("column %q named in PARTITIONED BY does not exist", c.Name)).
				WithDetail("UNRESOLVED_COLUMN.WITH_SUGGESTION").
				WithHint("The columns are " + columnList(columns) + ".").
				At(rewrite.CharPosition(st.Text, c.Offset))
		}
	}
	return nil
}

// storeClauses puts the clauses that only are stored into table.
func storeClauses(ctx context.Context, s pgsession.Session, st *rewrite.CreateStreamingTable, table *flowstate.StreamingTable) (err error) {
	if st.ClusterBy != nil {
		table.ClusterBy = st.ClusterBy.Text
	}
	if st.Schedule != nil {
		table.Schedule, err = scheduleText(ctx, s, st.Text, *st.Schedule)
	}
	return err
}

// noticeStoredOnly says which clauses are stored and have no effect here.
func noticeStoredOnly(ctx context.Context, c Client, st *rewrite.CreateStreamingTable) error {
	notices := slices.Clone(st.Notices)
	if st.ClusterBy != nil {
		notices = append(notices, storedOnly("CLUSTER BY", "Create an index on the columns you filter by."))
	}
	if len(st.PartitionBy) > 0 {
		notices = append(notices, storedOnly("PARTITIONED BY", "The target is an ordinary table; create an index on the columns you filter by."))
	}
	return notifyAll(ctx, c, notices)
}
