package rewrite

import "strings"

// scanString reads a string constant whose quote stands prefix bytes after
// pos, and the pieces that continue it after a line end.
func (l *lexer) scanString(prefix int, escapes bool) error {
	start := l.pos
	if l.sql[start]|0x20 == 'n' {
		start++ // N is a token of its own to Postgres
	}
	l.pos += prefix + 1
	for {
		if !l.scanStringPiece(escapes) {
			l.pos = len(l.sql)
			return l.unterminated(start, "quoted string")
		}
		if !l.continueString() {
			return nil
		}
	}
}

// scanStringPiece moves past the closing quote; false when there is none.
func (l *lexer) scanStringPiece(escapes bool) bool {
	stops := "'"
	if escapes {
		stops = `'\`
	}
	for {
		stop := strings.IndexAny(l.sql[l.pos:], stops)
		if stop < 0 {
			return false
		}
		l.pos += stop
		if l.sql[l.pos] == '\'' && l.at(1) != '\'' {
			l.pos++
			return true
		}
		l.pos += 2
		if l.pos > len(l.sql) {
			return false
		}
	}
}

// scanBitString reads B'…' or X'…', in which a doubled quote ends the constant.
func (l *lexer) scanBitString() error {
	start, what := l.pos, "bit string literal"
	if l.sql[l.pos]|0x20 == 'x' {
		what = "hexadecimal string literal"
	}
	l.pos += 2
	for {
		closing := strings.IndexByte(l.sql[l.pos:], '\'')
		if closing < 0 {
			l.pos = len(l.sql)
			return l.unterminated(start, what)
		}
		l.pos += closing + 1
		if !l.continueString() {
			return nil
		}
	}
}

// continueString moves behind the quote that continues the constant before
// pos: between the two is only white space and line comments, with at least
// one line end.
func (l *lexer) continueString() bool {
	lineEnd := false
	for i := l.pos; i < len(l.sql); {
		switch c := l.sql[i]; {
		case c == '\n' || c == '\r':
			lineEnd = true
			i++
		case isSpace(c):
			i++
		case strings.HasPrefix(l.sql[i:], "--"):
			i = endOfLine(l.sql, i)
		case c == '\'' && lineEnd:
			l.pos = i + 1
			return true
		default:
			return false
		}
	}
	return false
}

// scanIdentifier reads a quoted identifier whose quote stands prefix bytes
// after pos.
func (l *lexer) scanIdentifier(prefix int, quote byte) error {
	start := l.pos
	l.pos += prefix + 1
	for {
		closing := strings.IndexByte(l.sql[l.pos:], quote)
		if closing < 0 {
			l.pos = len(l.sql)
			return l.unterminated(start, "quoted identifier")
		}
		l.pos += closing + 1
		if l.at(0) != quote {
			return nil
		}
		l.pos++
	}
}

// skipBlank moves past white space and comments.
func (l *lexer) skipBlank() error {
	for l.pos < len(l.sql) {
		switch {
		case isSpace(l.sql[l.pos]):
			l.pos++
		case strings.HasPrefix(l.sql[l.pos:], "--"):
			l.pos = endOfLine(l.sql, l.pos)
		case strings.HasPrefix(l.sql[l.pos:], "/*"):
			if err := l.skipBlockComment(); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// skipBlockComment moves past the comment at pos; comments nest.
func (l *lexer) skipBlockComment() error {
	start, depth := l.pos, 0
	for l.pos < len(l.sql) {
		switch {
		case strings.HasPrefix(l.sql[l.pos:], "/*"):
			depth++
			l.pos += 2
		case strings.HasPrefix(l.sql[l.pos:], "*/"):
			depth--
			l.pos += 2
			if depth == 0 {
				return nil
			}
		default:
			l.pos++
		}
	}
	return l.unterminated(start, "/* comment")
}

// endOfLine returns where the line of the comment at from ends; a carriage
// return ends it too.
func endOfLine(sql string, from int) int {
	if end := strings.IndexAny(sql[from:], "\n\r"); end >= 0 {
		return from + end
	}
	return len(sql)
}
