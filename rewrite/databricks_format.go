package rewrite

import (
	"regexp"
	"strings"
)

// formatShapes are the texts that a pattern of a date format reads. What has
// one letter takes any number of digits; they are no more than two here.
var formatShapes = map[string]string{
	"yyyy": "(?!0000)[0-9]{4}", "MM": "(0[1-9]|1[0-2])", "M": "(0?[1-9]|1[0-2])", "dd": "(0[1-9]|[12][0-9]|3[01])", "d": "(0?[1-9]|[12][0-9]|3[01])",
	"HH": "([01][0-9]|2[0-3])", "H": "([01]?[0-9]|2[0-3])", "mm": "[0-5][0-9]", "m": "[0-5]?[0-9]", "ss": "[0-5][0-9]", "s": "[0-5]?[0-9]",
	"SSS": "[0-9]{3}", "SSSSSS": "[0-9]{6}", "DDD": "[0-9]{3}", "D": "[0-9]{1,3}",
}

// formatShape returns a regular expression of PostgreSQL's for the texts that
// Databricks reads in a format that postgresFormat translates. fault says why
// there is none: PostgreSQL would take other digits for a part than Java does.
func formatShape(format string) (shape, fault string) {
	var b strings.Builder
	b.WriteString("^")
	hasYear, open := false, false // open: a number without a fixed length ends here
	for i := 0; i < len(format); {
		end := i + 1
		switch c := format[i]; {
		case isLetter(c):
			for end < len(format) && format[end] == c {
				end++
			}
			pattern := format[i:end]
			piece := formatShapes[pattern]
			if piece == "" || open {
				return "", `"` + pattern + `"`
			}
			hasYear = hasYear || pattern == "yyyy"
			open = len(pattern) == 1
			if open && end < len(format) && isLetter(format[end]) {
				return "", `"` + pattern + `" in front of another number`
			}
			b.WriteString(piece)
		case c == '\'':
			text, length := quotedText(format[i:])
			b.WriteString(regexp.QuoteMeta(text))
			end, open = i+length, false
		default:
			b.WriteString(regexp.QuoteMeta(format[i:end]))
			open = false
		}
		i = end
	}
	if !hasYear {
		return "", "no year"
	}
	return b.String() + "$", ""
}
