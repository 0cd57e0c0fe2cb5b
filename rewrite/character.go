package rewrite

import "strings"

// The character classes of PostgreSQL's scan.l. They are bytes: a byte of a
// multibyte character is a letter.

func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isOctalDigit(c byte) bool { return c >= '0' && c <= '7' }

func isBinaryDigit(c byte) bool { return c == '0' || c == '1' }

func isHexDigit(c byte) bool {
	return isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'f'
}

func isIdentifierStart(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c >= 0x80
}

func isIdentifierPart(c byte) bool {
	return isIdentifierStart(c) || isDigit(c) || c == '$'
}

func isOperatorCharacter(c byte) bool {
	return strings.IndexByte("~!@#^&|`?+-*/%<>=", c) >= 0
}

func isCommentStart(sql string, at int) bool {
	return strings.HasPrefix(sql[at:], "--") || strings.HasPrefix(sql[at:], "/*")
}
