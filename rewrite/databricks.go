package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// The functions that stand for what Databricks means begin so. The types of
// their arguments decide what is called; for types that it cannot be said
// exactly for, there is no function (compat/databricks_*.sql).
const databricksPrefix = "rwproxy_compat.databricks_"

// DatabricksRefusal returns what to say in place of an error of Postgres about a
// call that the translation generated and that has no function for its types;
// false if it is another error.
func DatabricksRefusal(d *pgdiag.Diagnostic) (*pgdiag.Diagnostic, bool) {
	const undefinedFunction, wrongObjectType = "42883", "42809"
	_, call, found := strings.Cut(d.Message, databricksPrefix)
	name, types, isCall := strings.Cut(call, "(")
	end := strings.LastIndexByte(types, ')')
	if d.Code != undefinedFunction && d.Code != wrongObjectType || !found || !isCall || end < 0 {
		return nil, false
	}
	types = types[:end]
	construct, hint := name+"("+types+")", "Cast the arguments to another type."
	between := " between " + strings.Join(strings.Split(types, ", "), " and ")
	switch target, isCast := strings.CutPrefix(name, "to_"); {
	case name == "moment":
		construct, hint = "a field of "+types, "Take the field of a date or timestamp."
	case isCast:
		construct, hint = "a cast of "+types+" to "+strings.ToUpper(target), "Cast to another type first."
	case name == "divide":
		construct = "/" + between
		hint = "Cast an operand to DOUBLE: how many digits the quotient of decimals has depends on the types they are declared with."
	case name == "string":
		construct, hint = "a text made of "+types, "Cast to DECIMAL(p, s) first, or use another way to write the value."
	case name == "add" || name == "plus":
		construct, hint = "+"+between, "Use date_add, add_months, or a constant such as INTERVAL 1 DAY."
	case name == "subtract" || name == "minus":
		construct, hint = "-"+between, "Use datediff, date_sub, or a constant such as INTERVAL 1 DAY."
	}
	return pgdiag.New(featureNotSupportedCode, construct+" is not supported with rwproxy.dialect = 'databricks'").
		WithDetail("UNSUPPORTED_FEATURE").WithHint(hint).At(d.Position), true
}

// translateDatabricks edits what PostgreSQL accepts and Databricks means
// otherwise, once the calls, casts and constants are translated.
func (t *tokenText) translateDatabricks() error {
	done := map[int]bool{} // operators whose chains are translated
	for i := range t.tokens {
		if t.is(i, Operator) && !t.comparison(i) || t.isDiv(i) {
			if err := t.translateChain(i, done); err != nil {
				return err
			}
		}
	}
	for i := range t.tokens {
		switch {
		case t.words(i, "order", "by"):
			t.orderNulls(i)
		case t.word(i) == "interval":
			if err := t.refuseIntervalComparison(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// translateDatabricksToken translates what begins at i; false if Databricks
// means by it what it means to PostgreSQL.
func (t *tokenText) translateDatabricksToken(i int) (next int, found bool, err error) {
	switch word := t.word(i); {
	case t.stringEnd(i) > i:
		next, err = t.translateStrings(i)
		return next, true, err
	case t.is(i, Number) && t.suffixType(i) != "" && foldASCII(t.text(i+1)) == "y":
		return 0, true, t.refuseTinyint(i)
	case t.is(i, Number) && strings.ContainsAny(t.text(i), "eE") && !strings.HasPrefix(strings.ToLower(t.text(i)), "0x"):
		if t.suffixType(i) == "" {
			t.insertAfter(i, "::float8")
			return i + 1, true, nil
		}
	case t.is(i, DollarString):
		if t.beginsValue(i) && isLoose(StringValue(t.text(i), t.lexical)) {
			t.insertAfter(i, "::text")
		}
	case t.punctuation(i, "[") && t.word(i-1) != "array" && t.endsOperand(i-1):
		return i + 1, true, t.translateElement(i)
	case t.punctuation(i, "::"):
		next, err = t.translateColonCast(i)
		return next, true, err
	case word == "timestamp" && (t.is(i+1, String) || t.is(i+1, QuotedIdentifier)):
		t.replace(i, i+1, "timestamptz")
		return i + 1, true, nil
	case word == "user" && !t.punctuation(i+1, "("):
		t.replace(i, i+1, `"user"`)
		return i + 1, true, nil
	case word == "current_time":
		return 0, true, t.unsupported(i, "current_time under the dialect of Databricks", "Use date_format(now(), 'HH:mm:ss').")
	case word == "order" && t.words(i, "order", "by") && t.word(i+3) == "using":
		return 0, true, t.unsupported(i+3, "ORDER BY ... USING", "Use ASC or DESC.")
	}
	return i + 1, false, nil
}

// orderNulls gives the items of the ORDER BY at i Databricks' place for NULL:
// first, or last behind DESC.
func (t *tokenText) orderNulls(i int) {
	start := i + 2
	if t.word(start) == "all" && t.endsClause(t.orderAllEnd(i)) {
		return // translateOrderByAll does
	}
	for k := start; ; k = t.skip(k) {
		ends := t.endsClause(k) || frameWords[t.word(k)] && k > start
		if !ends && !t.punctuation(k, ",") {
			continue
		}
		if last := t.word(k - 1); k > start && last != "first" && last != "last" || k > start && t.word(k-2) != "nulls" {
			nulls := " NULLS FIRST"
			if last == "desc" {
				nulls = " NULLS LAST"
			}
			t.wrap(tokenRange{start, k}, "", nulls)
		}
		if ends {
			return
		}
		start = k + 1
	}
}

// frameWords begin the frame of a window.
var frameWords = wordSet("rows range groups")

// orderAllEnd returns the place after ORDER BY ALL and its options.
func (t *tokenText) orderAllEnd(i int) int {
	end := i + 3
	if w := t.word(end); w == "asc" || w == "desc" {
		end++
	}
	if w := t.word(end + 1); t.word(end) == "nulls" && (w == "first" || w == "last") {
		end += 2
	}
	return end
}

// translateElement makes a[i] the element at a place that counts from 0.
func (t *tokenText) translateElement(i int) error {
	operand, ok := t.termAround(i)
	if !ok {
		return t.syntaxErrorWithHint(i, "Put brackets around the array.")
	}
	if t.punctuation(i-1, "]") {
		return t.unsupported(i, "an element of an array in an array", "Use unnest, or a column for each.")
	}
	for k := i + 1; k < t.partner[i]; k = t.skip(k) {
		if t.punctuation(k, ":") {
			return t.unsupported(i, "a slice of an array", "Use unnest WITH ORDINALITY.")
		}
	}
	t.wrapInCall(i, tokenRange{operand.primary, t.partner[i] + 1}, "rwproxy_compat.element(", ")")
	t.replaceBytes(t.tokens[i].Start, t.tokens[i].End, ", ")
	t.replaceBytes(t.tokens[t.partner[i]].Start, t.tokens[t.partner[i]].End, "")
	return nil
}
