package rewrite

// StringValue returns the value of one string literal as Postgres stores it,
// "" for a text that is not one.
func StringValue(literal string, o Lexical) string {
	p, err := newParser(literal, o)
	if err != nil {
		return ""
	}
	value, err := p.stringValue("a string")
	if err != nil {
		return ""
	}
	return value
}
