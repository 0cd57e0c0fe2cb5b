package demo

import (
	"strings"

	"github.com/rwproxy/rwproxy/rewrite"
)

// step is one statement of a script and the comment in front of it.
type step struct {
	words     []string // lines of the comment
	statement string   // without its semicolon
}

// steps reads a script. How to start it with psql is left out: the demo has
// started it.
func steps(script string) []step {
	var list []step
	end := 0
	for _, span := range rewrite.Split(script, rewrite.Lexical{}) {
		// Whether a comment belongs to the gap or to the statement makes no
		// difference: both lie behind the statement before.
		next := span.Offset + len(span.Text)
		list = append(list, readStep(script[end:next]))
		end = next
	}
	return list
}

func readStep(text string) step {
	var s step
	lines := strings.Split(strings.TrimLeft(text, "; \n"), "\n")
	for len(lines) > 0 {
		line := strings.TrimSpace(lines[0])
		comment, found := strings.CutPrefix(line, "--")
		if !found && line != "" {
			break
		}
		comment = strings.TrimSpace(comment)
		if !strings.Contains(comment, "psql ") && !strings.HasPrefix(comment, "Remove it again") {
			s.words = append(s.words, comment)
		}
		lines = lines[1:]
	}
	s.statement = strings.TrimSpace(strings.Join(lines, "\n"))
	return s
}
