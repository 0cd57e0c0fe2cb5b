package refresh

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// checkPredicate has Postgres check a translated predicate against the target
// and against the flow's query, so that it means the same on both sides of a
// refresh. statement is what the client sent.
func checkPredicate(ctx context.Context, s pgsession.Session, w rewrite.Window, statement string, t rewrite.Translation) error {
	w.Predicate = t.SQL
	probe := w.Probe()
	description, err := s.Describe(ctx, probe)
	if err != nil {
		return predicateError(err, statement, t, probe[:w.PredicateOffset(probe)])
	}
	if len(description.Parameters) > 0 {
		return pgdiag.New("42P02", "a predicate cannot have parameters here").
			WithHint("Write the values into the predicate.").
			At(originPosition(statement, t, 1))
	}
	probe = w.ProbeSource()
	if _, err := s.Describe(ctx, probe); err != nil {
		err = predicateError(err, statement, t, probe[:w.PredicateOffset(probe)])
		var d *pgdiag.Diagnostic
		if errors.As(err, &d) && d.Code == "42703" {
			d.Detail = "The target has it, the flow's query does not return it."
			d.Hint = "Return the column from the query, or use columns that it returns."
		}
		return err
	}
	return nil
}

// predicateError gives an error that Postgres reported in a WHERE clause of
// ours its position in the client's statement, and the SQLSTATE of the
// dialect where that differs.
func predicateError(err error, statement string, t rewrite.Translation, prefix string) error {
	var d *pgdiag.Diagnostic
	err = relocate(err, statement, t, utf8.RuneCountInString(prefix))
	if !errors.As(err, &d) {
		return err
	}
	own := *d
	own.Message = strings.Replace(d.Message, " in WHERE", " in a predicate", 1)
	switch {
	case d.Code == "42601" && d.Position == 0:
		// Postgres stumbles over the bracket that we closed behind it.
		own.Message = "syntax error at the end of the predicate"
		own.Position = originPosition(statement, t, utf8.RuneCountInString(t.SQL))
	case d.Code == "42803" || d.Code == "42P20":
		own.Code = "42903"
		own.Detail = "INVALID_WHERE_CONDITION"
		own.Hint = "A predicate selects rows of the target one by one; compute the value in the flow's query and name its column."
	case d.Code == "42804" && strings.HasPrefix(d.Message, "argument of WHERE"):
		own.Code = "42K09"
		own.Message = strings.Replace(d.Message, "argument of WHERE", "predicate", 1)
		own.Detail = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
	case d.Code == "42703" && d.Detail == "":
		own.Detail = "UNRESOLVED_COLUMN.WITH_SUGGESTION"
	}
	return &own
}

// predicateFacts is what Postgres says of a predicate's functions.
type predicateFacts struct {
	volatile bool
}

// readPredicateFacts stores the predicate in a view for a moment, which is the
// only form in which Postgres names the functions and operators a text calls.
// It refuses date/time strings that would be frozen in it.
func readPredicateFacts(ctx context.Context, s pgsession.Session, w rewrite.Window, statement string, t rewrite.Translation, lexical rewrite.Lexical) (predicateFacts, error) {
	w.Predicate = t.SQL
	view := viewSchema + "." + rewrite.QuoteIdentifier(viewName("predicate"))
	if _, err := s.Exec(ctx, "create view "+view+" as "+w.Probe()); err != nil {
		return predicateFacts{}, withoutPosition(err)
	}
	rows, err := s.Query(ctx, `
		select pg_catalog.pg_get_viewdef(r.ev_class),
		       exists (select
		                 from pg_catalog.regexp_matches(r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') as called (oid)
		                 join pg_catalog.pg_proc p on p.oid = called.oid[1]::oid
		                where p.provolatile = 'v')
		  from pg_catalog.pg_rewrite r
		 where r.ev_class = $1::pg_catalog.regclass`, view)
	if err != nil {
		return predicateFacts{}, err
	}
	if f := frozenWord(t.SQL, rows[0][0].Text, lexical); f != nil {
		return predicateFacts{}, frozenError(f.word).
			At(originPosition(statement, t, rewrite.CharPosition(t.SQL, f.offset)))
	}
	if _, err := s.Exec(ctx, "drop view "+view); err != nil {
		return predicateFacts{}, err
	}
	return predicateFacts{volatile: rows[0][1].Text == "t"}, nil
}

// resolvePredicate replaces the clock in a predicate by typed literals, once a
// refresh: DELETE and INSERT use the same text, history shows it, and the next
// refresh compares its own with it. The flow's settings must be pinned.
func resolvePredicate(ctx context.Context, s pgsession.Session, predicate string, lexical rewrite.Lexical) (string, error) {
	return rewrite.ResolveTemporal(predicate, lexical, func(expression string) (string, error) {
		rows, err := s.Query(ctx,
			"select pg_catalog.quote_literal(("+expression+")::text) || '::' || pg_catalog.pg_typeof("+expression+")::text")
		if err != nil {
			return "", err
		}
		return rows[0][0].Text, nil
	})
}
