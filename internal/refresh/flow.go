package refresh

import (
	"context"
	_ "embed" // SQL files
	"fmt"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// defineFlow checks a flow against its target and returns what is to be
// stored. The view exists; the target has its columns.
func (e *Engine) defineFlow(ctx context.Context, f *frame, statement, flowName string, target rewrite.Name, flow rewrite.ReplaceWhere, query *flowQuery, view string) (*flowstate.Flow, error) {
	s := f.session
	if err := refuseOwnTarget(ctx, s, target, view); err != nil {
		return nil, err
	}
	targetColumns, err := columnsOf(ctx, s, target.SQL())
	if err != nil {
		return nil, err
	}
	viewColumns, err := columnsOf(ctx, s, view)
	if err != nil {
		return nil, err
	}
	if err := checkColumns(statement, flow.Query, target, targetColumns, viewColumns); err != nil {
		return nil, err
	}
	if err := checkAssignable(ctx, s, target, view, viewColumns); err != nil {
		return nil, err
	}
	w := rewrite.Window{Target: target.SQL(), View: view}
	if w.Columns, err = windowColumns(targetColumns, viewColumns, query.lexical.Dialect); err != nil {
		return nil, pgdiag.Edited(err, func(d *pgdiag.Diagnostic) { d.Position = rewrite.CharPosition(statement, flow.Query.Offset) })
	}
	p := predicate{typed: flow.Predicate, statement: statement, lexical: query.lexical, columns: targetColumns}
	if err := p.read(ctx, f, w, target, &flow.Query); err != nil {
		return nil, err
	}
	facts, err := p.facts(ctx, f, w)
	if err != nil {
		return nil, err
	}
	return &flowstate.Flow{
		Name:              flowName,
		View:              view,
		Predicate:         strings.TrimSpace(flow.Predicate.Text),
		Condition:         p.translation.SQL,
		PredicateVolatile: facts.volatile,
		PredicateColumns:  facts.columns,
		Query:             strings.TrimSpace(flow.Query.Text),
	}, nil
}

//go:embed reads.sql
var readsSQL string

// refuseOwnTarget refuses a query that reads its own target: the rows it would
// read are those that a refresh deletes first.
func refuseOwnTarget(ctx context.Context, s pgsession.Session, target rewrite.Name, view string) error {
	rows, err := s.Query(ctx, readsSQL, view, target.SQL())
	if err != nil || rows[0][0].Text == "f" {
		return err
	}
	return pgdiag.New("42P17", fmt.Sprintf("the flow's query reads its own target %q", display(target))).
		WithDetail("A refresh deletes the rows of the window before it runs the query.").
		WithHint("Read from the sources, or keep the state in another table.")
}

// checkColumns refuses a query that returns a column the target does not have.
func checkColumns(statement string, query rewrite.Span, target rewrite.Name, targetColumns, viewColumns []column) error {
	inTarget := byName(targetColumns)
	for _, c := range viewColumns {
		if _, found := inTarget[c.name]; !found {
			return pgdiag.New("42703", fmt.Sprintf("column %q of the flow's query is not a column of %q", c.name, display(target))).
				WithDetail("A flow's columns are matched to the table's by name.").
				WithHint("Declare the column in the table, or leave the column list out.").
				At(rewrite.CharPosition(statement, query.Offset))
		}
	}
	return nil
}

// checkAssignable has Postgres check that the query's columns can be stored in
// the target's: a refresh casts explicitly, which allows more than storing does.
func checkAssignable(ctx context.Context, s pgsession.Session, target rewrite.Name, view string, viewColumns []column) error {
	names := make([]string, len(viewColumns))
	for i, c := range viewColumns {
		names[i] = rewrite.QuoteIdentifier(c.name)
	}
	list := strings.Join(names, ", ")
	_, err := s.Describe(ctx, "insert into "+target.SQL()+" ("+list+") select "+list+" from "+view)
	return withoutOverriding(withoutPosition(err))
}

// createFlow is CREATE FLOW … AS INSERT INTO … BY NAME REPLACE WHERE …. It
// adds the flow to a streaming table that has none, and loads its window.
func (e *Engine) createFlow(ctx context.Context, c Client, st *rewrite.CreateFlow) error {
	if err := e.ensureInstalled(ctx, c); err != nil {
		return err
	}
	target, err := e.lookup(ctx, c, st.Text, st.Target)
	switch {
	case err != nil:
		return err
	case target == nil:
		return undefinedTable(st.Text, st.Target)
	case target.Table == nil:
		return notStreamingTable(st.Text, st.Target)
	case !target.OwnedByCaller:
		return notOwner(target.Name)
	case target.Table.Flow != nil:
		return pgdiag.New("42710", fmt.Sprintf("table %q already has a REPLACE WHERE flow %q", target.Name, target.Table.Flow.Name)).
			WithDetail("Only one flow may target a streaming table.").
			WithHint("CREATE OR REFRESH STREAMING TABLE ... FLOW REPLACE WHERE ... changes the flow it has.").
			At(rewrite.CharPosition(st.Text, st.Target.Offset))
	}
	run := newRun(e, c, flowstate.KindWindow)
	err = inTransaction(ctx, c, func() error {
		settings, err := authorSettings(ctx, c, target.Table.Properties)
		if err != nil {
			return err
		}
		if run.frame, err = enter(ctx, c, settings, run.began); err != nil {
			return err
		}
		query, err := readQuery(ctx, run.frame, st.Text, st.Flow.Query, lexicalOf(settings))
		if err != nil {
			return err
		}
		name := target.QualifiedName()
		view, err := query.createView(ctx, run.frame, name)
		if err != nil {
			return err
		}
		if err := giveToOwner(ctx, c, view, target.Owner); err != nil {
			return err
		}
		if !target.Table.Declared {
			if err := addViewColumns(ctx, c, name, view); err != nil {
				return err
			}
		}
		flow, err := e.defineFlow(ctx, run.frame, st.Text, st.Name, name, st.Flow, query, view)
		if err != nil {
			return err
		}
		flow.Comment = st.Comment
		if err := flowstate.AddFlow(ctx, c, target.OID, *flow, settings, st.Text); err != nil {
			return err
		}
		if err := run.inPlace(ctx, name); err != nil {
			return err
		}
		return run.frame.leave(ctx)
	})
	return run.settle(ctx, err)
}

// addViewColumns gives the target the columns of the view that it lacks.
func addViewColumns(ctx context.Context, s pgsession.Session, target rewrite.Name, view string) error {
	viewColumns, err := columnsOf(ctx, s, view)
	if err != nil {
		return err
	}
	targetColumns, err := columnsOf(ctx, s, target.SQL())
	if err != nil {
		return err
	}
	inTarget := byName(targetColumns)
	var adds []string
	for _, c := range viewColumns {
		if _, found := inTarget[c.name]; !found {
			adds = append(adds, "add column "+rewrite.QuoteIdentifier(c.name)+" "+c.definition())
		}
	}
	if len(adds) == 0 {
		return nil
	}
	_, err = s.Exec(ctx, "alter table "+target.SQL()+" "+strings.Join(adds, ", "))
	return withoutPosition(err)
}
