package refresh

import (
	"strings"

	"github.com/rwproxy/rwproxy/rewrite"
)

// term is an expression as EXPLAIN writes it, names not yet looked up.
type term struct {
	kind  termKind
	name  string // function, operator or column; alias of the column's relation in alias
	alias string
	value string // of a constant: its text
	typ   string // of a cast, of a constant: as EXPLAIN names it, "" for none
	args  []*term
}

type termKind uint8

const (
	termColumn    termKind = iota
	termParameter          // the one of a proof's statement, see parameterNumber
	termConstant
	termNull
	termCall
	termCast
	termOperator
	termIsNull
	termExtract // args[0]; name is the field
)

// conjuncts returns the terms that hold together for a condition: those of it
// that are understood. What is not understood restricts the rows further, so
// it can be left out.
func conjuncts(condition string) []*term {
	tokens, err := rewrite.Tokens(condition, rewrite.Lexical{})
	if err != nil || len(tokens) > maxConditionTokens {
		return nil
	}
	t := termText{sql: condition, tokens: tokens}
	var terms []*term
	for _, part := range t.conjunction(0, len(tokens)) {
		p := termText{sql: condition, tokens: tokens[part[0]:part[1]]}
		if found := p.expression(); found != nil && p.next == len(p.tokens) {
			terms = append(terms, found)
		}
	}
	return terms
}

// maxConditionTokens bounds what is read of one condition, and so the depth of
// its brackets.
const maxConditionTokens = 4096

// termText reads terms from tokens. Its methods return nil for what they do not
// understand; next is then anywhere.
type termText struct {
	sql    string
	tokens []rewrite.Token
	next   int
}

// conjunction returns the token ranges of the operands of the AND that spans
// the range, or the range itself. EXPLAIN puts an AND in brackets of its own,
// and each operand that is more than a name, call or CASE in its own.
func (t *termText) conjunction(start, end int) [][2]int {
	if end-start < 2 || !t.is(start, "(") || t.closing(start) != end-1 {
		return [][2]int{{start, end}}
	}
	var parts [][2]int
	depth, from := 0, start+1
	for i := start + 1; i < end-1; i++ {
		switch {
		case t.is(i, "(") || t.is(i, "["):
			depth++
		case t.is(i, ")") || t.is(i, "]"):
			depth--
		case depth > 0:
		case t.word(i) == "and":
			parts = append(parts, [2]int{from, i})
			from = i + 1
		case notInConjunction[t.word(i)]:
			return [][2]int{{start, end}}
		}
	}
	if parts == nil {
		return [][2]int{{start, end}}
	}
	return append(parts, [2]int{from, end - 1})
}

// notInConjunction are the words that, outside brackets, give an AND beside
// them another meaning.
var notInConjunction = map[string]bool{"or": true, "not": true, "between": true, "case": true, "when": true, "overlaps": true}

// closing returns the place of the bracket that closes the one at i, -1 if
// none does.
func (t *termText) closing(i int) int {
	depth := 0
	for ; i < len(t.tokens); i++ {
		switch {
		case t.is(i, "("):
			depth++
		case t.is(i, ")"):
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func (t *termText) expression() *term {
	e := t.primary()
	for e != nil && t.take("::") {
		e = t.cast(e)
	}
	return e
}

func (t *termText) primary() *term {
	if t.next >= len(t.tokens) {
		return nil
	}
	switch token := t.tokens[t.next]; token.Kind {
	case rewrite.Parameter:
		t.next++
		if t.text(t.next-1) != parameterName {
			return nil
		}
		return &term{kind: termParameter}
	case rewrite.String:
		t.next++
		return &term{kind: termConstant, value: rewrite.StringValue(t.text(t.next-1), rewrite.Lexical{})}
	case rewrite.Number:
		t.next++
		return &term{kind: termConstant, value: t.text(t.next - 1)}
	case rewrite.Word, rewrite.QuotedIdentifier:
		return t.named()
	}
	if t.take("(") {
		e := t.bracketed()
		if e != nil && t.take(")") {
			return e
		}
	}
	return nil
}

// named reads what begins with a name: a column, a call, NULL or a truth value.
// An unqualified function is PostgreSQL's own: a proof is made with nothing but
// pg_catalog on the search_path.
func (t *termText) named() *term {
	quoted := t.tokens[t.next].Kind == rewrite.QuotedIdentifier
	name := t.identifier()
	switch {
	case t.take("."):
		if t.next >= len(t.tokens) {
			return nil
		}
		if k := t.tokens[t.next].Kind; k != rewrite.Word && k != rewrite.QuotedIdentifier {
			return nil // x.*
		}
		column := t.identifier()
		if t.isNext("(") || t.isNext(".") || t.isNext("[") {
			return nil // a function of the user's, a field, an element
		}
		return &term{kind: termColumn, alias: name, name: column}
	case !t.take("("):
		if quoted {
			return nil
		}
		switch name {
		case "null":
			return &term{kind: termNull}
		case "true", "false":
			return &term{kind: termConstant, value: name, typ: "boolean"}
		}
		return nil
	case name == "extract" && !quoted:
		return t.extract()
	}
	e := &term{kind: termCall, name: name}
	for !t.take(")") {
		if len(e.args) > 0 && !t.take(",") {
			return nil
		}
		argument := t.expression()
		if argument == nil {
			return nil
		}
		e.args = append(e.args, argument)
	}
	return e
}

func (t *termText) extract() *term {
	field := t.word(t.next)
	t.next++
	if field == "" || t.word(t.next) != "from" {
		return nil
	}
	t.next++
	argument := t.expression()
	if argument == nil || !t.take(")") {
		return nil
	}
	return &term{kind: termExtract, name: field, args: []*term{argument}}
}

// bracketed reads what stands between brackets.
func (t *termText) bracketed() *term {
	left := t.expression()
	if left == nil || t.next >= len(t.tokens) {
		return left
	}
	switch {
	case t.word(t.next) == "is" && t.word(t.next+1) == "null":
		t.next += 2
		return &term{kind: termIsNull, args: []*term{left}}
	case t.word(t.next) == "at" && t.word(t.next+1) == "time" && t.word(t.next+2) == "zone":
		t.next += 3
		if zone := t.expression(); zone != nil {
			return &term{kind: termCall, name: "timezone", args: []*term{zone, left}}
		}
		return nil
	case t.tokens[t.next].Kind == rewrite.Operator:
		operator := t.text(t.next)
		t.next++
		if right := t.expression(); right != nil {
			return &term{kind: termOperator, name: operator, args: []*term{left, right}}
		}
		return nil
	}
	return left
}

// typeNames are the types, as EXPLAIN names them, that more than one word
// names.
var typeNames = [][]string{
	{"timestamp", "with", "time", "zone"},
	{"timestamp", "without", "time", "zone"},
	{"time", "with", "time", "zone"},
	{"time", "without", "time", "zone"},
	{"character", "varying"},
	{"double", "precision"},
}

// cast reads a type after "::". A type with a modifier, an array, or a type of
// the user's is not understood.
func (t *termText) cast(of *term) *term {
	name := t.word(t.next)
	if name == "" {
		return nil
	}
	length := 1
	for _, words := range typeNames {
		matches := true
		for i, word := range words {
			matches = matches && t.word(t.next+i) == word
		}
		if matches {
			name, length = strings.Join(words, " "), len(words)
		}
	}
	t.next += length
	if t.isNext("(") || t.isNext("[") || t.isNext(".") {
		return nil
	}
	if (of.kind == termConstant || of.kind == termNull) && of.typ == "" {
		of.typ = name
		return of
	}
	return &term{kind: termCast, typ: name, args: []*term{of}}
}

// identifier takes an identifier or keyword, as it is without quotes. EXPLAIN
// writes keywords in capitals and quotes an identifier that has any.
func (t *termText) identifier() string {
	text := t.text(t.next)
	t.next++
	if strings.HasPrefix(text, `"`) {
		return strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
	}
	return strings.ToLower(text)
}

func (t *termText) text(i int) string { return t.sql[t.tokens[i].Start:t.tokens[i].End] }

// word returns the bare word at i in lower case, "" if there is none.
func (t *termText) word(i int) string {
	if i >= len(t.tokens) || t.tokens[i].Kind != rewrite.Word {
		return ""
	}
	return strings.ToLower(t.text(i))
}

// is reports whether the token at i is that punctuation.
func (t *termText) is(i int, punctuation string) bool {
	return i < len(t.tokens) && t.tokens[i].Kind == rewrite.Punctuation && t.text(i) == punctuation
}

func (t *termText) isNext(punctuation string) bool { return t.is(t.next, punctuation) }

func (t *termText) take(punctuation string) bool {
	if !t.isNext(punctuation) {
		return false
	}
	t.next++
	return true
}
