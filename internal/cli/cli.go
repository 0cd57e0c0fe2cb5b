package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/rwproxy/rwproxy/internal/config"
)

// program is one run of the program and what it reaches the world through.
type program struct {
	stdout, stderr io.Writer
	lookup         func(string) (string, bool) // of environment variables
	demonstrate    demonstration
}

// commands are the command line's grammar.
type commands struct {
	Serve     serveCommand     `cmd:"" default:"withargs" help:"Run the proxy until a signal (the default)."`
	Demo      demoCommand      `cmd:"" help:"Run Postgres and the proxy with sample tables, and show in plain words what flows do."`
	Flows     flowsCommand     `cmd:"" help:"List the flows of a database."`
	Refreshes refreshesCommand `cmd:"" help:"List the refreshes of a database, and follow those to come."`
	Refresh   refreshCommand   `cmd:"" help:"Refresh a streaming table."`
	Verify    verifyCommand    `cmd:"" help:"Compare what flows have written with a recompute, without writing anything."`
	Token     tokenCommand     `cmd:"" help:"Make a bearer token for the API: print the line for the file of --api-tokens, and on standard error the token."`
	Uninstall uninstallCommand `cmd:"" help:"Remove rwproxy from a database; the tables stay."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

type serveCommand struct {
	config.Flags `embed:""`
}

type demoCommand struct {
	Once         bool `help:"End when everything has been shown, instead of leaving the proxy running."`
	config.Flags `embed:""`
}

type versionCommand struct{}

// Main runs the program with its arguments, without its name, and returns the
// exit status.
func Main(arguments []string) int {
	p := &program{
		stdout:      os.Stdout,
		stderr:      os.Stderr,
		lookup:      os.LookupEnv,
		demonstrate: demonstrate,
	}
	if err := p.run(context.Background(), arguments); err != nil {
		fmt.Fprintln(p.stderr, "rwproxy:", oneLine(err))
		return 1
	}
	return 0
}

// oneLine is an error as the program ends with it. Attempts to connect stand on
// lines of their own below what they have been for.
func oneLine(err error) string {
	return printable(strings.NewReplacer(":\n", ": ", "\n", "; ").Replace(err.Error()))
}

// run parses the command line and runs the command.
func (p *program) run(ctx context.Context, arguments []string) error {
	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("rwproxy"),
		kong.Description("A PostgreSQL proxy that adds streaming tables and REPLACE WHERE flows."),
		kong.Writers(p.stdout, p.stderr),
		kong.Exit(func(int) { helped = true }), // only main may exit
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p),
	)
	if err != nil {
		return err
	}
	command, err := parser.Parse(arguments)
	switch {
	case helped:
		return nil
	case err != nil:
		return fmt.Errorf("%w (see rwproxy --help)", err)
	}
	return command.Run()
}
