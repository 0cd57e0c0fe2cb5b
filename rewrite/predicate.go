package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// maxPredicate bounds a predicate, in bytes: it is stored, compared and logged
// with every refresh.
const maxPredicate = 64 << 10

// PredicateContext is what the columns of a predicate can be qualified by,
// and how its text is read.
type PredicateContext struct {
	Target  Name
	Query   *Span // the flow's query as typed; nil for the WHERE of a REFRESH
	Lexical Lexical
	Catalog Catalog // nil: the database has no operators but PostgreSQL's
}

// TranslatePredicate translates a predicate to PostgreSQL, with the bare names
// of the target's columns, and so that it reads the same under both settings
// of standard_conforming_strings. Put in brackets, it cannot reach out of them.
//
// A column can be qualified by the target, or by a table or alias of the
// query, if the query returns exactly that column; then it becomes the name it
// is returned under. Subqueries are refused. What is left is for Postgres to
// judge: whether the columns exist, whether the expression is boolean.
//
// Locate makes the positions of its errors exact.
func TranslatePredicate(p Span, c PredicateContext) (Translation, error) {
	t, err := newTokenText(p, c.Lexical)
	switch {
	case err != nil:
		return Translation{}, err
	case len(t.tokens) == 0:
		return Translation{}, t.syntaxErrorWithHint(0, "A predicate is needed; true selects every row.")
	case len(p.Text) > maxPredicate:
		return Translation{}, t.fail(0, pgdiag.New("54000", "the predicate is too long").
			WithHint("It may have 65536 bytes; compute the condition in the flow's query and compare its column."))
	}
	for i := range t.tokens {
		if t.word(i) == "select" || t.startsQuery(i) && (i == 0 || t.punctuation(i-1, "(")) {
			return Translation{}, t.fail(i, pgdiag.New("0AKDC", "a predicate cannot hold a subquery").
				WithDetail("DELTA_UNSUPPORTED_SUBQUERY").
				WithHint("Compute the value in the flow's query and compare its column with a constant."))
		}
	}
	if err := t.translateSpellings(c.Catalog); err != nil {
		return Translation{}, err
	}
	t.writeOtherTexts()
	if err := t.resolveQualified(c); err != nil {
		return Translation{}, err
	}
	t.fixBackslashes()
	return t.balancedTranslation()
}

// fixBackslashes makes every string with a backslash an E'…': only that means
// the same whether standard_conforming_strings is on or off.
func (t *tokenText) fixBackslashes() {
	for i, token := range t.tokens {
		text := t.text(i)
		quote := strings.IndexByte(text, '\'')
		if token.Kind != String || !strings.Contains(text, `\`) || quote > 1 || quote == 1 && text[0]|0x20 != 'n' {
			continue
		}
		if !t.edited(i) {
			t.replace(i, i+1, t.withoutBackslashes(text[quote:]))
		}
	}
}

// withoutBackslashes makes a '…' with a backslash an E'…'.
func (t *tokenText) withoutBackslashes(text string) string {
	switch {
	case !strings.Contains(text, `\`):
		return text
	case t.lexical.BackslashEscapes:
		return "E" + text
	}
	return "E" + strings.ReplaceAll(text, `\`, `\\`)
}

// edited says whether token i is replaced already.
func (t *tokenText) edited(i int) bool {
	for _, e := range t.edits {
		if e.order == replacing && e.parts == nil && e.start <= t.tokens[i].Start && t.tokens[i].End <= e.end {
			return true
		}
	}
	return false
}

// PredicateColumns returns the names of the columns that a translated
// predicate refers to, each once, in order. known is false if they cannot be
// told for sure; then the predicate may refer to any.
func PredicateColumns(predicate string) (columns []string, known bool) {
	t, err := newTokenText(Span{Text: predicate}, Lexical{})
	if err != nil || len(t.tokens) == 0 {
		return nil, false
	}
	// Comments go: the parser ends a line comment elsewhere.
	words := make([]string, len(t.tokens))
	for i := range t.tokens {
		words[i] = t.text(i)
	}
	expression, ok := readExpression(strings.Join(words, " "))
	var v columnVisitor
	if !ok || !v.visit(expression) || v.qualified || v.subquery {
		return nil, false
	}
	found := map[string]bool{}
	for _, name := range v.columns {
		if !found[name] {
			found[name] = true
			columns = append(columns, name)
		}
	}
	// The parser knows other keywords. A name that it did not report must be
	// something else beyond doubt.
	reported := map[string]bool{}
	for i := range t.tokens {
		switch {
		case !t.isName(i) || t.isSyntax(i):
		case !found[t.name(i)] || normalForms[t.word(i)]:
			return nil, false
		default:
			reported[t.name(i)] = true
		}
	}
	return columns, len(reported) == len(found)
}

// normalForms are keywords in NORMALIZE, which the parser takes for columns.
var normalForms = wordSet("nfc nfd nfkc nfkd")

// syntaxWords are words that are not reserved and are no column where they
// stand in an expression that the parser has read.
var syntaxWords = wordSet("between escape at time zone local with without is")

// isSyntax says whether the name at i is certainly no column: a keyword, a
// function, a type, a field of EXTRACT or INTERVAL.
func (t *tokenText) isSyntax(i int) bool {
	word := t.word(i)
	switch {
	case t.nameEnd(i) > i && t.punctuation(t.nameEnd(i), "("), t.punctuation(i-1, "."):
		return true // a function
	case t.punctuation(i-1, "::"), t.word(i-1) == "as", t.word(i-1) == "collate":
		return true
	case t.is(i+1, String), t.word(i) == "precision" && t.word(i-1) == "double",
		t.words(i, "double", "precision"), t.word(i) == "varying":
		return true // DATE '…', double precision
	case word == "":
		return false
	case intervalFields[word] && (t.is(i-1, String) || t.word(i-1) == "to"):
		return true
	case t.word(i+1) == "from" && t.punctuation(i-1, "("):
		return true
	}
	return reserved[word] || syntaxWords[word]
}
