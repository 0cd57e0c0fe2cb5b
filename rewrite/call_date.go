package rewrite

import "strings"

// formatArgument translates the date format that is the argument at an index.
// parsing says that the format is for reading.
func formatArgument(index int, parsing bool) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		if len(c.arguments) <= index {
			return nil
		}
		t.qualifyCompat(c)
		return t.translateFormat(c.name, c.arguments[index], parsing)
	}
}

func (t *tokenText) translateFormat(function string, r tokenRange, parsing bool) error {
	const hint = "Use to_char, to_date or to_timestamp with a format of PostgreSQL's."
	if !t.isConstant(r) {
		return t.unsupported(r.from, function+" with a format that is not a constant", hint)
	}
	format, err := t.constantValue(r)
	if err != nil {
		return err
	}
	translated, faulty := postgresFormat(format, parsing)
	if faulty != "" {
		return t.unsupported(r.from, `the date format "`+excerpt(faulty)+`"`, hint)
	}
	t.replace(r.from, r.to, QuoteLiteral(translated))
	return nil
}

// formatPatterns are Databricks' date and time patterns in to_char's words.
var formatPatterns = map[string]string{
	"yyyy": "YYYY", "yy": "YY", "MM": "MM", "M": "FMMM", "MMM": "Mon", "MMMM": "FMMonth", "dd": "DD", "d": "FMDD",
	"HH": "HH24", "H": "FMHH24", "hh": "HH12", "h": "FMHH12", "mm": "MI", "m": "FMMI", "ss": "SS", "s": "FMSS",
	"SSS": "MS", "SSSSSS": "US", "a": "AM", "E": "Dy", "EE": "Dy", "EEE": "Dy", "EEEE": "FMDay", "DDD": "DDD", "D": "FMDDD", "Q": "Q",
}

// writingOnly are patterns that the two read differently: the century of a
// short year, names, the quarter.
var writingOnly = wordSet("yy MMM MMMM E EE EEE EEEE Q a")

// postgresFormat translates a date format; faulty is the piece of it that has
// no translation.
func postgresFormat(format string, parsing bool) (translated, faulty string) {
	var b strings.Builder
	for i := 0; i < len(format); {
		c := format[i]
		switch {
		case isLetter(c):
			end := i
			for end < len(format) && format[end] == c {
				end++
			}
			pattern := format[i:end]
			word := formatPatterns[pattern]
			if word == "" || parsing && writingOnly[pattern] {
				return "", pattern
			}
			b.WriteString(word)
			i = end
		case c == '\'':
			text, length := quotedText(format[i:])
			if length == 0 {
				return "", format[i:]
			}
			writeFormatText(&b, text)
			i += length
		case strings.IndexByte("[]{}#", c) >= 0:
			return "", string(c)
		default:
			end := i
			for end < len(format) && !isFormatSpecial(format[end]) {
				end++
			}
			text := format[i:end]
			if strings.Trim(text, " -/:.,;") == "" {
				b.WriteString(text) // separators match each other when read
			} else {
				writeFormatText(&b, text)
			}
			i = end
		}
	}
	return b.String(), ""
}

func isFormatSpecial(c byte) bool {
	return isLetter(c) || strings.IndexByte("'[]{}#", c) >= 0
}

// quotedText returns what the quoted text at the start of format stands for,
// and its length with the quotes; 0 if it does not end.
func quotedText(format string) (text string, length int) {
	if strings.HasPrefix(format, "''") {
		return "'", 2
	}
	var b strings.Builder
	for i := 1; i < len(format); i++ {
		switch {
		case format[i] != '\'':
			b.WriteByte(format[i])
		case strings.HasPrefix(format[i:], "''"):
			b.WriteByte('\'')
			i++
		default:
			return b.String(), i + 1
		}
	}
	return "", 0
}

func writeFormatText(b *strings.Builder, text string) {
	b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`)
}

// truncationUnits are the units that PostgreSQL's date_trunc does not know.
var truncationUnits = map[string]string{"yy": "year", "yyyy": "year", "mm": "month", "dd": "day"}

func truncationUnit(t *tokenText, c call) error {
	if len(c.arguments) < 2 || !t.isConstant(c.arguments[0]) {
		return nil
	}
	unit, err := t.constantValue(c.arguments[0])
	if err != nil {
		return err
	}
	if translated := truncationUnits[foldASCII(unit)]; translated != "" {
		t.replace(c.arguments[0].from, c.arguments[0].to, "'"+translated+"'")
	}
	return nil
}

// truncateDate makes trunc(d, 'unit') a call of another name: PostgreSQL's
// trunc is of numbers, and its second argument no word.
func truncateDate(t *tokenText, c call) error {
	if len(c.arguments) != 2 || !t.isConstant(c.arguments[1]) {
		return nil
	}
	unit, err := t.constantValue(c.arguments[1])
	if err != nil {
		return err
	}
	if unit != "" && isLetter(unit[0]) {
		t.replace(c.at, c.at+1, "rwproxy_compat.truncate_date")
	}
	return nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// extractFields are the fields that PostgreSQL's EXTRACT calls otherwise.
var extractFields = map[string]string{"yearofweek": "isoyear", "dow_iso": "isodow", "dayofweek_iso": "isodow"}

// extractField translates the fields of EXTRACT that PostgreSQL does not know.
func extractField(t *tokenText, c call) error {
	field, value := t.word(c.open+1), tokenRange{c.open + 3, c.close}
	if t.word(c.open+2) != "from" || value.empty() {
		return nil
	}
	switch {
	case field == "dayofweek":
		t.rebuild(c.whole(), "rwproxy_compat.dayofweek(", value, ")")
	case extractFields[field] != "":
		t.replace(c.open+1, c.open+2, extractFields[field])
	}
	return nil
}
