package server

import (
	"errors"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// item is one statement of a client's text.
type item struct {
	text  string
	shift int               // characters in front of it in the client's text
	ours  rewrite.Statement // nil when it is Postgres's
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
	if unsafe {
		// The bytes of a quote or a backslash may be halves of characters.
		return nil, nil
	}
	var sc script
	for _, span := range rewrite.Split(text, lexical) {
		i := item{text: span.Text, shift: rewrite.CharPosition(text, span.Offset) - 1}
		statement, err := rewrite.Parse(span.Text, lexical)
		if err != nil {
			return nil, &refused{shifted(diagnose(err), i.shift), i.shift + 1}
		}
		i.ours = statement
		sc = append(sc, i)
	}
	return sc, nil
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
