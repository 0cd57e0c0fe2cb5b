package pgdiag_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

func TestAnErrorOfPostgresKeepsEveryFieldOnItsWay(t *testing.T) {
	t.Parallel()
	sent := &pgproto3.ErrorResponse{
		Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "23505", Message: "m", Detail: "d", Hint: "h",
		Position: 7, InternalPosition: 8, InternalQuery: "q", Where: "w", SchemaName: "s", TableName: "t", ColumnName: "c",
		DataTypeName: "y", ConstraintName: "n", File: "f.c", Line: 9, Routine: "r",
	}
	got := pgdiag.FromErrorResponse(sent).ErrorResponse()
	if diff := cmp.Diff(sent, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

func TestSeveritiesAreFilledIn(t *testing.T) {
	t.Parallel()
	d := pgdiag.New("42601", "m")
	if got := d.ErrorResponse().Severity; got != "ERROR" {
		t.Errorf("an error is of severity %q", got)
	}
	if got := d.NoticeResponse().Severity; got != "NOTICE" || d.Severity != "" {
		t.Errorf("a notice is of severity %q, and the diagnostic became %q", got, d.Severity)
	}
}

func TestEditedChangesACopy(t *testing.T) {
	t.Parallel()
	original := pgdiag.New("42601", "m").At(3)
	edited := pgdiag.Edited(fmt.Errorf("while parsing: %w", original), func(d *pgdiag.Diagnostic) { d.Position = 0 })
	var d *pgdiag.Diagnostic
	if !errors.As(edited, &d) || d.Position != 0 || d.Message != "m" || original.Position != 3 {
		t.Errorf("got %+v, and the original is %+v", d, original)
	}
	plain := errors.New("no diagnostic")
	never := func(*pgdiag.Diagnostic) { t.Error("there is nothing to edit") }
	if pgdiag.Edited(plain, never) != plain || pgdiag.Edited(nil, never) != nil {
		t.Error("an error without a diagnostic was changed")
	}
}
