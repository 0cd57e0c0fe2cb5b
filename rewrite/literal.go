package rewrite

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// stringValue reads a string literal of a clause that holds nothing else:
// '…', E'…', U&'…', N'…', $$…$$, and as in Databricks SQL "…" and R'…'.
// Literals that follow one another are one.
func (p *parser) stringValue(what string) (string, error) {
	var value strings.Builder
	for first := true; ; first = false {
		if !p.atString() {
			if first {
				return "", p.expected(p.i, what)
			}
			return value.String(), nil
		}
		piece, err := p.stringPiece()
		if err != nil {
			return "", err
		}
		value.WriteString(piece)
	}
}

// atString reports that a string literal is next.
func (p *parser) atString() bool {
	return p.kindAt(p.i, String) || p.kindAt(p.i, DollarString) || p.kindAt(p.i, QuotedIdentifier) || p.atRaw()
}

// atRaw reports that R'…' or R"…" is next. Where a backslash is an escape to
// PostgreSQL's lexer there is no such literal.
func (p *parser) atRaw() bool {
	return !p.lexical.BackslashEscapes && p.wordsAt(p.i, "R") && (p.kindAt(p.i+1, String) || p.kindAt(p.i+1, QuotedIdentifier)) &&
		p.tokens[p.i].End == p.tokens[p.i+1].Start
}

// stringPiece reads the one literal that is next.
func (p *parser) stringPiece() (string, error) {
	at := p.i
	if p.atRaw() {
		p.i++
	}
	text := p.text(p.i)
	value, ok := "", true
	switch {
	case p.kindAt(p.i, DollarString):
		delimiter := strings.IndexByte(text[1:], '$') + 2
		value = text[delimiter : len(text)-delimiter]
	case p.kindAt(p.i, QuotedIdentifier):
		name, err := p.quotedName()
		if err != nil {
			return "", err
		}
		value = name
	case text[0]|0x20 == 'u':
		escape, err := p.unicodeEscape()
		if err != nil {
			return "", err
		}
		value, ok = decodeUnicodeEscapes(unquote(joinPieces(text[2:], false), '\''), escape)
	case text[0]|0x20 == 'e':
		value, ok = decodeBackslashes(joinPieces(text[1:], true))
	case text[0]|0x20 == 'b', text[0]|0x20 == 'x':
		return "", p.expected(at, "a string of characters")
	default:
		text = text[strings.IndexByte(text, '\''):] // N'…'
		escapes := p.lexical.BackslashEscapes
		if value = joinPieces(text, escapes); escapes {
			value, ok = decodeBackslashes(value)
		} else {
			value = unquote(value, '\'')
		}
	}
	if !ok {
		return "", p.syntaxError(at, "invalid escape in a string")
	}
	if strings.IndexByte(value, 0) >= 0 {
		return "", p.syntaxError(at, "a string cannot hold the character U+0000")
	}
	p.i++
	return value, nil
}

// joinPieces makes one '…' of a string constant that continues after a line
// end.
func joinPieces(text string, escapes bool) string {
	var joined strings.Builder
	joined.WriteByte('\'')
	l := lexer{sql: text, pos: 1}
	for {
		start := l.pos
		l.scanStringPiece(escapes)
		joined.WriteString(text[start : l.pos-1])
		if !l.continueString() {
			break
		}
	}
	joined.WriteByte('\'')
	return joined.String()
}

// decodeBackslashes returns the value of an E string, given from its opening
// to its closing quote.
func decodeBackslashes(text string) (string, bool) {
	var value strings.Builder
	body := text[1 : len(text)-1]
	for i := 0; i < len(body); {
		c := body[i]
		i++
		switch {
		case c == '\'':
			value.WriteByte(c)
			i++ // its double
		case c != '\\':
			value.WriteByte(c)
		case i == len(body):
			return "", false
		default:
			length, ok := decodeBackslash(&value, body[i:])
			if !ok {
				return "", false
			}
			i += length
		}
	}
	return value.String(), true
}

// decodeBackslash writes what a backslash followed by text stands for and
// returns how much of text belongs to it.
func decodeBackslash(value *strings.Builder, text string) (length int, ok bool) {
	switch c := text[0]; c {
	case 'b', 'f', 'n', 'r', 't':
		value.WriteByte("\b\f\n\r\t"[strings.IndexByte("bfnrt", c)])
		return 1, true
	case 'x':
		length := digits(text[:min(len(text), 3)], 1, isHexDigit, false)
		if length == 1 {
			value.WriteByte(c)
			return 1, true
		}
		code, err := strconv.ParseUint(text[1:length], 16, 8)
		value.WriteByte(byte(code))
		return length, err == nil
	case 'u', 'U':
		width := map[byte]int{'u': 4, 'U': 8}[c]
		first, ok := hexRune(text[1:], width)
		if !ok {
			return 0, false
		}
		length := 1 + width
		if utf16.IsSurrogate(first) {
			if !strings.HasPrefix(text[length:], `\u`) {
				return 0, false
			}
			second, ok := hexRune(text[length+2:], 4)
			if first = utf16.DecodeRune(first, second); !ok || first == utf8.RuneError {
				return 0, false
			}
			length += 6
		}
		value.WriteRune(first)
		return length, utf8.ValidRune(first)
	}
	if isOctalDigit(text[0]) {
		length := 1
		for length < min(len(text), 3) && isOctalDigit(text[length]) {
			length++
		}
		code, err := strconv.ParseUint(text[:length], 8, 16)
		value.WriteByte(byte(code))
		return length, err == nil
	}
	value.WriteByte(text[0])
	return 1, true
}

// decodeUnicodeEscapes returns body with its \XXXX and \+XXXXXX replaced;
// escape stands for the backslash.
func decodeUnicodeEscapes(body string, escape byte) (string, bool) {
	var value strings.Builder
	var high rune // the first half of a surrogate pair
	for i := 0; i < len(body); {
		code, length := rune(-1), 1
		if body[i] == escape {
			rest, ok := body[i+1:], true
			switch {
			case rest != "" && rest[0] == escape:
				length = 2
			case rest != "" && rest[0] == '+':
				code, ok = hexRune(rest[1:], 6)
				length = 8
			default:
				code, ok = hexRune(rest, 4)
				length = 5
			}
			if !ok {
				return "", false
			}
		}
		switch {
		case high != 0:
			if code = utf16.DecodeRune(high, code); code == utf8.RuneError {
				return "", false
			}
			value.WriteRune(code)
			high = 0
		case code < 0:
			value.WriteByte(body[i])
		case utf16.IsSurrogate(code):
			high = code
		case !utf8.ValidRune(code):
			return "", false
		default:
			value.WriteRune(code)
		}
		i += length
	}
	return value.String(), high == 0
}

// hexRune reads width hexadecimal digits at the start of text.
func hexRune(text string, width int) (rune, bool) {
	if len(text) < width {
		return 0, false
	}
	code, err := strconv.ParseUint(text[:width], 16, 31)
	return rune(code), err == nil
}
