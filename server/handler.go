package server

import (
	"context"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Handler runs the statements that Postgres does not know.
type Handler interface {
	// Run runs one statement for a client, on the client's own connection to
	// Postgres. ctx ends when the client or the backend is gone. An error is
	// reported to the client as one ErrorResponse; if it is not a
	// *pgdiag.Diagnostic it becomes an XX000. Its position is in characters of
	// the statement's own text, and 0 in an error of an injected statement
	// whose text the client has not written.
	Run(ctx context.Context, client Client, statement rewrite.Statement) (Outcome, error)
	// Prepare checks a statement that is prepared, if it has parameters or
	// rewrite.IsOursByTarget, and returns the type OIDs of its parameters, as
	// Postgres infers them; Run is given the statement with constants in their
	// place. declared are the types that the client wants, by name, "" for those
	// that it leaves open. It is always joined and changes nothing. An error of a
	// statement that can have no parameters is a 42P02; one without a position is
	// shown at the first parameter.
	Prepare(ctx context.Context, client Client, statement rewrite.Statement, declared []string) ([]uint32, error)
}

// Client is what a handler sees of the client whose statement it runs.
type Client interface {
	// Session runs statements on the client's own connection to Postgres, in
	// the client's session and with its rights. When the statement is joined,
	// an error of one of them fails the client's transaction: every later call
	// returns the same error.
	pgsession.Session
	// Joined reports that the statement runs inside a transaction of the
	// client's (a block, or the implicit one of a pipeline or of a Query with
	// several statements): the handler must neither begin nor end one. When
	// false no transaction is open and the handler may; one that it leaves open
	// is rolled back. One that rewrite.RunsNatively is always joined.
	Joined() bool
	// Notice sends d to the client at once, in order with the relayed messages.
	// Until Run returns any goroutine may call it, while a statement of the
	// session runs too.
	Notice(d *pgdiag.Diagnostic)
	// User and Database are those of the startup message.
	User() string
	Database() string
}

// Outcome is what a client gets for its statement.
type Outcome struct {
	// Forward says that Postgres is now to run the statement's Shadow, whose
	// answer is the client's; Tag and rows are then not used.
	Forward bool
	// Tag is the command tag.
	Tag string
	// Columns and Rows are the result, nil for a statement without one.
	Columns []pgsession.Column
	Rows    []pgsession.Row
}
