package refresh

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Prepare checks a statement that is prepared, as far as Postgres would, and
// returns the type OIDs of its parameters, as Postgres infers them. declared are
// the types that the client wants, by qualified name, "" for those that it leaves
// open. It runs in the client's transaction and changes nothing.
func (e *Engine) Prepare(ctx context.Context, c Client, statement rewrite.Statement, declared []string) ([]uint32, error) {
	text := ""
	switch st := statement.(type) {
	case *rewrite.Refresh:
		if st.Where != nil {
			return e.refreshParameters(ctx, c, st, declared)
		}
		text = st.Text
	case *rewrite.Insert:
		return e.insertParameters(ctx, c, st, declared)
	case *rewrite.CreateStreamingTable:
		text = st.Text
	case *rewrite.CreateFlow:
		text = st.Text
	case *rewrite.Describe:
		_, err := e.described(ctx, c, st)
		return nil, err
	case *rewrite.ShowCreateTable:
		_, err := e.description(ctx, c, st.Text, st.Target, st.Fault)
		return nil, err
	case *rewrite.ShowProperties:
		_, err := e.description(ctx, c, st.Text, st.Target, st.Fault)
		return nil, err
	case *rewrite.DescribeHistory:
		return nil, e.describeHistory(ctx, c, st)
	case *rewrite.EventLog:
		return e.eventLog(ctx, c, st, declared)
	default:
		return nil, pgdiag.New("42P02", "this statement cannot have parameters").WithHint(noParameterHint)
	}
	rows, err := c.Query(ctx, "select pg_catalog.current_setting('standard_conforming_strings')")
	if err != nil {
		return nil, err
	}
	return nil, noParameter(text, rewrite.Span{Text: text}, lexicalOf(map[string]string{settingStandardStrings: rows[0][0].Text}))
}

const noParameterHint = "Write the value into the statement."

// noParameter is Postgres's error for the first parameter of a part of a
// statement: a flow is stored, with nobody to ask for a value.
func noParameter(statement string, part rewrite.Span, lexical rewrite.Lexical) error {
	return rewrite.NoParameter(statement, part.Offset+rewrite.FirstParameter(part.Text, lexical)).WithHint(noParameterHint)
}

// refreshParameters has Postgres read the predicate against the target, under
// the settings that the refresh will run under.
func (e *Engine) refreshParameters(ctx context.Context, c Client, st *rewrite.Refresh, declared []string) ([]uint32, error) {
	target, err := e.refreshable(ctx, c, st)
	if err != nil {
		return nil, err
	}
	f, err := enter(ctx, c, target.Table.Settings, time.Now())
	if err != nil {
		return nil, err
	}
	p := predicate{typed: *st.Where, statement: st.Text, lexical: lexicalOf(f.own)}
	p.lexical.Dialect = lexicalOf(target.Table.Settings).Dialect
	var types []uint32
	err = f.asFlow(ctx, func() error {
		types, err = p.parameters(ctx, c, target.QualifiedName(), declared)
		return err
	})
	if err != nil {
		return nil, err
	}
	return types, f.leave(ctx)
}

// parameters describes the predicate against the target. The types of the
// flow's query do not count: the refresh casts its columns to the target's.
func (p *predicate) parameters(ctx context.Context, s pgsession.Session, target rewrite.Name, declared []string) ([]uint32, error) {
	var err error
	p.translation, err = rewrite.TranslatePredicate(p.typed, rewrite.PredicateContext{
		Target: target, Lexical: p.lexical, Catalog: catalog{ctx, s},
	})
	if err != nil {
		return nil, rewrite.Locate(err, p.statement)
	}
	typed, err := rewrite.DeclareParameters(p.translation.SQL, rewrite.Lexical{}, declared)
	if err != nil {
		return nil, relocate(err, p.statement, p.translation, 0)
	}
	w := rewrite.Window{Target: target.SQL(), Predicate: typed.SQL}
	probe := w.Probe()
	description, err := s.Describe(ctx, probe)
	if err != nil {
		prefix := probe[:w.PredicateOffset(probe)]
		return nil, p.locate(relocate(err, p.translation.SQL, typed, utf8.RuneCountInString(prefix)), "")
	}
	return description.Parameters, nil
}

// insertParameters has Postgres read the shadow of an INSERT where the
// statement itself would be read.
func (e *Engine) insertParameters(ctx context.Context, c Client, st *rewrite.Insert, declared []string) ([]uint32, error) {
	i := &insertion{engine: e, client: c, statement: st, began: time.Now()}
	err := e.installFunctions(ctx, c)
	if err != nil {
		return nil, err
	}
	if i.settings, err = readInsertSettings(ctx, c, st.Replaces); err != nil {
		return nil, err
	}
	if err := i.enter(ctx); err != nil {
		return nil, err
	}
	if err := i.resolveTarget(ctx); err != nil {
		return nil, err
	}
	shadow := st.ShadowIn(i.settings.lexical)
	typed, err := rewrite.DeclareParameters(shadow.SQL, i.settings.lexical, declared)
	if err != nil {
		return nil, noParameter(st.Text, rewrite.Span{Text: st.Text}, i.settings.lexical)
	}
	var description pgsession.Description
	err = i.frame.asFlow(ctx, func() (err error) {
		description, err = c.Describe(ctx, typed.SQL)
		return incomplete(relocate(relocate(err, shadow.SQL, typed, 0), st.Text, shadow, 0), st.Text)
	})
	if err != nil {
		return nil, err
	}
	return description.Parameters, i.frame.leave(ctx)
}

// incomplete words the error of a statement that ends too early, where Postgres
// stumbles over what we have put behind it.
func incomplete(err error, statement string) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Code == "42601" && d.Position == 0 {
			d.Message, d.Position = "syntax error at end of input", rewrite.CharPosition(statement, len(statement))
		}
	})
}
