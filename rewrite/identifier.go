package rewrite

import (
	"strings"
	"unicode/utf8"
)

// maxIdentifier is the length in bytes that Postgres cuts identifiers to.
const maxIdentifier = 63

// tableName reads [[catalog.]schema.]table.
func (p *parser) tableName() (Name, error) {
	first := p.i
	var parts []string
	for {
		part, err := p.identifier("a table name", len(parts) == 0)
		if err != nil {
			return Name{}, err
		}
		parts = append(parts, part)
		if !p.acceptSymbol(".") {
			break
		}
	}
	if len(parts) > 3 {
		return Name{}, p.syntaxError(first, "improper qualified name (too many dotted names): "+
			excerpt(p.span(first, p.i).Text))
	}
	name := Name{Table: parts[len(parts)-1], Offset: p.tokens[first].Start}
	if len(parts) > 1 {
		name.Schema = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		name.Catalog = parts[0]
	}
	return name, nil
}

// identifier reads one identifier, folded or unquoted. A bare one may be a
// reserved word only behind a dot, where first is false.
func (p *parser) identifier(what string, first bool) (string, error) {
	var name string
	switch {
	case p.kindAt(p.i, Word):
		name = foldASCII(p.text(p.i))
		if first && reserved[name] {
			return "", p.expected(p.i, what)
		}
	case p.kindAt(p.i, Backtick):
		name = backtickName(p.text(p.i))
	case p.kindAt(p.i, QuotedIdentifier):
		quoted, err := p.quotedName()
		if err != nil {
			return "", err
		}
		name = quoted
	case p.kindAt(p.i, Number):
		return "", p.expected(p.i, what+"; one that begins with a digit needs quotes")
	default:
		return "", p.expected(p.i, what)
	}
	if name == "" {
		return "", p.syntaxError(p.i, `zero-length delimited identifier at or near "`+p.text(p.i)+`"`)
	}
	if strings.IndexByte(name, 0) >= 0 {
		return "", p.syntaxError(p.i, "an identifier cannot hold the character U+0000")
	}
	p.i++
	return cutIdentifier(name), nil
}

// quotedName returns the name that the quoted identifier at i stands for, and
// moves to the last token of it: a UESCAPE clause may follow U&"…".
func (p *parser) quotedName() (string, error) {
	text := p.text(p.i)
	if text[0] == '"' {
		return unquote(text, '"'), nil
	}
	at := p.i
	escape, err := p.unicodeEscape()
	if err != nil {
		return "", err
	}
	name, ok := decodeUnicodeEscapes(unquote(text[2:], '"'), escape)
	if !ok {
		return "", p.syntaxError(at, "invalid Unicode escape")
	}
	return name, nil
}

// unicodeEscape returns the escape character of the U& token at i. If a
// UESCAPE clause follows, it moves to the clause's last token.
func (p *parser) unicodeEscape() (byte, error) {
	if !p.wordsAt(p.i+1, "UESCAPE") {
		return '\\', nil
	}
	p.i += 2
	text := p.text(p.i)
	if !p.kindAt(p.i, String) || len(text) != len("'x'") || text[0] != '\'' || !isUnicodeEscape(text[1]) {
		return 0, p.expected(p.i, "an escape character in quotes")
	}
	return text[1], nil
}

// isUnicodeEscape reports that UESCAPE takes c.
func isUnicodeEscape(c byte) bool {
	return !isHexDigit(c) && !isSpace(c) && c < utf8.RuneSelf && c != '+' && c != '\'' && c != '"'
}

// backtickName returns the name that `…` stands for. Databricks compares names
// without case: one that can be bare is folded as if it were.
func backtickName(text string) string {
	name := unquote(text, '`')
	if folded := foldASCII(name); isBareIdentifier(folded) {
		return folded
	}
	return name
}

// unquote returns what stands between the quotes of text, doubled quotes made
// single.
func unquote(text string, quote byte) string {
	q := string(quote)
	return strings.ReplaceAll(text[1:len(text)-1], q+q, q)
}

// cutIdentifier cuts name as Postgres does, not inside a character.
func cutIdentifier(name string) string {
	if len(name) <= maxIdentifier {
		return name
	}
	end := maxIdentifier
	for end > maxIdentifier-utf8.UTFMax && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end]
}

// columnNames reads ( name [, …] ).
func (p *parser) columnNames() ([]string, error) {
	if err := p.expectSymbol("("); err != nil {
		return nil, err
	}
	var names []string
	for {
		name, err := p.identifier("a column name", true)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
		if !p.acceptSymbol(",") {
			break
		}
	}
	if !p.acceptSymbol(")") {
		return nil, p.expected(p.i, `"," or ")"`)
	}
	return names, nil
}
