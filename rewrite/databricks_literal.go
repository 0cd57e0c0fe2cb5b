package rewrite

import (
	"regexp"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// How Databricks writes a date and a timestamp in a text, with blanks around.
const (
	dateNotation = `[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}`
	timeNotation = `([ T]([01]?[0-9]|2[0-3]):[0-5]?[0-9](:[0-5]?[0-9](\.[0-9]{1,6})?)?(Z|[+-][0-9]{1,2}:[0-9]{2})?)?`
)

var (
	dateText      = regexp.MustCompile(`^[ \t\n\r]*` + dateNotation + `[ \t\n\r]*$`)
	shortDateText = regexp.MustCompile(`^[ \t\n\r]*([0-9]{4})(-[0-9]{1,2})?[ \t\n\r]*$`)
	timestampText = regexp.MustCompile(`^[ \t\n\r]*` + dateNotation + timeNotation + `[ \t\n\r]*$`)

	// numberText is shorter than what PostgreSQL reads as a date without
	// separators, 20240131 or 240131.
	numberText = regexp.MustCompile(`^[ \t\n\r]*[+-]?([0-9]{1,4}|[0-9]{0,4}\.[0-9]{1,3}|[0-9]{1,4}\.)([eE][+-]?[0-9]{1,3})?[ \t\n\r]*$`)
	uuidText   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	wordRun    = regexp.MustCompile(`[A-Za-z]+`)
)

// looseWords are texts that PostgreSQL reads as a value of some type and
// Databricks does not, or not as a value of every such type.
var looseWords = wordSet(`on of off tr tru fa fal fals ye nan inf infinity epoch now today tomorrow yesterday allballs`)

// longDateWords are the words of a date in PostgreSQL's notations that have
// more than the five letters of the abbreviation of a time zone.
var longDateWords = wordSet(`january february august september october november december tuesday wednesday thursday saturday
	monday friday sunday julian`)

// isLoose says whether PostgreSQL may read the text, beside a date, a number or
// a boolean, where Databricks finds no value or another one.
func isLoose(text string) bool {
	trimmed := strings.Trim(foldASCII(text), " \t\n\r\f\v")
	switch {
	case looseWords[strings.TrimLeft(trimmed, "+-")]:
		return true
	case !strings.ContainsAny(text, "0123456789"), timestampText.MatchString(text), numberText.MatchString(text), uuidText.MatchString(text):
		return false
	case strings.Contains(text, "/"): // a date, or the name of a time zone
		return true
	}
	for _, word := range wordRun.FindAllString(trimmed, -1) {
		if len(word) > 5 && !longDateWords[word] {
			return false
		}
	}
	return true
}

// constantTypes are the types in front of a constant, whose texts Databricks
// reads in its own notation only.
var constantTypes = map[string]*regexp.Regexp{
	"date": dateText, "timestamp": timestampText, "timestamp_ntz": timestampText, "timestamp_ltz": timestampText,
}

// typedConstant returns the text of a constant of the type that token i names;
// a date without a day, or a month, is its first one.
func (t *tokenText) typedConstant(i int, text string) (string, error) {
	notation := constantTypes[t.word(i)]
	if parts := shortDateText.FindStringSubmatch(text); parts != nil && notation == dateText {
		if parts[2] == "" {
			parts[2] = "-01"
		}
		return parts[1] + parts[2] + "-01", nil
	}
	if notation != nil && !notation.MatchString(text) {
		typ := strings.ToUpper(t.word(i))
		return "", t.fail(i+1, pgdiag.New("22007", "invalid input syntax for type "+t.word(i)+`: "`+excerpt(text)+`"`).
			WithDetail("INVALID_TYPED_LITERAL").
			WithHint("Databricks reads "+typ+" '2024-01-31', and a TIMESTAMP also with a time behind the day."))
	}
	return text, nil
}

// beginsValue says whether an operand that begins at i stands by itself: a
// constant there has no type in front of it.
func (t *tokenText) beginsValue(i int) bool {
	switch t.word(i - 1) {
	case "between", "symmetric", "asymmetric":
		return true
	case "escape", "uescape":
		return false
	}
	return !t.endsOperand(i - 1)
}

// refuseIntervalComparison refuses the interval constant at i if it has months
// and is compared: PostgreSQL takes a month for thirty days, Databricks does
// not compare the two.
func (t *tokenText) refuseIntervalComparison(i int) error {
	end := t.primaryEnd(i)
	if end <= i+1 || !t.hasMonths(i, end) {
		return nil
	}
	behind := t.is(end, Operator) && t.comparison(end) || t.word(end) == "between" || t.word(end) == "in" || t.word(end) == "not"
	before := t.is(i-1, Operator) && t.comparison(i-1) || t.word(i-1) == "between" || t.word(i-1) == "symmetric"
	endsThere := end == len(t.tokens) || !t.is(end, Operator) || t.comparison(end)
	if before && endsThere || behind && t.beginsValue(i) && !t.is(i-1, Operator) {
		return t.unsupported(i, "a comparison with an interval of months or years", "Compare dates: add the interval to one of them.")
	}
	return nil
}

// hasMonths says whether an interval constant has years or months.
func (t *tokenText) hasMonths(i, end int) bool {
	for k := i + 1; k < end; k++ {
		for _, word := range wordRun.FindAllString(foldASCII(t.text(k)), -1) {
			if unit := intervalUnits[word]; unit == "month" || unit == "year" || word == "mon" || word == "mons" {
				return true
			}
		}
	}
	return false
}
