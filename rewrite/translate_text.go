package rewrite

import "github.com/rwproxy/rwproxy/internal/pgdiag"

// tokenText is a text that is being translated: its tokens, the brackets among
// them, and the edits found so far. Places in it are token indexes.
type tokenText struct {
	sql     string
	offset  int // of sql in the statement, in bytes
	tokens  []Token
	partner []int // of a bracket the index of its other half, of another token -1
	edits   []edit
	// exceptWidths are the numbers of columns that SELECT * EXCEPT leaves, by
	// the place of the item.
	exceptWidths map[int]int
	lexical      Lexical
	dialect      Dialect
	// ownOperators and ownFunctions are those of the database that have a name
	// of Databricks'.
	ownOperators, ownFunctions map[string]bool
	// chains and comparisonEnds are those that were read, by where they begin.
	chains         map[int]endedChain
	comparisonEnds map[int]int
	compared       map[int]int // comparisons by <=>, by where their left operand begins
	// texts are the operands of which Databricks makes texts, until they are
	// written.
	texts []textOperand
	// doubleQuoted says of each token whether it is a string in double quotes.
	doubleQuoted []bool // nil: not known yet
}

// maxNesting bounds the brackets inside one another. Finding what belongs
// together costs time for each level, and the time is that of all sessions.
const maxNesting = 1000

// tooLong refuses a chain of operators each of which becomes a bracket around
// all before it.
func (t *tokenText) tooLong(i int) *PlacedError {
	return t.fail(i, pgdiag.New("54001", "the chain of operators is too long").
		WithHint("It may have 1000 operators; put brackets around parts of it."))
}

// newTokenText refuses a text that is not one balanced piece of SQL: a
// semicolon, or a bracket without its other half, would let it end what it is
// put into.
func newTokenText(s Span, o Lexical) (*tokenText, error) {
	t := &tokenText{sql: s.Text, offset: s.Offset, lexical: o, dialect: o.Dialect}
	tokens, err := Tokens(s.Text, o)
	if err != nil {
		return nil, t.inText(err)
	}
	t.tokens = tokens
	t.partner = make([]int, len(tokens))
	var open []int
	for i := range tokens {
		t.partner[i] = -1
		switch text := t.text(i); {
		case tokens[i].Kind != Punctuation:
		case text == ";", text == "." && (i == 0 || t.is(i-1, Operator)): // what follows is no label
			return nil, t.syntaxError(i)
		case text == "(" || text == "[":
			if open = append(open, i); len(open) > maxNesting {
				return nil, t.fail(i, pgdiag.New("54001", "the text is nested too deeply").
					WithHint("It may have 1000 brackets inside one another."))
			}
		case text == ")" || text == "]":
			if len(open) == 0 || t.text(open[len(open)-1]) != bracketPairs[text] {
				return nil, t.syntaxError(i)
			}
			t.partner[i] = open[len(open)-1]
			t.partner[t.partner[i]] = i
			open = open[:len(open)-1]
		}
	}
	if len(open) > 0 {
		return nil, t.syntaxErrorWithHint(open[len(open)-1], "This bracket is not closed.")
	}
	return t, nil
}

var bracketPairs = map[string]string{")": "(", "]": "["}

// text returns token i as written, "" past the end.
func (t *tokenText) text(i int) string {
	if i < 0 || i >= len(t.tokens) {
		return ""
	}
	return t.sql[t.tokens[i].Start:t.tokens[i].End]
}

func (t *tokenText) is(i int, k Kind) bool {
	return i >= 0 && i < len(t.tokens) && t.tokens[i].Kind == k
}

// punctuation says whether token i is the punctuation p.
func (t *tokenText) punctuation(i int, p string) bool {
	return t.is(i, Punctuation) && t.text(i) == p
}

// operator says whether token i is the operator o.
func (t *tokenText) operator(i int, o string) bool {
	return t.is(i, Operator) && t.text(i) == o
}

// word returns token i in lower case if it is a bare word, and not the label
// behind a dot, where PostgreSQL takes keywords as names; "" otherwise.
func (t *tokenText) word(i int) string {
	if !t.is(i, Word) || t.punctuation(i-1, ".") {
		return ""
	}
	return foldASCII(t.text(i))
}

// words says whether the tokens from i on are the given words.
func (t *tokenText) words(i int, words ...string) bool {
	for k, w := range words {
		if t.word(i+k) != w {
			return false
		}
	}
	return true
}

// isName says whether token i is an identifier or a word.
func (t *tokenText) isName(i int) bool {
	return t.is(i, Word) || t.is(i, QuotedIdentifier) || t.is(i, Backtick)
}

// name returns the identifier that token i stands for.
func (t *tokenText) name(i int) string {
	text := t.text(i)
	switch {
	case t.is(i, QuotedIdentifier) && text[0] == '"':
		return cutIdentifier(unquote(text, '"'))
	case t.is(i, Backtick):
		return cutIdentifier(backtickName(text))
	case t.is(i, Word):
		return cutIdentifier(foldASCII(text))
	default: // U&"…": Postgres decodes it, we compare it with nothing
		return text
	}
}

// nameEnd returns the place after the dotted name at i; i if there is none.
func (t *tokenText) nameEnd(i int) int {
	if !t.isName(i) {
		return i
	}
	for i++; t.punctuation(i, ".") && t.isName(i+1); i += 2 {
	}
	return i
}

// dottedName returns the parts of the name in [i, end).
func (t *tokenText) dottedName(i, end int) []string {
	var parts []string
	for ; i < end; i += 2 {
		parts = append(parts, t.name(i))
	}
	return parts
}

// skip returns the place after token i, or after the bracket that i opens.
func (t *tokenText) skip(i int) int {
	if t.partner[i] > i {
		return t.partner[i] + 1
	}
	return i + 1
}

// startsQuery says whether a query begins at i. VALUES can be a column's name.
func (t *tokenText) startsQuery(i int) bool {
	switch t.word(i) {
	case "select", "with", "table":
		return true
	case "values":
		return t.punctuation(i+1, "(")
	}
	return false
}

// replace replaces the tokens of [from, to).
func (t *tokenText) replace(from, to int, replacement string) {
	t.replaceBytes(t.tokens[from].Start, t.tokens[to-1].End, replacement)
}

// replaceBytes replaces sql[start:end], with blanks where the replacement, or
// one neighbour without it, would run into the other.
func (t *tokenText) replaceBytes(start, end int, replacement string) {
	switch {
	case replacement == "" && start > 0 && end < len(t.sql) && runsInto(t.sql[start-1], t.sql[end]):
		replacement = " "
	case replacement != "":
		if start > 0 && runsInto(t.sql[start-1], replacement[0]) {
			replacement = " " + replacement
		}
		if end < len(t.sql) && runsInto(replacement[len(replacement)-1], t.sql[end]) {
			replacement += " "
		}
	}
	t.edits = append(t.edits, edit{start: start, end: end, replacement: replacement, order: replacing})
}

// runsInto says whether two bytes side by side may belong to one token.
func runsInto(a, b byte) bool {
	inName := func(c byte) bool { return isIdentifierPart(c) || c == '"' || c == '\'' || c == '&' }
	return inName(a) && inName(b) || isOperatorCharacter(a) && isOperatorCharacter(b)
}

// insertBefore puts text in front of token i.
func (t *tokenText) insertBefore(i int, text string) {
	start := t.tokens[i].Start
	t.edits = append(t.edits, edit{start: start, end: start, replacement: text, order: insertedBefore, far: start})
}

// insertAfter puts text behind token i.
func (t *tokenText) insertAfter(i int, text string) {
	end := t.tokens[i].End
	t.edits = append(t.edits, edit{start: end, end: end, replacement: text, order: insertedAfter, far: end})
}

// wrap puts text in front of and behind r; what wraps more is outside.
func (t *tokenText) wrap(r tokenRange, before, after string) {
	start, end, n := t.tokens[r.from].Start, t.tokens[r.to-1].End, len(t.edits)
	t.edits = append(t.edits,
		edit{start: start, end: start, replacement: before, order: insertedBefore, far: end, sequence: n},
		edit{start: end, end: end, replacement: after, order: insertedAfter, far: start, sequence: n})
}

// wrapInCall is wrap with a call that stands for token i: what is wrong with it
// is wrong there.
func (t *tokenText) wrapInCall(i int, r tokenRange, before, after string) {
	t.wrap(r, before, after)
	t.edits[len(t.edits)-2].standsFor = t.tokens[i].Start + 1
}

// rebuild replaces the tokens of r by parts: texts, and token ranges of r that
// keep their own edits.
func (t *tokenText) rebuild(r tokenRange, parts ...any) {
	t.edits = append(t.edits, edit{start: t.tokens[r.from].Start, end: t.tokens[r.to-1].End, order: replacing, parts: t.parts(parts)})
}

// parts makes parts of texts and token ranges.
func (t *tokenText) parts(parts []any) []part {
	list := []part{}
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			list = append(list, part{text: p})
		case tokenRange:
			if !p.empty() {
				list = append(list, part{from: t.tokens[p.from].Start, to: t.tokens[p.to-1].End})
			}
		}
	}
	return list
}

// insertParts puts parts behind token i.
func (t *tokenText) insertParts(i int, parts ...any) {
	end := t.tokens[i].End
	t.edits = append(t.edits, edit{start: end, end: end, order: insertedAfter, far: end, parts: t.parts(parts)})
}

// wrapParts is wrap with parts in front.
func (t *tokenText) wrapParts(r tokenRange, before []any, after string) {
	t.wrap(r, "", after)
	t.edits[len(t.edits)-2].parts = t.parts(before)
}

// translation applies the edits to the text from its first to its last token;
// comments around it are dropped.
func (t *tokenText) translation() Translation {
	sortEdits(t.edits)
	var b translationBuilder
	if n := len(t.tokens); n > 0 {
		b.edited(t.sql, t.offset, t.edits, t.tokens[0].Start, t.tokens[n-1].End)
	}
	return b.translation()
}

// balancedTranslation is translation, but refuses a text that has become
// unbalanced: it could end what it is put into. That happens to what PostgreSQL
// would refuse, such as a SELECT in the middle of another one.
func (t *tokenText) balancedTranslation() (Translation, error) {
	translation := t.translation()
	if !isBalanced(translation.SQL, t.lexical) {
		return Translation{}, t.syntaxErrorWithHint(0, "Put brackets around its parts.")
	}
	return translation, nil
}

// isBalanced says whether all that is opened in a text is closed in it.
func isBalanced(sql string, o Lexical) bool {
	tokens, err := Tokens(sql, o)
	var open []string
	for _, token := range tokens {
		switch text := sql[token.Start:token.End]; text {
		case "(", "[":
			open = append(open, text)
		case ")", "]":
			if len(open) == 0 || open[len(open)-1] != bracketPairs[text] {
				return false
			}
			open = open[:len(open)-1]
		}
	}
	return err == nil && len(open) == 0
}

// inText gives an error of Tokens its place in the statement.
func (t *tokenText) inText(err error) error {
	d, ok := err.(*pgdiag.Diagnostic) //nolint:errorlint // Tokens wraps nothing
	if !ok {
		return err
	}
	return t.at(d, max(byteOffset(t.sql, d.Position), 0))
}

// fail gives an error the place of token i.
func (t *tokenText) fail(i int, d *pgdiag.Diagnostic) *PlacedError {
	if i >= len(t.tokens) {
		return t.at(d, len(t.sql))
	}
	return t.at(d, t.tokens[i].Start)
}

func (t *tokenText) at(d *pgdiag.Diagnostic, offset int) *PlacedError {
	d.Position = t.offset + CharPosition(t.sql, offset)
	return &PlacedError{Diagnostic: d, Offset: t.offset + offset}
}

func (t *tokenText) syntaxErrorWithHint(i int, hint string) *PlacedError {
	err := t.syntaxError(i)
	err.Hint = hint
	return err
}

func (t *tokenText) syntaxError(i int) *PlacedError {
	if i >= len(t.tokens) {
		return t.fail(i, pgdiag.New(syntaxErrorCode, "syntax error at end of input"))
	}
	return t.fail(i, pgdiag.New(syntaxErrorCode, `syntax error at or near "`+excerpt(t.text(i))+`"`))
}
