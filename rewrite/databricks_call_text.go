package rewrite

import (
	"slices"
	"strings"
)

// concat makes concat(a, b) to an expression that is NULL if one of them is.
func concat(t *tokenText, c call) error {
	if len(c.arguments) == 0 {
		t.rebuild(tokenRange{c.at, c.close + 1}, "''")
		return nil
	}
	var parts []any
	for i, a := range c.arguments {
		parts = append(parts, []string{"(", " || "}[min(i, 1)], a)
		t.asText(c.at, a)
	}
	t.rebuild(tokenRange{c.at, c.close + 1}, append(parts, ")")...)
	return nil
}

func concatWS(t *tokenText, c call) error {
	for _, a := range c.arguments {
		t.asText(c.at, a)
	}
	return nil
}

// substring translates both forms, with commas and with FROM and FOR.
func substring(t *tokenText, c call) error {
	t.replace(c.at, c.at+1, "rwproxy_compat.mid")
	t.commasFor(c, "from", "for")
	return nil
}

// commasFor puts commas in place of the words between the arguments of c.
func (t *tokenText) commasFor(c call, words ...string) {
	for k := c.open + 1; k < c.close; k = t.skip(k) {
		if slices.Contains(words, t.word(k)) && t.word(k) != "" {
			t.replace(k, k+1, ",")
		}
	}
}

// overlay translates both forms, with commas and with PLACING, FROM and FOR.
func overlay(t *tokenText, c call) error {
	t.replace(c.at, c.at+1, databricksPrefix+"overlay")
	t.commasFor(c, "placing", "from", "for")
	return nil
}

// position translates position(part, text); with IN it is PostgreSQL's.
func position(t *tokenText, c call) error {
	switch len(c.arguments) {
	case 2:
		t.rebuild(tokenRange{c.at, c.close + 1}, "pg_catalog.strpos(", c.arguments[1], ", ", c.arguments[0], ")")
	case 3:
		return t.unsupported(c.arguments[2].from, "position with a place to begin at", "Use instr with a substring.")
	}
	return nil
}

// trimArguments translates trim(characters, text), whose arguments PostgreSQL
// has the other way round.
func trimArguments(function string) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		if len(c.arguments) == 2 {
			t.rebuild(tokenRange{c.at, c.close + 1}, "pg_catalog."+function+"(", c.arguments[1], ", ", c.arguments[0], ")")
		}
		return nil
	}
}

// characterOf translates char(n), which is not a type, and chr(n).
func characterOf(t *tokenText, c call) error {
	if w := t.word(c.at - 1); w == "as" || t.punctuation(c.at-1, "::") || t.endsOperand(c.at-1) || t.is(c.close+1, String) {
		return nil
	}
	t.replace(c.at, c.at+1, databricksPrefix+"chr")
	return nil
}

// replaceArguments makes replace(text, part) to one by nothing.
func replaceArguments(t *tokenText, c call) error {
	if len(c.arguments) == 2 {
		t.insertBefore(c.close, ", ''")
	}
	return nil
}

// regexpSubstr translates the pattern of regexp_substr.
func regexpSubstr(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return t.unsupported(c.at, "regexp_substr with this number of arguments under the dialect of Databricks", "Give it a text and a pattern.")
	}
	t.replace(c.at, c.at+1, databricksPrefix+"regexp_substr")
	return t.translatePattern(c.name, c.arguments[1], capturing)
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
