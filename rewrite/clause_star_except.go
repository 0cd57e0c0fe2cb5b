package rewrite

import (
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// isStarExcept says whether the EXCEPT at k belongs to a * of a select list,
// and is no set operation.
func (t *tokenText) isStarExcept(k int) bool {
	return t.word(k) == "except" && t.operator(k-1, "*") && !t.endsOperand(k-2) &&
		t.punctuation(k+1, "(") && t.isName(k+2) && !t.startsQuery(k+2)
}

// translateStarExcept makes * EXCEPT (a) the list of the other columns.
func (t *tokenText) translateStarExcept(s selectClauses, item selectItem, c Catalog) error {
	e := item.expression
	star := e.from
	for star < e.to && !t.operator(star, "*") {
		star++
	}
	if !t.isStarExcept(star + 1) {
		return nil
	}
	all, err := t.starColumns(s, tokenRange{e.from, star + 1}, c)
	if err != nil {
		return err
	}
	kept := slices.Clone(all)
	for k := star + 3; k < e.to-1; k += 2 {
		name := t.name(k)
		if !slices.Contains(kept, name) {
			return t.fail(k, pgdiag.New("42703", "column "+excerpt(t.text(k))+" of EXCEPT does not exist").
				WithDetail("UNRESOLVED_COLUMN").WithHint("The columns are "+strings.Join(all, ", ")+"."))
		}
		kept = slices.DeleteFunc(kept, func(column string) bool { return column == name })
	}
	qualifier := ""
	if star > e.from {
		qualifier = t.translated(tokenRange{e.from, star})
	}
	list := make([]string, len(kept))
	for i, name := range kept {
		if qualifier == "" && slices.Contains(kept[i+1:], name) {
			return t.unsupported(star+1, `EXCEPT with two columns called `+QuoteIdentifier(name), "List the columns.")
		}
		list[i] = qualifier + quoteAlways(name)
	}
	if len(list) == 0 {
		return t.fail(star+1, pgdiag.New(syntaxErrorCode, "EXCEPT leaves no column").WithHint("Name fewer columns."))
	}
	if t.exceptWidths == nil {
		t.exceptWidths = map[int]int{}
	}
	t.exceptWidths[e.from] = len(list)
	t.replace(e.from, e.to, strings.Join(list, ", "))
	return nil
}
