package rewrite

import "strings"

// generators are the functions that LATERAL VIEW may call, and what it calls
// their columns.
var generators = map[string][]string{"explode": {"col"}, "posexplode": {"pos", "col"}}

// translateLateralView makes LATERAL VIEW [OUTER] explode(a) t AS x a lateral
// join with the function of that name.
func (t *tokenText) translateLateralView(i int) error {
	at := i + 2
	join, condition := "CROSS JOIN LATERAL rwproxy_compat.", ""
	if t.word(at) == "outer" {
		join, condition = "LEFT JOIN LATERAL rwproxy_compat.", " ON true"
		at++
	}
	if !t.isName(at) {
		return nil // a table called view
	}
	columns := generators[t.word(at)]
	if columns == nil || !t.punctuation(at+1, "(") {
		return t.unsupported(i, "LATERAL VIEW with this function", "Use CROSS JOIN LATERAL with a function of PostgreSQL's.")
	}
	alias := t.skip(at + 1)
	if !t.isName(alias) || reserved[t.word(alias)] {
		return t.syntaxErrorWithHint(alias, "LATERAL VIEW is followed by a function, a name for its table, and AS with names for its columns.")
	}
	end := alias + 1
	if t.word(end) == "as" {
		end++
	}
	names := ""
	for k, column := range columns {
		if k == 0 && t.isName(end) && !t.continuesQuery(end) || k > 0 && t.punctuation(end, ",") && t.isName(end+1) {
			if k > 0 {
				end++
			}
			column = t.name(end)
			end++
		}
		if k > 0 {
			names += ", "
		}
		names += QuoteIdentifier(column)
	}
	t.replace(i, at+1, join+t.word(at))
	t.replace(alias, end, "AS "+QuoteIdentifier(t.name(alias))+" ("+names+")"+condition)
	return nil
}

// isSemiJoin says whether the word at k begins SEMI JOIN or ANTI JOIN.
func (t *tokenText) isSemiJoin(k int) bool {
	w := t.word(k)
	return (w == "semi" || w == "anti") && t.word(k+1) == "join" && (t.word(k-1) == "left" || t.endsOperand(k-1))
}

// translateSemiJoins makes the SEMI and ANTI joins at the end of a FROM clause
// conditions of WHERE: they only select rows of what is joined before them.
func (t *tokenText) translateSemiJoins(s selectClauses) error {
	first := -1
	for k := s.from.from; k < s.from.to && first < 0; k = t.skip(k) {
		if t.isSemiJoin(k) {
			first = k
		}
	}
	if first < 0 {
		return nil
	}
	var condition []any
	for at := first; at < s.from.to; {
		if !t.isSemiJoin(at) {
			return t.unsupported(first, "a SEMI or ANTI JOIN in front of another join", "Make it the last join, or use WHERE EXISTS (SELECT ...).")
		}
		if len(condition) > 0 {
			condition = append(condition, " AND ")
		}
		exists, next, err := t.semiJoin(at, s.from.to)
		if err != nil {
			return err
		}
		condition = append(condition, exists...)
		at = next
	}
	start := first
	if t.word(first-1) == "left" {
		start--
	}
	joins := tokenRange{start, s.from.to}
	if s.where.empty() {
		t.rebuild(joins, append([]any{"WHERE "}, condition...)...)
		return nil
	}
	t.rebuild(joins, "")
	t.wrapParts(s.where, append(condition, " AND ("), ")")
	return nil
}

// semiJoin returns the condition that the semi join at i is, and the place of
// the next SEMI or ANTI, or end.
func (t *tokenText) semiJoin(i, end int) (condition []any, next int, err error) {
	table := tokenRange{i + 2, end}
	var on tokenRange
	for k := i + 2; k < end && next == 0; k = t.skip(k) {
		switch w := t.word(k); {
		case t.isSemiJoin(k):
			next = k
			end = k
			if t.word(k-1) == "left" {
				end--
			}
		case w == "on" && on.from == 0:
			table.to, on.from = k, k+1
		case w == "using" || w == "natural":
			return nil, 0, t.unsupported(i, "SEMI or ANTI JOIN with "+strings.ToUpper(w), "Use ON.")
		case w == "join", t.punctuation(k, ","), t.words(k, "lateral", "view"):
			return nil, 0, t.unsupported(i, "a SEMI or ANTI JOIN in front of another join", "Make it the last join, or use WHERE EXISTS (SELECT ...).")
		}
	}
	if next == 0 {
		next = end
	}
	keyword := "EXISTS (SELECT FROM "
	if t.word(i) == "anti" {
		keyword = "NOT EXISTS (SELECT FROM "
	}
	if on.from == 0 {
		table.to = end
		return []any{keyword, table, ")"}, next, nil
	}
	on.to = end
	return []any{keyword, table, " WHERE ", on, ")"}, next, nil
}
