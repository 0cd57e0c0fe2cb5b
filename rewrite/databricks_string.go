package rewrite

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// isDoubleQuotedString says whether "…" at i is a string of Databricks' and not
// a name: a name follows a dot, AS, a table or what it is the alias of.
func (t *tokenText) isDoubleQuotedString(i int) bool {
	if t.dialect != Databricks || !t.is(i, QuotedIdentifier) {
		return false
	}
	if t.doubleQuoted == nil {
		t.findDoubleQuoted()
	}
	return t.doubleQuoted[i]
}

// findDoubleQuoted finds them all in one pass: what one is depends on the one
// in front of it.
func (t *tokenText) findDoubleQuoted() {
	t.doubleQuoted = make([]bool, len(t.tokens))
	for i := range t.tokens {
		if !t.is(i, QuotedIdentifier) || t.text(i)[0] != '"' || t.punctuation(i+1, ".") || t.punctuation(i-1, ".") {
			continue
		}
		switch t.word(i - 1) {
		case "as", "from", "join", "collate":
		case "date", "timestamp", "timestamp_ntz", "timestamp_ltz", "interval", "rlike", "regexp":
			t.doubleQuoted[i] = true
		default:
			t.doubleQuoted[i] = !t.endsOperand(i-1) || t.is(i-1, String) || i > 0 && t.doubleQuoted[i-1]
		}
	}
}

// translateStrings writes the string constants at i, which are one if there
// are several, as PostgreSQL reads them. It returns the place after them.
func (t *tokenText) translateStrings(i int) (next int, err error) {
	switch first := t.text(i)[0] | 0x20; {
	case t.is(i, String) && first == 'x':
		return i + 1, t.translateBinaryString(i)
	case t.is(i, String) && t.text(i)[0] != '\'': // E'…' and the like are PostgreSQL's alone
		if first == 'e' && t.beginsValue(i) && isLoose(StringValue(t.text(i), t.lexical)) {
			t.insertAfter(i, "::text")
		}
		return i + 1, nil
	}
	next = t.stringsEnd(i)
	text, err := t.constantValue(tokenRange{i, next})
	if err != nil {
		return 0, err
	}
	cast := ""
	switch {
	case constantTypes[t.word(i-1)] != nil:
		if text, err = t.typedConstant(i-1, text); err != nil {
			return 0, err
		}
	case t.beginsValue(i) && isLoose(text):
		cast = "::text"
	}
	t.replace(i, next, QuoteLiteral(text)+cast)
	return next, nil
}

// translateBinaryString makes X'1F' bytes; to PostgreSQL it is bits.
func (t *tokenText) translateBinaryString(i int) error {
	digits := strings.Trim(t.text(i)[1:], "'")
	if strings.Trim(foldASCII(digits), "0123456789abcdef") != "" {
		return t.syntaxErrorWithHint(i, "Write hexadecimal digits only.")
	}
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	t.replace(i, i+1, `(E'\\x`+digits+`'::bytea)`)
	return nil
}

// databricksString returns what the one string constant in r stands for.
func (t *tokenText) databricksString(r tokenRange) (string, error) {
	text := t.text(r.to - 1)
	quote := text[:1]
	switch {
	case r.to-r.from == 2: // R'…'
		body := text[1 : len(text)-1]
		if strings.Contains(body, quote) {
			return "", t.unsupported(r.from, "a quote in a raw string", "Use a string without R.")
		}
		return body, nil
	case t.is(r.from, DollarString):
		delimiter := strings.IndexByte(text[1:], '$') + 2
		return text[delimiter : len(text)-delimiter], nil
	case quote == "'":
		text = joinPieces(text, t.lexical.BackslashEscapes)
	case quote != `"`:
		return "", t.unsupported(r.from, "a string with a prefix", "Write the string without its prefix.")
	}
	body := text[1 : len(text)-1]
	if strings.Contains(body, `\`) && t.endsByBackslash(body, quote) {
		return "", t.unsupported(r.from, "a quote behind a backslash", "Double the quote instead.")
	}
	value, ok := decodeDatabricks(body, quote)
	if !ok {
		return "", t.unsupported(r.from, "the character U+0000 in a string", "PostgreSQL's texts cannot hold it.")
	}
	return value, nil
}

// endsByBackslash says whether a backslash in body is in front of a quote, or
// of the end: Databricks' string would go on where PostgreSQL's ends.
func (t *tokenText) endsByBackslash(body, quote string) bool {
	if t.lexical.BackslashEscapes && quote == "'" {
		return false
	}
	for i := 0; i < len(body); i++ {
		if body[i] == '\\' {
			if i++; i == len(body) || body[i] == quote[0] {
				return true
			}
		}
	}
	return false
}

// databricksEscapes are the characters that a backslash in front of a letter
// stands for; any other character stands for itself.
var databricksEscapes = map[byte]string{'b': "\b", 'n': "\n", 'r': "\r", 't': "\t", 'Z': "\x1a", '%': `\%`, '_': `\_`}

// decodeDatabricks returns the value of the text between the quotes; false if
// it holds U+0000.
func decodeDatabricks(body, quote string) (string, bool) {
	var value strings.Builder
	for i := 0; i < len(body); {
		switch {
		case strings.HasPrefix(body[i:], quote+quote):
			value.WriteString(quote)
			i += 2
		case body[i] != '\\' || i+1 == len(body):
			value.WriteByte(body[i])
			i++
		default:
			text, length := decodeDatabricksEscape(body[i+1:])
			value.WriteString(text)
			i += 1 + length
		}
	}
	return value.String(), !strings.Contains(value.String(), "\x00") && utf8.ValidString(value.String())
}

// decodeDatabricksEscape returns what a backslash in front of text stands for,
// and how much of text belongs to it.
func decodeDatabricksEscape(text string) (value string, length int) {
	c := text[0]
	if escaped, found := databricksEscapes[c]; found {
		return escaped, 1
	}
	switch {
	case c == 'u' && len(text) >= 5, c == 'U' && len(text) >= 9:
		width := map[byte]int{'u': 4, 'U': 8}[c]
		if code, ok := hexRune(text[1:], width); ok {
			return string(code), 1 + width
		}
	case (c == '0' || c == '1') && len(text) >= 3 && isOctalDigit(text[1]) && isOctalDigit(text[2]):
		code, _ := strconv.ParseUint(text[:3], 8, 8)
		return string(rune(code)), 3
	case c == '0':
		return "\x00", 1
	}
	_, size := utf8.DecodeRuneInString(text)
	return text[:size], size
}
