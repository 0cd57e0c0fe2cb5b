package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// Lexical is how a text is read.
type Lexical struct {
	// BackslashEscapes makes a backslash an escape in '…' too: it is true when
	// standard_conforming_strings is off.
	BackslashEscapes bool
	// Dialect is whose meaning a flow's query and predicate have where both
	// PostgreSQL and Databricks give them one. The lexer is the same for both.
	Dialect Dialect
}

// Tokens returns the tokens of sql, by the rules of PostgreSQL's scan.l with
// one addition: `x` is an identifier. Where the majors differ (a number
// directly followed by a letter) it cuts as PostgreSQL 14 does and leaves the
// refusal to Postgres.
//
// The error is a *pgdiag.Diagnostic with SQLSTATE 42601 and the position of a
// string, identifier or comment that is not terminated; the tokens before it
// are returned with it.
func Tokens(sql string, o Lexical) ([]Token, error) {
	l := lexer{sql: sql, lexical: o, backticks: true}
	var tokens []Token
	for {
		token, ok, err := l.next()
		if err != nil || !ok {
			return tokens, err
		}
		tokens = append(tokens, token)
	}
}

// lexer reads sql from pos on. It is a value: a copy looks ahead.
type lexer struct {
	sql     string
	lexical Lexical
	// backticks makes ` a quote. In PostgreSQL it is an operator character.
	backticks bool
	pos       int
	// signs is the end of a run of + and - that follow as operators of one
	// character each.
	signs int
}

// next returns the next token; false at the end of the text.
func (l *lexer) next() (Token, bool, error) {
	if err := l.skipBlank(); err != nil {
		return Token{}, false, err
	}
	if l.pos >= len(l.sql) {
		return Token{}, false, nil
	}
	start := l.pos
	kind, err := l.scan()
	if err != nil {
		return Token{}, false, err
	}
	return Token{Kind: kind, Start: start, End: l.pos}, true, nil
}

// scan moves past the token at pos.
func (l *lexer) scan() (Kind, error) {
	c, following := l.sql[l.pos], l.at(1)
	switch {
	case c == '\'':
		return String, l.scanString(0, l.lexical.BackslashEscapes)
	case c == '"':
		return QuotedIdentifier, l.scanIdentifier(0, '"')
	case c == '`' && l.backticks:
		return Backtick, l.scanIdentifier(0, '`')
	case c == '$':
		return l.scanDollar()
	case isDigit(c), c == '.' && isDigit(following):
		l.scanNumber()
		return Number, nil
	case isIdentifierStart(c):
		return l.scanWord()
	case l.isOperator(c):
		l.scanOperator()
		return Operator, nil
	case c == ':' && (following == ':' || following == '='), c == '.' && following == '.':
		l.pos += 2
		return Punctuation, nil
	default:
		l.pos++
		return Punctuation, nil
	}
}

// scanWord reads a bare identifier or keyword, or what its first letter is the
// prefix of.
func (l *lexer) scanWord() (Kind, error) {
	switch c, following := l.sql[l.pos]|0x20, l.at(1); {
	case c == 'e' && following == '\'':
		return String, l.scanString(1, true)
	case c == 'n' && following == '\'':
		return String, l.scanString(1, l.lexical.BackslashEscapes)
	case (c == 'b' || c == 'x') && following == '\'':
		return String, l.scanBitString()
	case c == 'u' && following == '&' && l.at(2) == '\'':
		return String, l.scanString(2, false)
	case c == 'u' && following == '&' && l.at(2) == '"':
		return QuotedIdentifier, l.scanIdentifier(2, '"')
	}
	for l.pos++; l.pos < len(l.sql) && isIdentifierPart(l.sql[l.pos]); l.pos++ {
	}
	return Word, nil
}

// scanDollar reads a parameter, a dollar-quoted string or a lone $.
func (l *lexer) scanDollar() (Kind, error) {
	start := l.pos
	l.pos++
	if isDigit(l.at(0)) {
		for isDigit(l.at(0)) {
			l.pos++
		}
		return Parameter, nil
	}
	end := l.pos
	for end < len(l.sql) && isIdentifierPart(l.sql[end]) && l.sql[end] != '$' {
		end++
	}
	if end == len(l.sql) || l.sql[end] != '$' {
		return Punctuation, nil
	}
	delimiter := l.sql[start : end+1]
	closing := strings.Index(l.sql[end+1:], delimiter)
	if closing < 0 {
		return DollarString, l.unterminated(start, "dollar-quoted string")
	}
	l.pos = end + 1 + closing + len(delimiter)
	return DollarString, nil
}

// scanNumber reads an integer, numeric or real constant, in the forms of
// PostgreSQL 16 and later.
func (l *lexer) scanNumber() {
	if l.sql[l.pos] == '0' {
		var isInBase func(byte) bool
		switch l.at(1) | 0x20 {
		case 'x':
			isInBase = isHexDigit
		case 'o':
			isInBase = isOctalDigit
		case 'b':
			isInBase = isBinaryDigit
		}
		if isInBase != nil {
			if end := digits(l.sql, l.pos+2, isInBase, true); end > l.pos+2 {
				l.pos = end
				return
			}
		}
	}
	l.pos = digits(l.sql, l.pos, isDigit, false)
	if l.at(0) == '.' && l.at(1) != '.' {
		l.pos = digits(l.sql, l.pos+1, isDigit, false)
	}
	if l.at(0)|0x20 == 'e' {
		exponent := l.pos + 1
		if sign := l.at(1); sign == '+' || sign == '-' {
			exponent++
		}
		if end := digits(l.sql, exponent, isDigit, false); end > exponent {
			l.pos = end
		}
	}
}

// digits returns the end of the digits at from, single underscores between
// them included; leading says that one may stand before the first, too.
func digits(sql string, from int, isInBase func(byte) bool, leading bool) int {
	end := from
	for end < len(sql) {
		switch {
		case isInBase(sql[end]):
			end++
		case sql[end] == '_' && (leading || end > from) && end+1 < len(sql) && isInBase(sql[end+1]):
			end += 2
		default:
			return end
		}
	}
	return end
}

// scanOperator reads the longest run of operator characters that neither
// begins a comment nor, unless it holds one of ~ ! @ # ^ & | ` ? %, ends in
// + or -.
func (l *lexer) scanOperator() {
	if l.pos < l.signs {
		l.pos++
		return
	}
	start, special := l.pos, false
	end := start
	for end < len(l.sql) && l.isOperator(l.sql[end]) && !isCommentStart(l.sql, end) {
		special = special || strings.IndexByte("~!@#^&|`?%", l.sql[end]) >= 0
		end++
	}
	l.signs = end
	if !special {
		for end > start+1 && (l.sql[end-1] == '+' || l.sql[end-1] == '-') {
			end--
		}
	}
	l.pos = end
}

func (l *lexer) isOperator(c byte) bool {
	return isOperatorCharacter(c) && (c != '`' || !l.backticks)
}

// at returns the byte at pos+offset, 0 past the end.
func (l *lexer) at(offset int) byte {
	if l.pos+offset >= len(l.sql) {
		return 0
	}
	return l.sql[l.pos+offset]
}

// unterminated returns the error for what begins at start and never ends.
func (l *lexer) unterminated(start int, what string) *pgdiag.Diagnostic {
	message := "unterminated " + what + " at or near \"" + excerpt(l.sql[start:]) + "\""
	return pgdiag.New(syntaxErrorCode, message).At(CharPosition(l.sql, start))
}
