package refresh

import (
	"context"
	_ "embed" // SQL files
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// column is one column of a table or view.
type column struct {
	name string
	// typ is the type as format_type prints it under the pinned search_path.
	typ string
	// castType is what a value is cast to before a predicate sees it. It is
	// typ, except for the types whose explicit cast cuts a value silently
	// where storing it would fail (character, bit): there the length is left
	// off, and storing the value checks it.
	castType   string
	base       string // the type without its modifier, or what a domain is made of
	hasDefault bool   // or is generated, or identity: the target computes it
	hasComment bool
	collation  string // quoted, qualified; "" for a type without
	computed   bool   // the target alone makes its values
	defaultSQL string // what DEFAULT stands for, "" for NULL or when computed
}

// definition is the column's type as ADD COLUMN takes it.
func (c column) definition() string {
	if c.collation == "" {
		return c.typ
	}
	return c.typ + " collate " + c.collation
}

//go:embed columns.sql
var columnsSQL string

// columnsOf returns the columns of a relation in their order. The relation is
// given as its quoted, qualified name.
func columnsOf(ctx context.Context, s pgsession.Session, relation string) ([]column, error) {
	rows, err := s.Query(ctx, columnsSQL, relation)
	if err != nil {
		return nil, err
	}
	columns := make([]column, 0, len(rows))
	for _, r := range rows {
		columns = append(columns, column{
			name:       r[0].Text,
			typ:        r[1].Text,
			castType:   r[2].Text,
			base:       r[8].Text,
			hasDefault: r[3].Text == "t",
			hasComment: r[4].Text == "t",
			collation:  r[5].Text,
			computed:   r[6].Text == "t",
			defaultSQL: r[7].Text,
		})
	}
	return columns, nil
}

func byName(columns []column) map[string]column {
	m := make(map[string]column, len(columns))
	for _, c := range columns {
		m[c.name] = c
	}
	return m
}

// lostColumn returns a column of the view that the target does not have, "" if
// there is none.
func lostColumn(target, view []column) string {
	inTarget := byName(target)
	for _, c := range view {
		if _, found := inTarget[c.name]; !found {
			return c.name
		}
	}
	return ""
}

// windowColumns pairs a target's columns with those of its flow's view. A
// column that the view lacks is NULL in every row a refresh writes, unless the
// target computes it; such a column is left out, so that Postgres refuses a
// predicate on it: what it will hold is not known before the row is stored.
// Values are stored as the dialect stores them.
func windowColumns(target, view []column, dialect rewrite.Dialect) ([]rewrite.WindowColumn, error) {
	inView := byName(view)
	columns := make([]rewrite.WindowColumn, 0, len(target))
	for _, c := range target {
		v, found := inView[c.name]
		w := rewrite.WindowColumn{Name: c.name}
		switch {
		case !found && c.hasDefault:
			continue
		case !found:
			w.Missing, w.Type = true, c.castType
		case v.typ != c.typ:
			var err error
			if w.Function, err = storeFunction(v, c, dialect); err != nil {
				return nil, err
			}
			w.Type = c.castType
		}
		if v.collation != c.collation {
			w.Collation = c.collation
		}
		columns = append(columns, w)
	}
	return columns, nil
}

// storingMayMove reports that a row can be stored with other values than the
// predicate saw, other than by a trigger: character and bit values are cut or
// padded to the column's length only then.
func storingMayMove(target, view []column) bool {
	inView := byName(view)
	for _, c := range target {
		if v, found := inView[c.name]; found && v.typ != c.typ && c.castType != c.typ {
			return true
		}
	}
	return false
}

// columnList lists the names of columns for a hint.
func columnList(columns []column) string {
	const most = 20
	var names []string
	for _, c := range columns[:min(len(columns), most)] {
		names = append(names, rewrite.QuoteIdentifier(c.name))
	}
	if len(columns) > most {
		names = append(names, "...")
	}
	return strings.Join(names, ", ")
}
