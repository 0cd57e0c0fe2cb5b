package rewrite

// Databricks' aggregates that PostgreSQL has under another name or in another
// form. What is generated names pg_catalog: an aggregate of the user's own
// that fits the argument better is not meant.

// boolOr makes some(p) and any(p) to bool_or(p). Behind an operator they are
// PostgreSQL's.
func boolOr(t *tokenText, c call) error {
	if t.isBoundary(c.at-1) && !t.isSubquery(c.open) {
		t.replace(c.at, c.at+1, "bool_or")
	}
	return nil
}

// countSeveral makes count(a, b) to a count of the rows in which no argument
// is NULL.
func countSeveral(t *tokenText, c call) error {
	if len(c.arguments) < 2 {
		return nil
	}
	parts := []any{"pg_catalog.count(*) FILTER (WHERE "}
	if t.word(c.distinct) == "distinct" {
		parts = []any{"pg_catalog.count(DISTINCT (", tokenRange{c.distinct + 1, c.close}, ")) FILTER (WHERE "}
	}
	for i, a := range c.arguments {
		if i > 0 {
			parts = append(parts, " AND ")
		}
		parts = append(parts, "(", a, ") IS NOT NULL")
	}
	t.rebuild(c.whole(), append(parts, c.filterAndOver()...)...)
	return nil
}

// filterAndOver is the rest of a FILTER that was begun, and OVER.
func (c call) filterAndOver() []any {
	var parts []any
	if !c.filter.empty() {
		parts = append(parts, " AND (", c.filter, ")")
	}
	parts = append(parts, ")")
	if !c.over.empty() {
		parts = append(parts, " ", c.over)
	}
	return parts
}

// collect makes collect_list(x) to an array_agg without NULLs that is an empty
// array, not NULL, for no rows.
func collect(distinct string) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		if len(c.arguments) != 1 {
			return nil
		}
		argument := tokenRange{c.arguments[0].from, c.close} // with an ORDER BY
		if t.word(c.distinct) == "distinct" {
			distinct = "DISTINCT "
		}
		parts := []any{"coalesce(pg_catalog.array_agg(" + distinct, argument, ") FILTER (WHERE (", c.arguments[0], ") IS NOT NULL"}
		parts = append(parts, c.filterAndOver()...)
		t.rebuild(c.whole(), append(parts, ", '{}')")...)
		return nil
	}
}

// valueBy makes max_by(x, y) to the first of the values in the order of y.
func valueBy(direction string) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		if len(c.arguments) != 2 {
			return nil
		}
		value, by := c.arguments[0], c.arguments[1]
		parts := []any{"(pg_catalog.array_agg(rwproxy_compat.scalar(", value, ") ORDER BY ", by, " " + direction + ") FILTER (WHERE (", by, ") IS NOT NULL"}
		parts = append(parts, c.filterAndOver()...)
		t.rebuild(c.whole(), append(parts, ")[1]")...)
		return nil
	}
}

func approxCountDistinct(t *tokenText, c call) error {
	if len(c.arguments) == 0 || c.distinct >= 0 {
		return nil
	}
	// It is exact here; how wrong it may be does not matter.
	t.rebuild(tokenRange{c.at, c.close + 1}, "pg_catalog.count(DISTINCT ", c.arguments[0], ")")
	return nil
}

func median(t *tokenText, c call) error {
	return t.orderedSet(c, 1, 1, "pg_catalog.percentile_cont(0.5)")
}

// mode makes mode(x) to the aggregate that PostgreSQL has for an ordered set.
func mode(t *tokenText, c call) error {
	if !c.within.empty() || len(c.arguments) == 0 {
		return nil
	}
	return t.orderedSet(c, 1, 1, "pg_catalog.mode()")
}

// percentile makes percentile(x, p) to the aggregate of an ordered set.
func percentile(function string, most int) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		if len(c.arguments) < 2 {
			return nil
		}
		return t.orderedSet(c, 2, most, "pg_catalog."+function+"(", c.arguments[1], ")")
	}
}

// orderedSet makes a call with its value as the first argument to function
// WITHIN GROUP (ORDER BY value).
func (t *tokenText) orderedSet(c call, least, most int, function ...any) error {
	switch {
	case len(c.arguments) < least:
		return nil
	case len(c.arguments) > most:
		return t.unsupported(c.arguments[most].from, c.name+" with so many arguments", "Leave the last argument out; for a frequency, repeat the rows in a subquery.")
	case t.word(c.distinct) == "distinct":
		return t.unsupported(c.distinct, c.name+" with DISTINCT", "Select the distinct values in a subquery first.")
	}
	parts := append(function, " WITHIN GROUP (ORDER BY ", c.arguments[0], ")")
	t.rebuild(tokenRange{c.at, c.close + 1}, parts...)
	return nil
}

// listagg makes listagg(x, separator) WITHIN GROUP (ORDER BY y), and a
// string_agg so written, to string_agg(x, separator ORDER BY y).
func listagg(t *tokenText, c call) error {
	if len(c.arguments) == 0 || len(c.arguments) > 2 {
		return nil
	}
	if c.name == "string_agg" && len(c.arguments) == 2 && c.within.empty() {
		return nil
	}
	parts := []any{"pg_catalog.string_agg("}
	if t.word(c.distinct) == "distinct" {
		parts = append(parts, "DISTINCT ")
	}
	parts = append(parts, c.arguments[0], ", ")
	if len(c.arguments) == 2 {
		parts = append(parts, c.arguments[1])
	} else {
		parts = append(parts, "''")
	}
	end := c.close + 1
	if !c.within.empty() {
		parts = append(parts, " ", c.within)
		end = c.within.to + 1
	}
	t.rebuild(tokenRange{c.at, end}, append(parts, ")")...)
	return nil
}
