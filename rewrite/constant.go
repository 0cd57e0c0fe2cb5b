package rewrite

import "strings"

// isConstant says whether r is one string constant, or several side by side,
// which are one.
func (t *tokenText) isConstant(r tokenRange) bool {
	if r.to == r.from+1 && (t.is(r.from, DollarString) || t.dialect == Databricks && t.is(r.from, QuotedIdentifier)) {
		return true
	}
	return r.to > r.from && t.stringsEnd(r.from) == r.to
}

// stringsEnd returns the place after the string constants at i, which are one
// if there are several: neither an operator nor a bracket parts them. It
// returns i if there is none.
func (t *tokenText) stringsEnd(i int) int {
	end := t.stringEnd(i)
	if end == i || t.is(i, String) && t.text(i)[0] != '\'' {
		return end // no other joins E'…', and the like
	}
	for {
		next := t.stringEnd(end)
		if next == end || t.is(end, String) && t.text(end)[0] != '\'' {
			return end
		}
		end = next
	}
}

// stringEnd returns the place after the one string constant at i; i if there
// is none.
func (t *tokenText) stringEnd(i int) int {
	switch {
	case t.isRaw(i):
		return i + 2
	case t.is(i, String), t.isDoubleQuotedString(i):
		return i + 1
	}
	return i
}

// isRaw says whether a Databricks literal R'…' is at i.
func (t *tokenText) isRaw(i int) bool {
	return t.dialect == Databricks && t.word(i) == "r" && i+1 < len(t.tokens) && t.tokens[i].End == t.tokens[i+1].Start &&
		(t.is(i+1, String) && t.text(i + 1)[0] == '\'' || t.is(i+1, QuotedIdentifier) && t.text(i + 1)[0] == '"')
}

// constantValue returns what the string constant in r is.
func (t *tokenText) constantValue(r tokenRange) (string, error) {
	var value strings.Builder
	for i := r.from; i < r.to; {
		next := max(t.stringEnd(i), i+1)
		piece, err := t.pieceValue(tokenRange{i, next})
		if err != nil {
			return "", err
		}
		value.WriteString(piece)
		i = next
	}
	return value.String(), nil
}

// pieceValue returns what one of the constants side by side is.
func (t *tokenText) pieceValue(r tokenRange) (string, error) {
	if t.dialect == Databricks {
		return t.databricksString(r)
	}
	p := &parser{sql: t.sql, lexical: t.lexical, tokens: t.tokens, i: r.from}
	value, err := p.stringPiece()
	if err != nil {
		return "", t.syntaxErrorWithHint(r.from, "Write the string without escapes.")
	}
	return value, nil
}
