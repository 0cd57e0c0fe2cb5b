package refresh

import (
	"context"
	_ "embed" // SQL files
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// predicate is a predicate that a client has sent.
type predicate struct {
	typed       rewrite.Span
	statement   string // the whole statement, for positions
	lexical     rewrite.Lexical
	translation rewrite.Translation // set by read
	columns     []column            // of the target, for a hint; nil if they are not known
}

// read translates the predicate and has Postgres check it against the target
// and against the flow's query, so that it means the same on both sides of a
// refresh. query is what its qualifiers may refer to, nil for the target alone.
func (p *predicate) read(ctx context.Context, f *frame, w rewrite.Window, target rewrite.Name, query *rewrite.Span) error {
	return f.asFlow(ctx, func() error {
		var err error
		p.translation, err = rewrite.TranslatePredicate(p.typed, rewrite.PredicateContext{
			Target: target, Query: query, Lexical: p.lexical, Catalog: catalog{ctx, f.session},
		})
		if err != nil {
			return rewrite.Locate(err, p.statement)
		}
		w.Predicate = p.translation.SQL
		if err := p.checkTarget(ctx, f.session, w); err != nil {
			return err
		}
		return p.checkSource(ctx, f.session, w)
	})
}

// blanks are what PostgreSQL takes for white space.
const blanks = " \t\r\n\f\v"

func (p *predicate) checkTarget(ctx context.Context, s pgsession.Session, w rewrite.Window) error {
	probe := w.Probe()
	description, err := s.Describe(ctx, probe)
	if err != nil {
		return p.locate(err, probe[:w.PredicateOffset(probe)])
	}
	if len(description.Parameters) > 0 {
		return noParameter(p.statement, p.typed, p.lexical)
	}
	return nil
}

func (p *predicate) checkSource(ctx context.Context, s pgsession.Session, w rewrite.Window) error {
	probe := w.ProbeSource()
	_, err := s.Describe(ctx, probe)
	if err == nil {
		return nil
	}
	return pgdiag.Edited(p.locate(err, probe[:w.PredicateOffset(probe)]), func(d *pgdiag.Diagnostic) {
		if d.Code == "42703" {
			d.Detail = "The target has it, the flow's query does not return it."
			d.Hint = "Return the column from the query, or use columns that it returns."
		}
	})
}

// locate gives an error that Postgres reported in a WHERE clause of ours its
// position in the client's statement, and the SQLSTATE of the dialect where
// that differs.
func (p *predicate) locate(err error, prefix string) error {
	err = relocate(err, p.statement, p.translation, utf8.RuneCountInString(prefix))
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		d.Message = strings.Replace(d.Message, " in WHERE", " in a predicate", 1)
		d.Hint = strings.ReplaceAll(d.Hint, rewrite.TargetAlias+".", "")
		switch {
		case d.Code == "42601" && d.Position == 0:
			// Postgres stumbles over the bracket that we closed behind it.
			d.Message = "syntax error at the end of the predicate"
			behind := p.statement[p.typed.Offset+len(strings.TrimRight(p.typed.Text, blanks)):]
			d.Position = rewrite.CharPosition(p.statement, len(p.statement)-len(strings.TrimLeft(behind, blanks)))
		case d.Code == "42803" || d.Code == "42P20":
			d.Code = "42903"
			d.Detail = "INVALID_WHERE_CONDITION"
			d.Hint = "A predicate selects rows of the target one by one; compute the value in the flow's query and name its column."
		case isNotBoolean(d):
			d.Code = "42K09"
			d.Message = strings.Replace(d.Message, "argument of WHERE", "predicate", 1)
			d.Detail = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
			d.Hint = notBooleanHint
		case d.Code == "42703" && d.Detail == "":
			d.Detail = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
			if d.Hint == "" {
				d.Hint = p.columnsHint()
			}
		}
	})
}

// columnsHint says which columns a predicate can name.
func (p *predicate) columnsHint() string {
	if len(p.columns) == 0 {
		return "A predicate names columns of the table."
	}
	return "The columns are " + columnList(p.columns) + "."
}

// notBooleanHint is for a predicate or condition of another type.
const notBooleanHint = "It has to be true or false for a row; compare the value, as in value > 0."

// predicateFacts is what Postgres says of a predicate.
type predicateFacts struct {
	// volatile says that it may have other values each time it is evaluated, the
	// clock apart, which is read once a refresh.
	volatile bool
	columns  []string // of the target, that it depends on
}

//go:embed predicate_facts.sql
var predicateFactsSQL string

// facts stores the predicate in a view for a moment, which is the only form in
// which Postgres names the functions, operators and columns that a text uses.
// Date/time strings that would be frozen are refused.
func (p *predicate) facts(ctx context.Context, f *frame, w rewrite.Window) (predicateFacts, error) {
	w.Predicate = p.translation.SQL
	view := viewSchema + "." + rewrite.QuoteIdentifier(viewName("predicate"))
	err := f.asFlow(ctx, func() error { return quietly(ctx, f.session, "create view "+view+" as "+w.Probe()) })
	if err != nil {
		return predicateFacts{}, withoutPosition(err)
	}
	rows, err := f.session.Query(ctx, predicateFactsSQL, view, w.Target)
	if err != nil {
		return predicateFacts{}, err
	}
	facts := predicateFacts{columns: []string{}}
	for _, r := range rows {
		if !r[2].Null {
			facts.columns = append(facts.columns, r[2].Text)
		}
	}
	if frozen := frozenWord(p.translation.SQL, rows[0][0].Text, p.lexical); frozen != nil {
		return predicateFacts{}, frozenError(frozen.word).
			At(originPosition(p.statement, p.translation, rewrite.CharPosition(p.translation.SQL, frozen.offset)))
	}
	query, err := readQueryFacts(ctx, f.session, []viewRule{{action: rows[0][1].Text}})
	if err != nil {
		return predicateFacts{}, err
	}
	facts.volatile = slices.ContainsFunc(query.issues, func(i issue) bool { return !i.resolved() })
	_, err = f.session.Exec(ctx, "drop view "+view)
	return facts, err
}

//go:embed predicate_may_differ.sql
var predicateMayDifferSQL string

// mayDiffer says whether a resolved predicate may be true for a row when rows
// are deleted and not when they are inserted, or the other way round. Of a
// predicate that holds for one refresh that is all there is to know, and names
// tell it without a view, which not everybody who refreshes may create.
func mayDiffer(ctx context.Context, s pgsession.Session, condition string, lexical rewrite.Lexical) (bool, error) {
	functions, operators, err := rewrite.Calls(condition, lexical)
	if err != nil || len(functions)+len(operators) == 0 {
		return false, err
	}
	rows, err := s.Query(ctx, predicateMayDifferSQL, functions, operators)
	if err != nil {
		return false, err
	}
	return rows[0][0].Text == "t", nil
}

// resolve replaces the clock in a predicate by typed literals, once a refresh:
// DELETE and INSERT use the same text, history shows it, and the next refresh
// compares its own with it. A literal is written in ISO 8601, which is read
// alike under every DateStyle; the flow's time zone is pinned.
func resolve(ctx context.Context, f *frame, condition string, lexical rewrite.Lexical) (string, error) {
	return rewrite.ResolveTemporal(condition, lexical, func(expression string) (string, error) {
		rows, err := f.session.Query(ctx,
			"select quote_literal(to_jsonb("+expression+") #>> '{}') || '::' || pg_typeof("+expression+")::text")
		if err != nil {
			return "", err
		}
		return rows[0][0].Text, nil
	})
}
