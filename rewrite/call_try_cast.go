package rewrite

import "strings"

// tryCasts are the types that try_cast reads a text as, and the function that
// does.
var tryCasts = map[string]string{
	"tinyint": "tinyint", "byte": "tinyint", "smallint": "smallint", "short": "smallint", "int": "integer", "integer": "integer",
	"bigint": "bigint", "long": "bigint", "decimal": "decimal", "dec": "decimal", "numeric": "decimal",
	"boolean": "boolean", "date": "date",
}

// tryCast translates try_cast(x AS type) for a text and the types above.
func tryCast(t *tokenText, c call) error {
	as := -1
	for k := c.open + 1; k < c.close; k = t.skip(k) {
		if t.word(k) == "as" {
			as = k
		}
	}
	if as < 0 || as == c.open+1 {
		return nil
	}
	if t.dialect == Databricks && isTinyint[t.word(as+1)] {
		return t.refuseTinyint(as + 1)
	}
	function := tryCasts[t.word(as+1)]
	precision := "" // and scale
	switch {
	case function == "decimal" && as+2 == c.close:
		precision = ", 10, 0"
	case function == "decimal" && t.punctuation(as+2, "(") && t.skip(as+2) == c.close && t.isPrecision(as+3, c.close-1):
		precision = ", " + t.sql[t.tokens[as+3].Start:t.tokens[c.close-2].End]
		if !strings.Contains(precision[1:], ",") {
			precision += ", 0"
		}
	case function == "", as+2 != c.close:
		return t.unsupported(c.at, "try_cast to this type",
			"It reads a text as BOOLEAN, DATE, DECIMAL(p, s), TINYINT, SMALLINT, INT or BIGINT; for others use CASE with a check, and CAST.")
	}
	t.rebuild(tokenRange{c.at, c.close + 1}, "rwproxy_compat.try_cast_"+function+"(", tokenRange{c.open + 1, as}, precision+")")
	return nil
}

// isPrecision says whether the tokens of [from, to) are one number, or two
// with a comma between.
func (t *tokenText) isPrecision(from, to int) bool {
	switch to - from {
	case 1:
		return t.is(from, Number)
	case 3:
		return t.is(from, Number) && t.punctuation(from+1, ",") && t.is(from+2, Number)
	}
	return false
}
