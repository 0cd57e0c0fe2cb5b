package rewrite

// patternArgument translates the regular expression that is the second
// argument.
func patternArgument(use patternUse) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		switch {
		case len(c.arguments) < 2:
			return nil
		case use == splitting && len(c.arguments) > 2:
			return t.unsupported(c.arguments[2].from, "split with a limit", "Take a slice of the array.")
		}
		t.qualifyCompat(c)
		return t.translatePattern(c.name, c.arguments[1], use)
	}
}

// qualifyCompat makes the call one of the function in rwproxy_compat, whose
// argument is no longer Databricks'.
func (t *tokenText) qualifyCompat(c call) {
	t.insertBefore(c.at, "rwproxy_compat.")
}

func (t *tokenText) translatePattern(function string, r tokenRange, use patternUse) error {
	const hint = "Use ~, regexp_match, regexp_replace or regexp_split_to_array with a pattern of PostgreSQL's."
	if !t.isConstant(r) {
		return t.unsupported(r.from, function+" with a pattern that is not a constant", hint)
	}
	pattern, err := t.constantValue(r)
	if err != nil {
		return err
	}
	translated, reason := postgresPattern(pattern, use)
	if reason != "" {
		return t.unsupported(r.from, reason+" in the pattern of "+function, hint)
	}
	t.replace(r.from, r.to, QuoteLiteral(translated))
	return nil
}

// translateRlike makes x [NOT] RLIKE p to a call.
func (t *tokenText) translateRlike(i int) error {
	operator := i
	before := "rwproxy_compat.rlike("
	after := ")"
	if t.word(i-1) == "not" {
		operator = i - 1
		before, after = "(NOT rwproxy_compat.rlike(", "))"
	}
	left, right := t.comparisonStart(operator), t.operandEnd(i+1)
	if left < 0 || right == i+1 {
		return t.syntaxErrorWithHint(i, "Put brackets around the operands of "+t.text(i)+".")
	}
	if err := t.translatePattern(t.text(i), tokenRange{i + 1, right}, matching); err != nil {
		return err
	}
	t.wrapInCall(i, tokenRange{left, right}, before, after)
	t.replace(operator, i+1, ",")
	return nil
}
