package cli

import (
	"fmt"

	"github.com/rwproxy/rwproxy/internal/console"
)

type tokenCommand struct {
	Role string `arg:"" help:"The role that calls with the token act as."`
}

// Run makes a bearer token. The line that makes it known goes to the output, so
// that it can be appended to the file; the token itself is not part of it.
func (c *tokenCommand) Run(p *program) error {
	text, line, err := console.NewToken(c.Role)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(p.stdout, line); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stderr, text)
	return err
}
