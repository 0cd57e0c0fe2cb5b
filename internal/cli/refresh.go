package cli

import (
	"context"
	_ "embed" // refresh_name.sql
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

type refreshCommand struct {
	Table string `arg:"" name:"table" help:"The streaming table, as SQL writes its name: table or schema.table, in double quotes where SQL needs them."`

	connection `embed:""`

	Where *string `placeholder:"PREDICATE" help:"Replace the rows of this predicate instead of the flow's window."`
	Full  bool    `help:"Delete all rows and load the window."`
	Wait  bool    `help:"Wait until the refresh has ended; the exit status is 1 if it has not completed."`
	JSON  bool    `name:"json" help:"Write JSON: what REFRESH ... ASYNC returns, with --wait the row of rwproxy.refreshes."`
}

//go:embed refresh_name.sql
var refreshNameQuery string

// Run starts a refresh, and with --wait waits for it.
func (c *refreshCommand) Run(ctx context.Context, p *program) error {
	s := notify(ctx)
	defer s.release()
	conn, err := c.open(s.first, p)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	accepted, err := c.start(s.first, conn)
	if err != nil {
		return plain(err)
	}
	switch {
	case c.Wait:
		return c.wait(s.first, p, conn, accepted)
	case c.JSON:
		return printJSON(p.stdout, accepted)
	}
	fmt.Fprintf(p.stdout, "refresh %s of %s is accepted\n", accepted.UpdateID, accepted.table)
	if accepted.StatusURL != nil {
		fmt.Fprintln(p.stdout, *accepted.StatusURL)
	}
	return nil
}

// acceptance is what REFRESH ... ASYNC returns.
type acceptance struct {
	UpdateID  string  `json:"update_id"`
	StatusURL *string `json:"status_url"`

	table string // as SQL writes its name
}

// start has the refresh queued.
func (c *refreshCommand) start(ctx context.Context, conn *pgx.Conn) (acceptance, error) {
	session := pgsession.FromPgx(conn)
	rows, err := session.Query(ctx, refreshNameQuery, c.Table)
	if err != nil {
		return acceptance{}, pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
			if d.Code == "22023" {
				d.Hint = `A table is named as in SQL: a name that is not a plain word needs double quotes, which the shell leaves in within single ones: '"May 2024"'.`
			}
		})
	}
	var name []string
	if err := json.Unmarshal([]byte(rows[0][0].Text), &name); err != nil {
		return acceptance{}, fmt.Errorf("the parts of a name: %w", err)
	}
	for i, part := range name {
		name[i] = rewrite.QuoteIdentifier(part)
	}
	a := acceptance{table: strings.Join(name, ".")}
	rows, err = session.Query(ctx, c.statement(a.table))
	if err != nil {
		return acceptance{}, notRwproxy(err)
	}
	if len(rows) != 1 || len(rows[0]) < 2 {
		return acceptance{}, fmt.Errorf("REFRESH ... ASYNC has not returned what is expected")
	}
	a.UpdateID = rows[0][0].Text
	if url := rows[0][1]; !url.Null {
		a.StatusURL = &url.Text
	}
	return a, nil
}

// statement is the REFRESH of a table. The predicate has lines of its own, so
// that a comment at its end does not reach the rest.
func (c *refreshCommand) statement(table string) string {
	statement := "refresh streaming table " + table
	if c.Full {
		statement += " full"
	}
	if c.Where != nil {
		statement += " where\n" + *c.Where + "\n"
	}
	return statement + " async"
}

// notRwproxy explains the error with which Postgres itself meets a REFRESH of
// ours: at its second word.
func notRwproxy(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Code == "42601" && d.Position == len("refresh ")+1 {
			d.Message = "the server does not know REFRESH STREAMING TABLE"
			d.Hint = "It is PostgreSQL itself: connect to rwproxy, with PGHOST and PGPORT or --dbname."
		}
	})
}
