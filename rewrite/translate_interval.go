package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// intervalFields are the units that PostgreSQL's grammar takes after a string.
var intervalFields = wordSet("year month day hour minute second")

// intervalUnits are Databricks' units, and what PostgreSQL calls them.
var intervalUnits = map[string]string{}

func init() {
	for unit := range wordSet("year month week day hour minute second millisecond microsecond nanosecond") {
		intervalUnits[unit], intervalUnits[unit+"s"] = unit, unit
	}
}

// intervalLiteral is INTERVAL n unit [n unit …].
type intervalLiteral struct {
	end   int  // the place after it; the place of INTERVAL when it is none
	other bool // PostgreSQL reads it otherwise than Databricks, or not at all
	parts []intervalPart
}

type intervalPart struct {
	number string // with its sign
	unit   string
	place  int // of the unit
}

// interval reads the literal at i. INTERVAL '7' DAY and INTERVAL '1 day' are
// PostgreSQL's own; INTERVAL '7' DAYS would be seven seconds called "days".
func (t *tokenText) interval(i int) intervalLiteral {
	literal := intervalLiteral{end: i}
	bare := false // some number is written without quotes
	for at := i + 1; ; {
		sign := ""
		if t.operator(at, "-") || t.operator(at, "+") {
			sign, bare = t.text(at), true
			at++
		}
		number, unit := t.text(at), t.word(at+1)
		switch {
		case t.is(at, Number):
			bare = true
		case t.is(at, String) && number[0] == '\'':
			number = strings.TrimSpace(number[1 : len(number)-1])
		default:
			number = ""
		}
		if !isDecimal(number) || intervalUnits[unit] == "" {
			break
		}
		literal.parts = append(literal.parts, intervalPart{signed(sign, number), intervalUnits[unit], at + 1})
		at += 2
		literal.end = at
	}
	switch n := len(literal.parts); {
	case n == 0 || t.word(literal.end) == "to":
		return intervalLiteral{end: i}
	case n == 1 && !bare:
		literal.other = !intervalFields[t.word(literal.end-1)]
	default:
		literal.other = true
	}
	return literal
}

// isDecimal says whether s is a number without an exponent, with or without a
// sign.
func isDecimal(s string) bool {
	s = strings.TrimLeft(s, "+-")
	return strings.ContainsAny(s, "0123456789") && strings.Trim(s, "0123456789.") == "" && strings.Count(s, ".") <= 1
}

// signed returns number with the sign in front of it applied.
func signed(sign, number string) string {
	negative := sign == "-"
	if strings.HasPrefix(number, "-") {
		negative = !negative
	}
	number = strings.TrimLeft(number, "+-")
	if negative {
		return "-" + number
	}
	return number
}

// translateInterval edits the literal at i and returns the place after it.
func (t *tokenText) translateInterval(i int) (int, error) {
	literal := t.interval(i)
	if !literal.other {
		return max(literal.end, i+1), nil
	}
	if t.is(literal.end, String) {
		return 0, t.syntaxError(literal.end)
	}
	// With IntervalStyle sql_standard a leading minus would count for all
	// fields, unless each has its sign.
	negative := false
	for _, p := range literal.parts {
		negative = negative || p.number[0] == '-'
	}
	var text strings.Builder
	text.WriteString("INTERVAL '")
	for k, p := range literal.parts {
		if p.unit == "nanosecond" {
			return 0, t.fail(p.place, pgdiag.New(featureNotSupportedCode, "interval unit nanosecond is not supported").
				WithDetail("UNSUPPORTED_FEATURE").
				WithHint("PostgreSQL's intervals have a resolution of one microsecond."))
		}
		if k > 0 {
			text.WriteByte(' ')
		}
		if negative && p.number[0] != '-' {
			text.WriteByte('+')
		}
		text.WriteString(p.number + " " + p.unit)
		if p.number != "1" {
			text.WriteByte('s')
		}
	}
	text.WriteByte('\'')
	t.replace(i, literal.end, text.String())
	return literal.end, nil
}
