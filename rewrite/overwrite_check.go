package rewrite

import "strconv"

// maxShown bounds each value of a row that an error shows, in characters, as
// Postgres bounds those of its own errors.
const maxShown = 64

// FindViolation returns one row and column: a JSON array of the number of the
// first check that a kept row does not meet and the row's values of the
// columns shown; no row if all meet all.
func (o Overwrite) FindViolation(checks []Conjunct, shown []string) Translation {
	var b translationParts
	b.text("select pg_catalog.to_json(violation) from (select ")
	writeViolation(&b, checks, shown)
	b.text(" as violation from ")
	o.source(&b, targetName, TargetAlias)
	b.text(") as checked where violation is not null limit 1")
	return b.translation()
}

// InsertChecked is Insert, and returns how many rows it stored, and of those
// that do not meet the checks one as FindViolation returns it, else NULL.
func (o Overwrite) InsertChecked(checks []Conjunct, shown []string) Translation {
	var b translationParts
	b.text("with written as (\n")
	o.insert(&b)
	b.text("\nreturning ")
	writeViolation(&b, checks, shown)
	b.text(" as violation)\n" +
		"select pg_catalog.count(*), pg_catalog.to_json(pg_catalog.min(violation)) from written")
	return b.translation()
}

// writeViolation writes an array that is NULL for a row that meets the checks.
func writeViolation(b *translationParts, checks []Conjunct, shown []string) {
	b.text("case")
	for i, check := range checks {
		b.text(" when (" + check.SQL + "\n) is not true then array['" + strconv.Itoa(i) + "'")
		for _, name := range shown {
			b.text(", pg_catalog.left(" + QuoteIdentifier(name) + "::pg_catalog.text, " + strconv.Itoa(maxShown+1) + ")")
		}
		b.text("]")
	}
	b.text(" end")
}
