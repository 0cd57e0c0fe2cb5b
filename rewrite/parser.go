package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// parser reads the tokens of one statement of ours.
type parser struct {
	sql     string
	lexical Lexical
	tokens  []Token
	i       int    // the next token
	form    string // what a statement of this kind looks like, for hints
}

// newParser reads the tokens of the one statement in sql, semicolons after it
// left out.
func newParser(sql string, o Lexical) (*parser, error) {
	tokens, err := Tokens(sql, o)
	if err != nil {
		return nil, err
	}
	p := &parser{sql: sql, lexical: o, tokens: tokens}
	depth := 0
	for i := range tokens {
		switch {
		case p.symbolAt(i, "("):
			depth++
		case p.symbolAt(i, ")"):
			depth = max(depth-1, 0)
		case p.symbolAt(i, ";") && depth == 0:
			return p, p.endAt(i)
		}
	}
	return p, nil
}

// endAt ends the statement at the semicolon that is token i; only more
// semicolons may follow.
func (p *parser) endAt(i int) error {
	for j := i + 1; j < len(p.tokens); j++ {
		if !p.symbolAt(j, ";") {
			return p.errorAt(j, syntaxErrorCode, "cannot insert multiple commands into a prepared statement", "", "")
		}
	}
	p.tokens = p.tokens[:i]
	return nil
}

// statementText is the statement as typed, without semicolons after it.
func (p *parser) statementText() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.sql[:p.tokens[len(p.tokens)-1].End]
}

// text returns the text of token i, "" past the end.
func (p *parser) text(i int) string {
	if i >= len(p.tokens) {
		return ""
	}
	return p.sql[p.tokens[i].Start:p.tokens[i].End]
}

// span returns the text of the tokens from to end (exclusive).
func (p *parser) span(from, end int) Span {
	start := p.tokens[from].Start
	return Span{Text: p.sql[start:p.tokens[end-1].End], Offset: start}
}

func (p *parser) atEnd() bool { return p.i >= len(p.tokens) }

func (p *parser) kindAt(i int, kind Kind) bool {
	return i < len(p.tokens) && p.tokens[i].Kind == kind
}

// wordsAt reports that the keywords stand at token i.
func (p *parser) wordsAt(i int, keywords ...string) bool {
	for n, keyword := range keywords {
		if !p.kindAt(i+n, Word) || !isKeyword(p.text(i+n), keyword) {
			return false
		}
	}
	return true
}

func (p *parser) symbolAt(i int, symbol string) bool {
	return i < len(p.tokens) && p.text(i) == symbol
}

// accept moves past the keywords if they are next.
func (p *parser) accept(keywords ...string) bool {
	if !p.wordsAt(p.i, keywords...) {
		return false
	}
	p.i += len(keywords)
	return true
}

// acceptSymbol moves past the symbol if it is next.
func (p *parser) acceptSymbol(symbol string) bool {
	if !p.symbolAt(p.i, symbol) {
		return false
	}
	p.i++
	return true
}

// expect moves past the keywords, which must be next.
func (p *parser) expect(keywords ...string) error {
	for n, keyword := range keywords {
		if !p.accept(keyword) {
			return p.expected(p.i, strings.Join(keywords[n:], " "))
		}
	}
	return nil
}

// expectSymbol moves past the symbol, which must be next.
func (p *parser) expectSymbol(symbol string) error {
	if !p.acceptSymbol(symbol) {
		return p.expected(p.i, `"`+symbol+`"`)
	}
	return nil
}

// find returns the first place from i on where the keyword stands, the end if
// there is none.
func (p *parser) find(i int, keyword string) int {
	for i < len(p.tokens) && !p.wordsAt(i, keyword) {
		i++
	}
	return i
}

// position is the character position of token i; past the end, that of the
// character after the statement.
func (p *parser) position(i int) int {
	switch {
	case i < len(p.tokens):
		return CharPosition(p.sql, p.tokens[i].Start)
	case len(p.tokens) > 0:
		return CharPosition(p.sql, p.tokens[len(p.tokens)-1].End)
	}
	return 1
}

// errorAt returns an error that points at token i.
func (p *parser) errorAt(i int, code, message, detail, hint string) *pgdiag.Diagnostic {
	return pgdiag.New(code, message).WithDetail(detail).WithHint(hint).At(p.position(i))
}

// expected returns the syntax error of a statement that has not got what at
// token i.
func (p *parser) expected(i int, what string) *pgdiag.Diagnostic {
	message := "syntax error at end of input: expected " + what
	if i < len(p.tokens) {
		message = `syntax error at or near "` + excerpt(p.text(i)) + `": expected ` + what
	}
	return p.syntaxError(i, message)
}

// syntaxError returns a syntax error at token i with the statement's form as
// its hint.
func (p *parser) syntaxError(i int, message string) *pgdiag.Diagnostic {
	hint := ""
	if p.form != "" {
		hint = "The statement has the form: " + p.form
	}
	return p.errorAt(i, syntaxErrorCode, message, "PARSE_SYNTAX_ERROR", hint)
}

// unsupported returns the error for a clause or statement, at token i, that
// exists in Databricks SQL but not in rwproxy.
func (p *parser) unsupported(i int, what, hint string) *pgdiag.Diagnostic {
	return p.errorAt(i, featureNotSupportedCode, what+" is not supported", "UNSUPPORTED_FEATURE", hint)
}
