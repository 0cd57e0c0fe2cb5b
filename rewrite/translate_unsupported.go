package rewrite

import "github.com/rwproxy/rwproxy/internal/pgdiag"

// unsupported is a Databricks construct that has no translation. at says that
// it begins at a token, without doubt: PostgreSQL has no reading of the text,
// or none that anybody would write.
type unsupported struct {
	name string
	hint string
	at   func(t *tokenText, i int) bool
}

// unsupportedAt are the constructs by their first word.
var unsupportedAt = map[string][]unsupported{
	"stream": {{
		"STREAM", "A REPLACE WHERE flow needs a batch query: read the table without STREAM.",
		func(t *tokenText, i int) bool {
			return t.startsFromItem(i) && (t.punctuation(i+1, "(") || t.isName(i+1) && !t.continuesQuery(i+1))
		},
	}},
	"pivot":      {pivot("PIVOT", "Use one aggregate with FILTER (WHERE ...) for each column.")},
	"unpivot":    {pivot("UNPIVOT", "Use CROSS JOIN LATERAL (VALUES ...).")},
	"cluster":    {sortClause("CLUSTER BY")},
	"distribute": {sortClause("DISTRIBUTE BY")},
	"sort":       {sortClause("SORT BY")},
	"version":    {timeTravel("VERSION AS OF")},
	"timestamp":  {timeTravel("TIMESTAMP AS OF")},
	"ignore":     {nullTreatment("IGNORE NULLS", "Use FILTER, or a subquery that leaves the NULLs out.")},
	"respect":    {nullTreatment("RESPECT NULLS", "Leave it out: PostgreSQL respects NULLs.")},
	"tablesample": {{
		"TABLESAMPLE without a method", "Use TABLESAMPLE BERNOULLI (percent) or SYSTEM (percent).",
		func(t *tokenText, i int) bool { return t.punctuation(i+1, "(") },
	}},
	"into": {{
		"SELECT INTO", "Leave INTO out: what the query returns goes to the target.",
		func(t *tokenText, i int) bool {
			before := t.word(i - 1)
			return before != "insert" && before != "merge" && before != "as"
		},
	}},
	"from": {{
		"a query that begins with FROM", "Begin it with SELECT.",
		func(_ *tokenText, i int) bool { return i == 0 },
	}},
}

// refuseUnsupported refuses the construct that begins at i, if there is one.
func (t *tokenText) refuseUnsupported(i int) error {
	for _, u := range unsupportedAt[t.word(i)] {
		if u.at(t, i) {
			return t.unsupported(i, u.name, u.hint)
		}
	}
	switch {
	case t.operator(i, "|>") && t.is(i+1, Word):
		return t.unsupported(i, "pipe syntax", "Use a subquery or WITH.")
	case t.operator(i, ">>>") && !t.ownOperators[">>>"]:
		return t.unsupported(i, "the operator >>>", "Use >> on numbers that are not negative.")
	case t.punctuation(i, "$") && i+1 < len(t.tokens) && t.text(i+1) == "{":
		return t.unsupported(i, "a variable in ${...}", "Write the value.")
	case t.punctuation(i, ":") && !t.inSubscript(i) && t.endsOperand(i-1):
		return t.unsupported(i, "the JSON path operator :", "Use -> and ->> on jsonb.")
	case t.punctuation(i, ":") && !t.inSubscript(i) && t.is(i+1, Word):
		return t.unsupported(i, "a named parameter", "Write the value.")
	}
	return nil
}

func (t *tokenText) unsupported(i int, name, hint string) error {
	return t.fail(i, pgdiag.New(featureNotSupportedCode, name+" is not supported in a REPLACE WHERE flow").
		WithDetail("UNSUPPORTED_FEATURE").WithHint(hint))
}

func pivot(name, hint string) unsupported {
	return unsupported{name, hint, func(t *tokenText, i int) bool {
		if !t.punctuation(i+1, "(") {
			return false
		}
		for k := i + 2; k < t.partner[i+1]; k = t.skip(k) {
			if t.word(k) == "for" {
				return true
			}
		}
		return false
	}}
}

func sortClause(name string) unsupported {
	return unsupported{name, "Use ORDER BY.", func(t *tokenText, i int) bool {
		return t.word(i+1) == "by" && t.endsOperand(i-1)
	}}
}

func timeTravel(name string) unsupported {
	return unsupported{name, "A flow reads its sources as they are.", func(t *tokenText, i int) bool {
		return t.words(i+1, "as", "of") && (t.is(i+3, Number) || t.is(i+3, String) || t.punctuation(i+3, "("))
	}}
}

func nullTreatment(name, hint string) unsupported {
	return unsupported{name, hint, func(t *tokenText, i int) bool {
		return t.word(i+1) == "nulls" && t.punctuation(i-1, ")")
	}}
}

// startsPrimary says whether a constant, a name, a call or a bracket begins at
// i, and not the next clause.
func (t *tokenText) startsPrimary(i int) bool {
	return t.primaryEnd(i) > i && !t.continuesQuery(i)
}

// endsOperand says whether token i can be the last of an operand.
func (t *tokenText) endsOperand(i int) bool {
	if i < 0 || i >= len(t.tokens) {
		return false
	}
	switch t.tokens[i].Kind {
	case Operator:
		return t.text(i) == "*" && !t.endsOperand(i-1) // SELECT *, t.*
	case Punctuation:
		return t.closes(i)
	case Word:
		w := t.word(i)
		return w == "" || w == "end" || w == "null" || w == "true" || w == "false" || !reserved[w]
	default:
		return true
	}
}

// startsFromItem says whether a table is named at i: behind FROM, JOIN, or a
// comma of the FROM clause.
func (t *tokenText) startsFromItem(i int) bool {
	switch {
	case t.word(i-1) == "join", t.word(i-1) == "from":
		return true
	case !t.punctuation(i-1, ","):
		return false
	}
	for k := i - 2; k >= 0; k-- {
		switch w := t.word(k); {
		case t.closes(k):
			k = t.partner[k]
		case w == "from":
			return true
		case t.partner[k] > k, w == "select", w == "where", w == "by", w == "having":
			return false
		}
	}
	return false
}

// continuesQuery says whether the word at i begins what may follow a table or
// an alias.
func (t *tokenText) continuesQuery(i int) bool {
	switch t.word(i) {
	case "":
		return false
	case "tablesample", "with", "set", "returning":
		return true
	}
	return reserved[t.word(i)] && !operandWords[t.word(i)] || joinWords[t.word(i)]
}

var joinWords = wordSet("join inner left right full cross natural")

// inSubscript says whether token i is directly in square brackets.
func (t *tokenText) inSubscript(i int) bool {
	for k := i - 1; k >= 0; k-- {
		if t.closes(k) {
			k = t.partner[k]
			continue
		}
		if t.partner[k] > k {
			return t.text(k) == "["
		}
	}
	return false
}
