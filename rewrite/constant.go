package rewrite

// isConstant says whether r is one string constant.
func (t *tokenText) isConstant(r tokenRange) bool {
	switch r.to - r.from {
	case 1:
		return t.is(r.from, String) || t.is(r.from, DollarString) || t.dialect == Databricks && t.is(r.from, QuotedIdentifier)
	case 2:
		return t.isRaw(r.from)
	}
	return false
}

// isRaw says whether a Databricks literal R'…' is at i.
func (t *tokenText) isRaw(i int) bool {
	return t.dialect == Databricks && t.word(i) == "r" && i+1 < len(t.tokens) && t.tokens[i].End == t.tokens[i+1].Start &&
		(t.is(i+1, String) && t.text(i + 1)[0] == '\'' || t.is(i+1, QuotedIdentifier) && t.text(i + 1)[0] == '"')
}

// constantValue returns what the string constant in r is.
func (t *tokenText) constantValue(r tokenRange) (string, error) {
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
