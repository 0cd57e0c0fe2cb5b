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
}

//go:embed target_facts.sql
var targetFactsSQL string

func readTargetFacts(ctx context.Context, s pgsession.Session, target uint32) (targetFacts, error) {
	rows, err := s.Query(ctx, targetFactsSQL, target)
	if err != nil {
		return targetFacts{}, err
	}
	is := func(i int) bool { return rows[0][i].Text == "t" }
	return targetFacts{beforeInsert: is(0), beforeDelete: is(1), rules: is(2), rowSecurity: is(3)}, nil
}

// refuse refuses a target whose rows a refresh cannot be sure to replace.
func (f targetFacts) refuse(name string) error {
	switch {
	case f.rowSecurity:
		return pgdiag.New("42501", fmt.Sprintf("row-level security hides rows of table %q from this role", name)).
			WithDetail("A refresh deletes the rows that it can see; those it cannot see would be doubled.").
			WithHint("Refresh as the table's owner, or as a role with BYPASSRLS.")
	case f.rules:
		return pgdiag.New("0A000", fmt.Sprintf("table %q has rules on INSERT or DELETE", name)).
			WithDetail("A rule replaces what a refresh does by something else.").
			WithHint("Use triggers instead of rules.")
	}
	return nil
}
