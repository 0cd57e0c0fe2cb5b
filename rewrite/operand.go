package rewrite

// This file finds where the operands of a comparison begin and end, by
// PostgreSQL's precedences (manual, 4.1.6). It never decides whether the text
// is valid.

// stopWords end an operand although the grammar does not reserve them.
var stopWords = wordSet("between overlaps")

// operandWords are reserved words that an operand can begin with.
var operandWords = wordSet(`array case cast collation current_catalog current_date current_role current_schema
	current_time current_timestamp current_user default false left localtime localtimestamp null right
	session_user system_user true user`)

// comparisons bind weaker than every other operator, but stronger than IS,
// NOT, AND and OR. <=>, == and the like are Databricks' own.
var comparisons = map[string]bool{
	"=": true, "<": true, ">": true, "<=": true, ">=": true, "<>": true, "!=": true,
	"<=>": true, "==": true, "!<": true, "!>": true,
}

func (t *tokenText) comparison(i int) bool {
	return comparisons[t.text(i)] && !t.ownOperators[t.text(i)]
}

// operandEnd returns the place after the operand at i, with all operators that
// bind stronger than a comparison; i if there is none.
func (t *tokenText) operandEnd(i int) int {
	end := i
	for {
		for t.is(i, Operator) && !t.comparison(i) {
			i++
		}
		next := t.primaryEnd(i)
		if next == i {
			return end
		}
		end = t.postfixEnd(next)
		if i = t.infixEnd(end); i == end {
			return end
		}
	}
}

// infixEnd returns the place after the operator at i; i if there is none that
// binds stronger than a comparison.
func (t *tokenText) infixEnd(i int) int {
	switch {
	case t.is(i, Operator) && !t.comparison(i) && t.text(i) != "=>":
		return i + 1
	case t.isDiv(i):
		return i + 1
	case t.word(i) == "operator" && t.punctuation(i+1, "("):
		return t.skip(i + 1)
	}
	return i
}

// primaryEnd returns the place after the constant, name, call or bracket at i.
func (t *tokenText) primaryEnd(i int) int {
	switch {
	case t.is(i, Number) && t.suffixType(i) != "":
		return i + 2
	case t.stringEnd(i) > i:
		return t.stringsEnd(i)
	case t.is(i, Number), t.is(i, DollarString), t.is(i, Parameter):
		return i + 1
	case t.punctuation(i, "("):
		return t.skip(i)
	case t.word(i) == "case":
		return t.caseEnd(i)
	case t.word(i) == "interval":
		if literal := t.interval(i); literal.end > i {
			return literal.end
		}
	case !t.isName(i), stopWords[t.word(i)], reserved[t.word(i)] && !operandWords[t.word(i)]:
		return i
	}
	return t.callEnd(i)
}

// callEnd returns the place after the name at i and what follows it: arguments
// and clauses of a call, or the constant of a typed one (DATE '…').
func (t *tokenText) callEnd(i int) int {
	end := t.typeEnd(i)
	if next := t.stringsEnd(end); next > end {
		end = next
		if unit := t.word(end); t.word(i) == "interval" && intervalFields[unit] {
			end++
			if t.word(end) == "to" {
				end += 2
			}
		}
		return end
	}
	end = t.nameEnd(i)
	if !t.punctuation(end, "(") {
		return end
	}
	end = t.skip(end)
	for {
		switch {
		case t.word(end) == "filter" && t.punctuation(end+1, "("),
			t.word(end) == "over" && t.punctuation(end+1, "("):
			end = t.skip(end + 1)
		case t.words(end, "within", "group") && t.punctuation(end+2, "("):
			end = t.skip(end + 2)
		case t.word(end) == "over" && t.isName(end+1) && !reserved[t.word(end+1)]:
			end += 2
		default:
			return end
		}
	}
}

// caseEnd returns the place after the END of the CASE at i.
func (t *tokenText) caseEnd(i int) int {
	depth := 0
	for k := i; k < len(t.tokens) && !t.closes(k); k = t.skip(k) {
		switch t.word(k) {
		case "case":
			depth++
		case "end":
			if depth--; depth == 0 {
				return k + 1
			}
		}
	}
	return i
}

// closes says whether token i is a closing bracket.
func (t *tokenText) closes(i int) bool { return t.partner[i] >= 0 && t.partner[i] < i }

// postfixEnd returns the place after the subscripts, fields, casts, COLLATE
// and AT TIME ZONE at i.
func (t *tokenText) postfixEnd(i int) int {
	for {
		next := i
		switch {
		case t.punctuation(i, "["):
			next = t.skip(i)
		case t.punctuation(i, ".") && (t.isName(i+1) || t.operator(i+1, "*")):
			next = i + 2
		case t.punctuation(i, "::"):
			next = t.typeEnd(i + 1)
		case t.word(i) == "collate":
			next = t.nameEnd(i + 1)
		case t.words(i, "at", "time", "zone"):
			next = t.primaryEnd(i + 3)
		case t.words(i, "at", "local"):
			next = i + 2
		}
		if next <= i {
			return i
		}
		i = next
	}
}

// typeEnd returns the place after the type name at i.
func (t *tokenText) typeEnd(i int) int {
	if t.word(i) == "setof" {
		i++
	}
	end := t.nameEnd(i)
	if end == i {
		return i
	}
	switch {
	case t.words(i, "double", "precision"), t.words(end, "varying"):
		end++
	case t.word(i) == "national":
		if end++; t.word(end) == "varying" {
			end++
		}
	case t.word(i) == "interval":
		if intervalFields[t.word(end)] {
			if end++; t.word(end) == "to" {
				end += 2
			}
		}
	}
	if t.punctuation(end, "(") {
		end = t.skip(end)
	}
	if w := t.word(end); (w == "with" || w == "without") && t.words(end+1, "time", "zone") {
		end += 3
	}
	if t.word(end) == "array" {
		end++
	}
	for t.punctuation(end, "[") {
		end = t.skip(end)
	}
	return end
}

// leftBoundaries are words before which no operand of a comparison behind them
// begins.
var leftBoundaries = wordSet(`all and by case distinct else from having limit not offset on or returning select then
	using when where`)

// comparisonStart returns where the left operand of the comparison operator at
// i begins; -1 if there is none. Comparisons group from the left, as
// Databricks groups them.
func (t *tokenText) comparisonStart(i int) int {
	start := t.boundaryBefore(i)
	for at := start; at < i; {
		end := t.comparisonEnd(at)
		switch {
		case end >= i:
			return at
		case end > at && t.word(at-1) == "on": // DISTINCT ON (…)
			at = end
		default:
			return -1
		}
	}
	return -1
}

// comparisonEnd returns the place after the chain of comparisons at i. Each
// comparison of a chain asks for it, so it is looked for once.
func (t *tokenText) comparisonEnd(i int) int {
	if end, found := t.comparisonEnds[i]; found {
		return end
	}
	end := t.newComparisonEnd(i)
	if t.comparisonEnds == nil {
		t.comparisonEnds = map[int]int{}
	}
	t.comparisonEnds[i] = end
	return end
}

func (t *tokenText) newComparisonEnd(i int) int {
	for {
		end := t.operandEnd(i)
		if end == i || !t.is(end, Operator) || !t.comparison(end) {
			return end
		}
		if next := t.operandEnd(end + 1); next == end+1 {
			return end
		}
		i = end + 1
	}
}

// boundaryBefore returns the first place before i that an expression which
// reaches to i can begin at.
func (t *tokenText) boundaryBefore(i int) int {
	cases := 0
	for k := i - 1; k >= 0; k-- {
		switch word := t.word(k); {
		case t.closes(k):
			k = t.partner[k]
		case word == "end":
			cases++
		case word == "case" && cases > 0:
			cases--
		case t.partner[k] > k, cases == 0 && t.isBoundary(k):
			return k + 1
		}
	}
	return 0
}

// isBoundary says whether token i begins a new expression behind it, and so
// does the beginning of the text.
func (t *tokenText) isBoundary(i int) bool {
	return i < 0 || leftBoundaries[t.word(i)] || t.partner[i] > i ||
		t.punctuation(i, ",") || t.punctuation(i, ":=") || t.operator(i, "=>")
}
