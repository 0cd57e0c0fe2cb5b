package refresh

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// ParameterTypes returns the type OIDs of the parameters of a statement that
// is prepared, as Postgres infers them. declared are the types that the client
// wants, by qualified name, "" for those that it leaves open. It runs in the
// client's transaction and changes nothing.
func (e *Engine) ParameterTypes(ctx context.Context, c Client, statement rewrite.Statement, declared []string) ([]uint32, error) {
	switch st := statement.(type) {
	case *rewrite.Refresh:
		return e.refreshParameters(ctx, c, st, declared)
	case *rewrite.CreateStreamingTable, *rewrite.CreateFlow:
		return nil, pgdiag.New("42P02", "a flow cannot have parameters").
			WithHint("Write the values into the statement; a stored flow has nobody to ask for them.")
	}
	return nil, pgdiag.New("42P02", "this statement cannot have parameters").
		WithHint("Write the values into the statement.")
}

// refreshParameters has Postgres read the predicate against the target, under
// the settings that the refresh will run under.
func (e *Engine) refreshParameters(ctx context.Context, c Client, st *rewrite.Refresh, declared []string) ([]uint32, error) {
	if st.Where == nil {
		return nil, pgdiag.New("42P02", "only the WHERE of a REFRESH can have parameters").
			WithHint("Write the values into the statement.")
	}
	target, err := e.refreshable(ctx, c, st)
	if err != nil {
		return nil, err
	}
	f, err := enter(ctx, c, target.Table.Settings, time.Now())
	if err != nil {
		return nil, err
	}
	p := predicate{typed: *st.Where, statement: st.Text, lexical: lexicalOf(f.own)}
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
