package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"golang.org/x/term"

	"github.com/rwproxy/rwproxy/internal/config"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// connection says which database a client command asks, as psql is told.
type connection struct {
	Database string `name:"dbname" short:"d" placeholder:"NAME|URL" help:"The database, or a libpq URL or keyword string. What it leaves out comes from PGHOST, PGPORT, PGUSER and the other variables, the password file and the service file, as with psql."`
}

// conninfo returns what the flag says as a connection string.
func (c connection) conninfo() string {
	for _, form := range []string{"postgres://", "postgresql://"} {
		if strings.HasPrefix(c.Database, form) {
			return c.Database
		}
	}
	if c.Database == "" || strings.Contains(c.Database, "=") {
		return c.Database
	}
	return "dbname='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(c.Database) + "'"
}

// open connects as the user that the flag and the environment name. The
// password is asked for where one is needed, on a terminal.
func (c connection) open(ctx context.Context, p *program) (*pgx.Conn, error) {
	settings, err := config.ParseConnection(c.conninfo())
	if err != nil {
		return nil, fmt.Errorf("--dbname: %w", err)
	}
	if _, given := settings.RuntimeParams["application_name"]; !given {
		settings.RuntimeParams["application_name"] = "rwproxy client"
	}
	settings.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		fmt.Fprintf(p.stderr, "%s:  %s\n", n.Severity, printable(n.Message))
	}
	conn, err := pgx.ConnectConfig(ctx, settings)
	if err != nil && settings.Password == "" && wantsPassword(err) && term.IsTerminal(int(os.Stdin.Fd())) {
		settings.Password, err = askPassword(ctx, p.stderr, settings.User)
		if err != nil {
			return nil, err
		}
		conn, err = pgx.ConnectConfig(ctx, settings)
	}
	return conn, err
}

// wantsPassword reports whether a login failed for want of a password.
func wantsPassword(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == "28P01"
}

// askPassword reads a password from the terminal, which shows none of it: it
// has stopped to echo what is typed before it asks.
func askPassword(ctx context.Context, out io.Writer, user string) (string, error) {
	descriptor := int(os.Stdin.Fd())
	before, err := term.MakeRaw(descriptor)
	if err != nil {
		return "", err
	}
	type answer struct {
		password string
		err      error
	}
	answered := make(chan answer, 1)
	go func() {
		terminal := term.NewTerminal(struct {
			io.Reader
			io.Writer
		}{os.Stdin, out}, "")
		password, err := terminal.ReadPassword("Password for user " + printable(user) + ": ")
		answered <- answer{password, err}
	}()
	var a answer
	select {
	case a = <-answered:
	case <-ctx.Done():
		a.err = io.EOF
	}
	err = term.Restore(descriptor, before)
	if errors.Is(a.err, io.EOF) { // also Ctrl-C, which is no signal meanwhile
		fmt.Fprintln(out)
		a.err = errors.New("interrupted")
	}
	return a.password, errors.Join(a.err, err)
}

// query runs a query whose first column is a JSON object, the same that --json
// prints.
func query(ctx context.Context, conn *pgx.Conn, sql string, args ...any) ([]pgsession.Row, error) {
	rows, err := pgsession.FromPgx(conn).Query(ctx, sql, args...)
	return rows, notInstalled(err, conn.Config().Database)
}

// notInstalled explains an error that says that there is no schema rwproxy.
func notInstalled(err error, database string) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Code == "42P01" && strings.Contains(d.Message, `"rwproxy.`) {
			d.Message = fmt.Sprintf("rwproxy is not installed in database %q", database)
			d.Hint = "It is with the first streaming table that is created in it through rwproxy."
		}
	})
}

// printObjects prints the JSON objects of rows as one array.
func printObjects(out io.Writer, rows []pgsession.Row) error {
	objects := make([]json.RawMessage, len(rows))
	for i, row := range rows {
		objects[i] = json.RawMessage(row[0].Text)
	}
	return printJSON(out, objects)
}
