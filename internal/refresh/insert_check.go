package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// insertChecks are the conditions of REPLACE WHERE that the rows have to meet:
// those that a top-level AND joins and that refer to a column.
type insertChecks struct {
	condition rewrite.Translation
	kept      []rewrite.Conjunct // on columns that the query gives a value to
	stored    []rewrite.Conjunct // that can be told only of a row in the target
	shown     []string           // the columns of a row that an error shows
}

// planChecks decides where each condition is checked. A row that can be
// stored with other values than it was kept with, because of a trigger, is
// checked as it is stored.
func (i *insertion) planChecks(condition rewrite.Translation) {
	i.checks.condition = condition
	for _, c := range i.sql.Columns {
		if !c.Computed {
			i.checks.shown = append(i.checks.shown, c.Name)
		}
	}
	for _, c := range rewrite.Conjuncts(condition.SQL) {
		switch {
		case c.Known && len(c.Columns) == 0:
		case !i.target.facts.beforeInsert && c.Known && !slices.ContainsFunc(c.Columns, func(name string) bool { return !i.stores(name) }):
			i.checks.kept = append(i.checks.kept, c)
		default:
			i.checks.stored = append(i.checks.stored, c)
			for _, name := range c.Columns {
				if !slices.Contains(i.checks.shown, name) {
					i.checks.shown = append(i.checks.shown, name)
				}
			}
		}
	}
}

// checkKept checks the rows before anything is deleted.
func (i *insertion) checkKept(ctx context.Context) error {
	if len(i.checks.kept) == 0 {
		return nil
	}
	shown := slices.DeleteFunc(slices.Clone(i.checks.shown), func(name string) bool { return !i.stores(name) })
	rows, err := i.client.Query(ctx, i.sql.FindViolation(i.checks.kept, shown).SQL)
	if err != nil {
		return withoutPosition(err)
	}
	if len(rows) == 0 {
		return nil
	}
	return i.violation(rows[0][0], i.checks.kept, shown)
}

// store inserts the kept rows, and checks what can be checked only then.
func (i *insertion) store(ctx context.Context) error {
	var err error
	if len(i.checks.stored) == 0 {
		i.inserted, err = i.exec(ctx, i.sql.Insert())
		return err
	}
	if err := i.frame.limit(ctx); err != nil {
		return err
	}
	rows, err := i.client.Query(ctx, i.sql.InsertChecked(i.checks.stored, i.checks.shown).SQL)
	if err != nil {
		return withoutPosition(err)
	}
	if i.inserted, err = strconv.ParseInt(rows[0][0].Text, 10, 64); err != nil {
		return err
	}
	return i.violation(rows[0][1], i.checks.stored, i.checks.shown)
}

// violation is the error for a row that does not meet a check; nil for NULL.
func (i *insertion) violation(found pgsession.Value, checks []rewrite.Conjunct, shown []string) error {
	if found.Null {
		return nil
	}
	var values []*string
	if err := json.Unmarshal([]byte(found.Text), &values); err != nil {
		return err
	}
	n, err := strconv.Atoi(*values[0])
	if err != nil {
		return err
	}
	var row []string
	for k, name := range shown {
		row = append(row, rewrite.QuoteIdentifier(name)+" = "+shownValue(values[k+1]))
	}
	check, condition := checks[n], i.checks.condition
	return pgdiag.New("44000", "written data does not conform to partial table overwrite condition or constraint \""+
		cut(i.statement.Condition.Text, 200)+"\"").
		WithDetail(fmt.Sprintf("DELTA_REPLACE_WHERE_MISMATCH: CHECK constraint EXPRESSION(%s) violated by row with values: %s",
			cut(check.SQL, 200), strings.Join(row, ", "))).
		WithHint("Filter the query, or widen the predicate. SET " + settingConstraintCheck + " = false writes such rows, too.").
		At(originPosition(i.statement.Text, condition, rewrite.CharPosition(condition.SQL, check.Offset)))
}

// shownValue is a value for an error, cut as Postgres cuts it there.
func shownValue(value *string) string {
	if value == nil {
		return "null"
	}
	return cut(*value, 64)
}

// cut returns text, or its beginning if it has more characters than most.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + "..."
}
