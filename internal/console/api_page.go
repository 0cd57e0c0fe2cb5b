package console

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// listing is a query whose rows are read a page at a time. Its texts are ours;
// what a client sent is in the values only.
type listing struct {
	selected   string   // select … from …
	key        []string // the columns that order it, unique together
	casts      []string // the types of the key's parts in a page token
	descending bool
	conditions []string
	values     []any
}

// parameter adds a value and returns its placeholder.
func (l *listing) parameter(value any) string {
	l.values = append(l.values, value)
	return "$" + strconv.Itoa(len(l.values))
}

func (l *listing) where(condition string) { l.conditions = append(l.conditions, condition) }

// page returns the rows of a page, in the listing's order, and whether there
// are more beyond it in the direction it is read in.
func (l *listing) page(ctx context.Context, s pgsession.Session, at position, limit int) (rows []pgsession.Row, more bool, err error) {
	descending := l.descending != at.Back
	direction, comparison := " asc", " > "
	if descending {
		direction, comparison = " desc", " < "
	}
	if at.Key != nil {
		bounds := make([]string, len(l.key))
		for i, part := range at.Key {
			bounds[i] = l.parameter(part) + "::pg_catalog." + l.casts[i]
		}
		l.where("(" + strings.Join(l.key, ", ") + ")" + comparison + "(" + strings.Join(bounds, ", ") + ")")
	}
	text := l.selected
	if len(l.conditions) > 0 {
		text += " where " + strings.Join(l.conditions, " and ")
	}
	text += " order by " + strings.Join(l.key, direction+", ") + direction + " limit " + strconv.Itoa(limit+1)
	if rows, err = s.Query(ctx, text, l.values...); err != nil {
		return nil, false, err
	}
	if more = len(rows) > limit; more {
		rows = rows[:limit]
	}
	if at.Back {
		slices.Reverse(rows)
	}
	return rows, more, nil
}
