package rewrite

import "strings"

// joinStrings makes 'a' 'b' one constant: PostgreSQL wants a line end between.
// It returns the place after them.
func (t *tokenText) joinStrings(i int) int {
	end := t.stringsEnd(i)
	if end == i+1 {
		return end
	}
	var joined strings.Builder
	for k := i; k < end; k++ {
		text := t.text(k)
		joined.WriteString(text[1 : len(text)-1])
	}
	t.replace(i, end, t.withoutBackslashes("'"+joined.String()+"'"))
	return end
}

// numberSuffixes are the letters behind a number that say its type.
var numberSuffixes = map[string]string{
	"l": "bigint", "s": "smallint", "y": "smallint", "f": "real", "d": "double precision", "bd": "numeric",
}

// suffixType returns the type that the letters behind the number at i say, ""
// without any.
func (t *tokenText) suffixType(i int) string {
	if i+1 >= len(t.tokens) || t.tokens[i].End != t.tokens[i+1].Start || !t.is(i+1, Word) {
		return ""
	}
	return numberSuffixes[foldASCII(t.text(i+1))]
}

// translateSuffix makes 10L to 10::bigint, with its sign: the least number of a
// type has no positive counterpart.
func (t *tokenText) translateSuffix(i int) {
	typ := t.suffixType(i)
	if typ == "" {
		return
	}
	if (t.operator(i-1, "-") || t.operator(i-1, "+")) && (t.isBoundary(i-2) || t.is(i-2, Operator)) {
		t.replace(i-1, i+2, "('"+t.text(i-1)+t.text(i)+"'::"+typ+")")
		return
	}
	t.replace(i+1, i+2, "::"+typ)
}

// translateSubscript makes f(x)[i], which PostgreSQL's grammar rejects, an
// element at a place that counts from 0.
func (t *tokenText) translateSubscript(i int) error {
	start := t.subscripted(i)
	if start < 0 {
		return nil
	}
	for k := i + 1; k < t.partner[i]; k = t.skip(k) {
		if t.punctuation(k, ":") {
			return t.unsupported(i, "a slice of a function's result", "Put brackets around the call; a slice then counts from 1.")
		}
	}
	t.wrapInCall(i, tokenRange{start, t.partner[i] + 1}, "rwproxy_compat.element(", ")")
	t.replaceBytes(t.tokens[i].Start, t.tokens[i].End, ", ")
	t.replaceBytes(t.tokens[t.partner[i]].Start, t.tokens[t.partner[i]].End, "")
	return nil
}

// subscripted returns where the call begins that the subscript at i is of; -1
// if it is of something else.
func (t *tokenText) subscripted(i int) int {
	for t.punctuation(i-1, "]") {
		i = t.partner[i-1]
	}
	if !t.punctuation(i-1, ")") {
		return -1
	}
	start := t.partner[i-1] - 1
	switch w := t.word(start); {
	case !t.isName(start), w == "array" && t.isSubquery(start+1):
		return -1
	case reserved[w] && w != "array" && w != "left" && w != "right":
		return -1
	}
	for t.punctuation(start-1, ".") && t.isName(start-2) {
		start -= 2
	}
	if t.punctuation(start-1, "::") || t.word(start-1) == "as" || t.endsOperand(start-1) {
		return -1 // a type, or an alias
	}
	return start
}

// quotableWords are words that PostgreSQL reserves and that Databricks users
// have for columns. None begins an expression; DEFAULT would, in VALUES.
var quotableWords = wordSet(`analyze analyse authorization both check collation column concurrently constraint
	deferrable desc end foreign freeze grant initially leading limit offset order placing primary references symmetric
	trailing using variadic window`)

// quoteColumn quotes the word at i if it stands for a column: nothing else is
// possible between what is around it.
func (t *tokenText) quoteColumn(i int) {
	begins := t.word(i-1) == "select" || t.word(i-1) == "by" || t.isBoundary(i-1) && t.word(i-1) != "from" || t.is(i-1, Operator)
	ends := i+1 == len(t.tokens) || t.punctuation(i+1, ",") || t.closes(i+1) || t.is(i+1, Operator) ||
		t.punctuation(i+1, "::") || t.word(i+1) == "from" || t.word(i+1) == "as" || t.word(i+1) == "is" ||
		t.word(i+1) == "and" || t.word(i+1) == "or" || t.word(i+1) == "in" || t.word(i+1) == "like" || t.word(i+1) == "between"
	isTrim := t.word(i-2) == "trim" && t.word(i+1) == "from"
	if begins && ends && i > 0 && !isTrim {
		t.replace(i, i+1, quoteAlways(t.word(i)))
	}
}
