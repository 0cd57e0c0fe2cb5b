package rewrite

import "strings"

// databricksCalls are the calls that PostgreSQL accepts and answers otherwise.
var databricksCalls map[string]func(*tokenText, call) error

func init() {
	databricksCalls = map[string]func(*tokenText, call) error{
		"array_agg":      collect(""),
		"avg":            average,
		"cast":           databricksCast,
		"ceil":           renamed(databricksPrefix + "ceil"),
		"ceiling":        renamed(databricksPrefix + "ceil"),
		"concat":         concat,
		"concat_ws":      concatWS,
		"date_part":      datePart,
		"date_trunc":     renamed(databricksPrefix + "date_trunc"),
		"exp":            renamed(databricksPrefix + "exp"),
		"extract":        integerField,
		"floor":          renamed(databricksPrefix + "floor"),
		"initcap":        refusedCall("Databricks capitalises words between blanks, PostgreSQL between anything but letters and digits."),
		"left":           renamed(databricksPrefix + "left"),
		"ln":             renamed(databricksPrefix + "ln"),
		"log":            renamed(databricksPrefix + "log"),
		"log10":          renamed(databricksPrefix + "log10"),
		"make_timestamp": renamed("pg_catalog.make_timestamptz"),
		"mean":           average,
		"pow":            renamed(databricksPrefix + "power"),
		"power":          renamed(databricksPrefix + "power"),
		"regexp_replace": regexpReplace,
		"right":          renamed(databricksPrefix + "right"),
		"round":          renamed(databricksPrefix + "round"),
		"sqrt":           renamed(databricksPrefix + "sqrt"),
		"stddev":         ofDouble,
		"stddev_pop":     ofDouble,
		"stddev_samp":    ofDouble,
		"substr":         substring,
		"substring":      substring,
		"sum":            renamed(databricksPrefix + "sum"),
		"to_char":        refusedCall("Use date_format, or a cast to STRING."),
		"to_date":        textToDate,
		"to_number":      refusedCall("Use a cast to DECIMAL."),
		"to_timestamp":   textToTimestamp,
		"try_divide":     tryDivide,
		"var_pop":        ofDouble,
		"var_samp":       ofDouble,
		"variance":       ofDouble,
	}
}

func renamed(name string) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		t.replace(c.at, c.at+1, name)
		return nil
	}
}

func refusedCall(hint string) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		return t.unsupported(c.at, "the function "+c.name+" under the dialect of Databricks", hint)
	}
}

// average divides the sum by the number: the types of the two say how.
func average(t *tokenText, c call) error {
	tail := tokenRange{c.close + 1, c.end}
	t.rebuild(c.whole(), databricksPrefix+"average("+databricksPrefix+"sum(", c.inside(), ") ", tail, ", pg_catalog.count(", c.inside(), ") ", tail, ")")
	return nil
}

// ofDouble makes the argument a double, as which Databricks computes.
func ofDouble(t *tokenText, c call) error {
	if len(c.arguments) == 1 {
		t.wrapInCall(c.at, c.arguments[0], databricksPrefix+"double(", ")")
	}
	return nil
}

// concat makes concat(a, b) to an expression that is NULL if one of them is.
func concat(t *tokenText, c call) error {
	if len(c.arguments) == 0 {
		t.rebuild(tokenRange{c.at, c.close + 1}, "''")
		return nil
	}
	var parts []any
	for i, a := range c.arguments {
		before := "(" + databricksPrefix + "string("
		if i > 0 {
			before = ") || " + databricksPrefix + "string("
		}
		parts = append(parts, before, a)
	}
	t.rebuild(tokenRange{c.at, c.close + 1}, append(parts, "))")...)
	return nil
}

func concatWS(t *tokenText, c call) error {
	for _, a := range c.arguments {
		t.wrapInCall(c.at, a, databricksPrefix+"string(", ")")
	}
	return nil
}

// substring translates both forms, with commas and with FROM and FOR.
func substring(t *tokenText, c call) error {
	t.replace(c.at, c.at+1, "rwproxy_compat.mid")
	for k := c.open + 1; k < c.close; k = t.skip(k) {
		if w := t.word(k); w == "from" || w == "for" {
			t.replace(k, k+1, ",")
		}
	}
	return nil
}

// regexpReplace translates pattern and replacement, which are constants.
func regexpReplace(t *tokenText, c call) error {
	if len(c.arguments) != 3 {
		return t.unsupported(c.at, "regexp_replace with this number of arguments under the dialect of Databricks", "Give it a text, a pattern and a replacement.")
	}
	if err := t.translatePattern(c.name, c.arguments[1], splitting); err != nil {
		return err
	}
	r := c.arguments[2]
	if !t.isConstant(r) {
		return t.unsupported(r.from, "regexp_replace with a replacement that is not a constant", "Write the replacement as a string.")
	}
	value, err := t.constantValue(r)
	if err != nil {
		return err
	}
	replacement, ok := postgresReplacement(value)
	if !ok {
		return t.unsupported(r.from, "this replacement of regexp_replace", "Refer to one of the first nine groups as $1, to a dollar sign as \\$.")
	}
	t.replace(c.at, c.at+1, databricksPrefix+"regexp_replace")
	t.replace(r.from, r.to, QuoteLiteral(replacement))
	return nil
}

// postgresReplacement translates what Java puts in place of a match.
func postgresReplacement(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i == len(text) {
				return "", false
			}
			if text[i] == '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		case '$':
			i++
			if i == len(text) || !isDigit(text[i]) || i+1 < len(text) && isDigit(text[i+1]) {
				return "", false
			}
			if text[i] == '0' {
				b.WriteString(`\&`)
			} else {
				b.WriteString(`\` + text[i:i+1])
			}
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), true
}

// textToDate translates to_date with a format; without one it is a function of
// rwproxy_compat already.
func textToDate(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	t.replace(c.at, c.at+1, "pg_catalog.to_date")
	return t.translateFormat(c.name, c.arguments[1], true)
}

func textToTimestamp(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		t.replace(c.at, c.at+1, databricksPrefix+"to_timestamp")
		return nil
	}
	t.replace(c.at, c.at+1, "pg_catalog.to_timestamp")
	return t.translateFormat(c.name, c.arguments[1], true)
}

func tryDivide(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	t.rebuild(tokenRange{c.at, c.close + 1}, databricksPrefix+"divide(", c.arguments[0], ", nullif(", c.arguments[1], ", 0))")
	return nil
}

// secondFields are the fields of EXTRACT with a fraction; the others are
// whole numbers.
var secondFields = wordSet("second seconds sec secs s")

// integerField translates EXTRACT(field FROM x).
func integerField(t *tokenText, c call) error {
	field, value := t.word(c.open+1), tokenRange{c.open + 3, c.close}
	if t.word(c.open+2) != "from" || value.empty() {
		return nil
	}
	return t.field(c, field, value)
}

// datePart translates date_part('field', x).
func datePart(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	if !t.isConstant(c.arguments[0]) {
		return t.unsupported(c.arguments[0].from, "date_part of a field that is not a constant", "Write the field as a string.")
	}
	field, err := t.constantValue(c.arguments[0])
	if err != nil {
		return err
	}
	return t.field(c, foldASCII(field), c.arguments[1])
}

func (t *tokenText) field(c call, field string, value tokenRange) error {
	whole := tokenRange{c.at, c.close + 1}
	if translated := extractFields[field]; translated != "" {
		field = translated
	}
	switch {
	case field == "dow", field == "dayofweek":
		t.rebuild(whole, "rwproxy_compat.dayofweek(", value, ")")
	case secondFields[field]:
		t.rebuild(whole, "extract(second FROM ", value, ")")
	case strings.Trim(field, "abcdefghijklmnopqrstuvwxyz") != "" || field == "":
		return t.unsupported(c.at, "this field of a date", "Use YEAR, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DOY, HOUR, MINUTE or SECOND.")
	default:
		t.rebuild(whole, "(extract("+field+" FROM ", value, ")::integer)")
	}
	return nil
}
