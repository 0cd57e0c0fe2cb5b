package server

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// item is one statement of a client's text.
type item struct {
	text  string
	start int               // in bytes, in the client's text
	shift int               // characters in front of it in the client's text
	ours  rewrite.Statement // nil when it is Postgres's

	lexical rewrite.Lexical // as its text is read
}

// script is a client's text, statement by statement.
type script []item

func (sc script) hasOurs() bool {
	for _, i := range sc {
		if i.ours != nil {
			return true
		}
	}
	return false
}

// withoutOurs returns the text with blanks instead of our statements, so that
// positions stay what they are.
func (sc script) withoutOurs(text string) string {
	var b strings.Builder
	from := 0
	for _, i := range sc {
		if i.ours == nil {
			continue
		}
		b.WriteString(text[from:i.start])
		b.WriteString(strings.Repeat(" ", utf8.RuneCountInString(i.text)))
		from = i.start + len(i.text)
	}
	b.WriteString(text[from:])
	return b.String()
}

// controlsTransactions reports that a statement begins or ends a transaction
// block or is about a savepoint.
func (sc script) controlsTransactions() bool {
	for _, i := range sc {
		if i.ours == nil && isTransactionControl(i.text) {
			return true
		}
	}
	return false
}

// isTransactionControl looks at a statement's first words, the names of
// TransactionStmt in PostgreSQL's grammar.
func isTransactionControl(text string) bool {
	switch first, second := firstWords(text); first {
	case "begin", "start", "commit", "end", "rollback", "abort", "savepoint", "release":
		return true
	case "prepare":
		return second == "transaction"
	}
	return false
}

// mayForbidBlocks reports that a statement begins as one of those do that
// cannot run inside a transaction block.
func mayForbidBlocks(text string) bool {
	switch first, second := firstWords(text); first {
	case "alter", "cluster", "create", "discard", "drop", "reindex", "vacuum":
		return true
	case "commit", "rollback":
		return second == "prepared"
	}
	return false
}

// firstWords returns the first two words of a statement, in lower case.
func firstWords(text string) (first, second string) {
	tokens, err := rewrite.Tokens(text, rewrite.Lexical{})
	if err != nil || len(tokens) == 0 {
		return "", ""
	}
	word := func(n int) string {
		if n >= len(tokens) {
			return ""
		}
		return strings.ToLower(text[tokens[n].Start:tokens[n].End])
	}
	return word(0), word(1)
}

// refused is a statement that is meant for us but is not valid.
type refused struct {
	diagnostic *pgdiag.Diagnostic
	from       int // where the statement starts, in characters from 1
}

// read cuts a text into statements and recognises ours.
func (s *session) read(text string) (script, *refused) {
	s.mu.Lock()
	lexical := rewrite.Lexical{BackslashEscapes: s.backslashes}
	unsafe := s.unsafeText
	s.mu.Unlock()
	if unsafe && !isASCII(text) {
		// The bytes of a quote or a backslash may be halves of characters.
		return nil, nil
	}
	var sc script
	for _, span := range rewrite.Split(text, lexical) {
		i := item{text: span.Text, start: span.Offset, shift: rewrite.CharPosition(text, span.Offset) - 1, lexical: lexical}
		statement, err := rewrite.Parse(span.Text, lexical)
		if err != nil {
			return nil, &refused{shifted(diagnose(err), i.shift), i.shift + 1}
		}
		i.ours = statement
		sc = append(sc, i)
	}
	return sc, nil
}

// isASCII reports that a text means the same in every client_encoding.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// diagnose returns err as what a client is told.
func diagnose(err error) *pgdiag.Diagnostic {
	var d *pgdiag.Diagnostic
	if errors.As(err, &d) {
		return d
	}
	return pgdiag.New("XX000", err.Error())
}

// shifted returns d for a text with characters more in front.
func shifted(d *pgdiag.Diagnostic, characters int) *pgdiag.Diagnostic {
	if d.Position == 0 || characters == 0 {
		return d
	}
	moved := *d
	moved.Position += characters
	return &moved
}
