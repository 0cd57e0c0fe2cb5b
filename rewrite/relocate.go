package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// Relocated returns an error of t.SQL as one of the statement that t was made
// from: with its place there, 0 for one that comes from nowhere, and where the
// message quotes a word that stands for another one, with that word.
func (t Translation) Relocated(d *pgdiag.Diagnostic, statement string) *pgdiag.Diagnostic {
	if d.Position == 0 {
		return d
	}
	moved := *d
	moved.Position = 0
	if offset := t.Origin(d.Position); offset >= 0 && offset <= len(statement) {
		moved.Position = CharPosition(statement, offset)
		if p, _ := t.pieceAt(d.Position); !p.copied {
			moved.Message = quoting(d.Message, wordAt(statement, offset))
		}
	}
	return &moved
}

// quoting returns the message of a syntax error with another word.
func quoting(message, word string) string {
	const near = ` at or near "`
	start := strings.Index(message, near)
	end := strings.LastIndexByte(message, '"')
	if start < 0 || end < start+len(near) || word == "" {
		return message
	}
	return message[:start+len(near)] + word + message[end:]
}

// wordAt returns the token that begins at an offset, "" if there is none.
func wordAt(statement string, offset int) string {
	l := lexer{sql: statement, pos: offset, backticks: true}
	token, found, err := l.next()
	if err != nil || !found {
		return ""
	}
	return excerpt(statement[token.Start:token.End])
}
