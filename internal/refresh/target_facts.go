package refresh

import (
	"context"
	_ "embed" // SQL files
	"fmt"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// targetFacts is what may come between a target and the rows of its window.
type targetFacts struct {
	beforeInsert bool // a row trigger may change a row before it is stored
	beforeDelete bool // a row trigger may keep a row that is deleted
	rules        bool // a rule may do something else
	rowSecurity  bool // a policy hides rows from this role
	sendable     bool // its rows have a binary form
	read         bool // another flow reads it
}

//go:embed target_facts.sql
var targetFactsSQL string

func readTargetFacts(ctx context.Context, s pgsession.Session, target uint32) (targetFacts, error) {
	rows, err := s.Query(ctx, targetFactsSQL, target)
	if err != nil {
		return targetFacts{}, err
	}
	is := func(i int) bool { return rows[0][i].Text == "t" }
	return targetFacts{beforeInsert: is(0), beforeDelete: is(1), rules: is(2), rowSecurity: is(3), sendable: is(4), read: is(5)}, nil
}

// refuse refuses a target whose rows a statement cannot be sure to replace.
func (f targetFacts) refuse(name string) error {
	switch {
	case f.rowSecurity:
		return pgdiag.New("42501", fmt.Sprintf("row-level security hides rows of table %q from this role", name)).
			WithDetail("Rows that it may not see or delete would stay beside those that replace them.").
			WithHint("Use the role of the table's owner, or one with BYPASSRLS.")
	case f.rules:
		return pgdiag.New("0A000", fmt.Sprintf("table %q has rules on INSERT or DELETE", name)).
			WithDetail("A rule does something else than to replace rows.").
			WithHint("Use triggers instead of rules.")
	}
	return nil
}

// rowsKept is the error for rows that were to be deleted and are still there.
func rowsKept(table string) *pgdiag.Diagnostic {
	return pgdiag.New("55000", fmt.Sprintf("rows of table %q were not deleted", table)).
		WithDetail("A trigger of the table keeps rows that are to be replaced; the new ones would be there beside them.").
		WithHint("Disable the BEFORE DELETE trigger, or let it return OLD.")
}
