package rewrite

// Conjunct is one of the conditions that a predicate joins by AND.
type Conjunct struct {
	SQL    string
	Offset int // in bytes, in the predicate
	// Columns are the columns it refers to; Known is false if they cannot be
	// told for sure, and then it may refer to any.
	Columns []string
	Known   bool
}

// Conjuncts splits a translated predicate at its outermost ANDs, in brackets
// around a whole condition too.
func Conjuncts(predicate string) []Conjunct {
	t, err := newTokenText(Span{Text: predicate}, Lexical{})
	if err != nil || len(t.tokens) == 0 {
		return []Conjunct{{SQL: predicate}}
	}
	var conjuncts []Conjunct
	for _, r := range t.conjuncts(tokenRange{0, len(t.tokens)}) {
		start := t.tokens[r.from].Start
		c := Conjunct{SQL: predicate[start:t.tokens[r.to-1].End], Offset: start}
		c.Columns, c.Known = PredicateColumns(c.SQL)
		conjuncts = append(conjuncts, c)
	}
	return conjuncts
}

func (t *tokenText) conjuncts(r tokenRange) []tokenRange {
	for t.punctuation(r.from, "(") && t.skip(r.from) == r.to && r.to-r.from > 2 {
		r = tokenRange{r.from + 1, r.to - 1}
	}
	var parts []tokenRange
	cases, between, start := 0, false, r.from
	for i := r.from; i < r.to; i = t.skip(i) {
		switch word := t.word(i); {
		case word == "case":
			cases++
		case word == "end" && cases > 0:
			cases--
		case cases > 0:
		case word == "or":
			return []tokenRange{r}
		case word == "between":
			between = true
		case word == "and" && between:
			between = false
		case word == "and" && i > start && i+1 < r.to:
			parts = append(parts, t.conjuncts(tokenRange{start, i})...)
			start = i + 1
		}
	}
	if start == r.from {
		return []tokenRange{r}
	}
	return append(parts, t.conjuncts(tokenRange{start, r.to})...)
}
