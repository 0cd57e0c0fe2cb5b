package rewrite

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// patternUse is what a regular expression is for.
type patternUse uint8

const (
	// matching asks whether a text matches anywhere.
	matching patternUse = iota
	// capturing asks also what matched, where Java prefers the first
	// alternative and PostgreSQL the longest text.
	capturing
	// splitting must not match an empty text either.
	splitting
)

// postgresPattern translates a regular expression of Java, in which Databricks
// writes them, to PostgreSQL's advanced ones. reason says why it has no
// translation, "" if it has.
func postgresPattern(pattern string, use patternUse) (translated, reason string) {
	r := patternReader{pattern: pattern, use: use}
	if rest, found := strings.CutPrefix(pattern, "(?i)"); found {
		r.out.WriteString("(?i)")
		r.pattern = rest
	} else if strings.HasPrefix(pattern, "***") || strings.HasPrefix(pattern, "(?") && !isGroupStart(pattern) {
		return "", "flags in a pattern"
	}
	empty := r.branch(0)
	switch {
	case r.reason != "":
		return "", r.reason
	case r.at < len(r.pattern):
		return "", "a bracket without its other half"
	case empty && use == splitting:
		return "", "a pattern that matches an empty text"
	}
	return r.out.String(), ""
}

// isGroupStart says whether pattern begins with a group that both know.
func isGroupStart(pattern string) bool {
	for _, start := range []string{"(?:", "(?=", "(?!", "(?<=", "(?<!"} {
		if strings.HasPrefix(pattern, start) {
			return true
		}
	}
	return false
}

// maxPatternDepth bounds the groups of a pattern that are in each other.
const maxPatternDepth = 50

// patternReader translates pattern from at on.
type patternReader struct {
	pattern string
	use     patternUse
	at      int
	out     strings.Builder
	reason  string
}

func (r *patternReader) refuse(reason string) {
	if r.reason == "" {
		r.reason = reason
	}
	r.at = len(r.pattern)
}

// next is the byte at r.at, 0 at the end.
func (r *patternReader) next() byte {
	if r.at >= len(r.pattern) {
		return 0
	}
	return r.pattern[r.at]
}

// copied writes the next n bytes as they are.
func (r *patternReader) copied(n int) {
	r.out.WriteString(r.pattern[r.at : r.at+n])
	r.at += n
}

// branch reads up to the end of a group or of the pattern; empty says whether
// it can match an empty text.
func (r *patternReader) branch(depth int) (empty bool) {
	if depth > maxPatternDepth {
		r.refuse("groups so deep in each other")
	}
	anyEmpty, empty := false, true
	for r.at < len(r.pattern) && r.next() != ')' {
		if r.next() == '|' {
			if r.use != matching {
				r.refuse("alternatives, of which Java takes the first and PostgreSQL the longest")
				return true
			}
			r.copied(1)
			anyEmpty, empty = anyEmpty || empty, true
			continue
		}
		isGroup := r.next() == '('
		atomEmpty := r.atom(depth)
		least := r.quantifier(isGroup)
		empty = empty && (atomEmpty || least == 0)
	}
	return anyEmpty || empty
}

// atom reads one character, class, group or assertion.
func (r *patternReader) atom(depth int) (empty bool) {
	switch c := r.next(); c {
	case '(':
		return r.group(depth)
	case '[':
		r.class()
	case '.':
		r.at++
		r.out.WriteString(`[^\n\r\u0085\u2028\u2029]`)
	case '^':
		r.copied(1)
		return true
	case '$':
		r.at++
		r.out.WriteString(`(?=(?:\r\n|[\n\r\u0085\u2028\u2029])?$)`)
		return true
	case '\\':
		return r.escape()
	case '*', '+', '?', '{':
		r.refuse("a quantifier without anything before it")
	default:
		_, size := utf8.DecodeRuneInString(r.pattern[r.at:])
		r.copied(size)
	}
	return false
}

func (r *patternReader) group(depth int) (empty bool) {
	rest := r.pattern[r.at:]
	switch {
	case strings.HasPrefix(rest, "(?"):
		if !isGroupStart(rest) {
			r.refuse("named groups, atomic groups and flags")
			return true
		}
		length := strings.IndexAny(rest, ":=!") + 1
		if rest[length-1] != ':' && r.use != matching {
			r.refuse("assertions where the matched text matters")
		}
		r.copied(length)
	default:
		r.copied(1)
	}
	empty = r.branch(depth + 1)
	if r.next() != ')' {
		r.refuse("a bracket without its other half")
		return true
	}
	r.copied(1)
	return empty || strings.HasPrefix(rest, "(?") && !strings.HasPrefix(rest, "(?:")
}

// classEscapes are Java's classes, which know ASCII only.
var classEscapes = map[byte]string{
	'd': `0-9`, 'w': `a-zA-Z0-9_`, 's': ` \t\n\v\f\r`, 'D': `0-9`, 'W': `a-zA-Z0-9_`, 'S': ` \t\n\v\f\r`,
}

// escape reads a backslash and what it applies to, outside of brackets.
func (r *patternReader) escape() (empty bool) {
	c := byte(0)
	if r.at+1 < len(r.pattern) {
		c = r.pattern[r.at+1]
	}
	switch class := classEscapes[c]; {
	case class != "":
		caret := ""
		if c < 'a' {
			caret = "^"
		}
		r.out.WriteString("[" + caret + class + "]")
		r.at += 2
	case c == 'A', c == 'z':
		r.out.WriteString(map[byte]string{'A': `\A`, 'z': `\Z`}[c])
		r.at += 2
		return true
	case c >= '1' && c <= '9':
		if r.use != matching {
			r.refuse("a back reference where the matched text matters")
			return true
		}
		r.copied(2)
		return true
	default:
		r.character(c)
	}
	return false
}

// character reads a backslash in front of one character, in brackets or not.
func (r *patternReader) character(c byte) {
	rest := r.pattern[r.at:]
	switch {
	case c == 0:
		r.refuse("a backslash at the end")
	case c == 't' || c == 'n' || c == 'r' || c == 'f' || c == 'a' || c == 'e':
		r.copied(2)
	case c == 'x' && len(rest) >= 4 && isHexDigit(rest[2]) && isHexDigit(rest[3]):
		r.out.WriteString(`\u00` + rest[2:4])
		r.at += 4
	case c == 'u' && len(rest) >= 6 && digits(rest[:6], 2, isHexDigit, false) == 6:
		r.copied(6)
	case c >= utf8.RuneSelf || isIdentifierPart(c) && c != '_':
		r.refuse(`the escape \` + string(rune(c)))
	default:
		r.copied(2)
	}
}

// class reads a bracket expression.
func (r *patternReader) class() {
	r.copied(1)
	if r.next() == '^' {
		r.copied(1)
	}
	for first := true; ; first = false {
		c := r.next()
		switch {
		case c == 0:
			r.refuse("a bracket without its other half")
			return
		case c == ']' && !first:
			r.copied(1)
			return
		case c == ']', c == '[', strings.HasPrefix(r.pattern[r.at:], "&&"):
			r.refuse("a class in a class")
			return
		case c == '\\' && r.at+1 < len(r.pattern):
			escaped := r.pattern[r.at+1]
			switch {
			case classEscapes[escaped] == "":
				r.character(escaped)
			case escaped < 'a':
				r.refuse(`the escape \` + string(rune(escaped)) + " in a class")
			default:
				r.out.WriteString(classEscapes[escaped])
				r.at += 2
				if r.next() == '-' && !strings.HasPrefix(r.pattern[r.at:], "-]") {
					r.refuse("a range that begins with a class")
				}
			}
		default:
			_, size := utf8.DecodeRuneInString(r.pattern[r.at:])
			r.copied(size)
		}
		if r.reason != "" {
			return
		}
	}
}

// maxRepetitions is the largest number that PostgreSQL takes in a quantifier.
const maxRepetitions = 255

// quantifier reads the quantifier of an atom and returns the least number of
// times it asks for.
func (r *patternReader) quantifier(ofGroup bool) (least int) {
	rest := r.pattern[r.at:]
	least = 1
	length := 0
	switch r.next() {
	case '*', '?':
		least, length = 0, 1
	case '+':
		length = 1
	case '{':
		end := strings.IndexByte(rest, '}')
		low, high, ranged := strings.Cut(rest[1:max(end, 1)], ",")
		n, err := strconv.Atoi(low)
		m := n
		if ranged && high != "" && err == nil {
			m, err = strconv.Atoi(high)
		}
		if end < 0 || err != nil || n < 0 || m < n || m > maxRepetitions {
			r.refuse("this quantifier")
			return 1
		}
		least, length = n, end+1
	default:
		return 1
	}
	switch {
	case strings.HasPrefix(rest[length:], "+"):
		r.refuse("a possessive quantifier")
	case ofGroup && r.use != matching:
		r.refuse("a group with a quantifier where the matched text matters")
	case strings.HasPrefix(rest[length:], "?") && r.use != matching:
		r.refuse("a reluctant quantifier where the matched text matters")
	case strings.HasPrefix(rest[length:], "?"):
		r.copied(length)
		r.at++ // whether there is a match is the same
	default:
		r.copied(length)
	}
	if c := r.next(); r.reason == "" && (c == '*' || c == '+' || c == '{') {
		r.refuse("two quantifiers")
	}
	return least
}
