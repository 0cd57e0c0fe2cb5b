package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/config"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

type verifyCommand struct {
	Tables   []string `arg:"" optional:"" name:"table" help:"The streaming tables, as schema.table or table; all when none is given."`
	JSON     bool     `name:"json" help:"Write JSON instead of a table."`
	Config   *string  `name:"config" placeholder:"FILE" help:"A YAML file with the settings of the proxy ($RWPROXY_CONFIG)."`
	Upstream *string  `name:"upstream" placeholder:"URL" help:"The database that has the tables, a libpq URL or keyword string, with the service connection's user and password ($RWPROXY_UPSTREAM)."`
}

// errNotExact ends a verification that has found something.
var errNotExact = errors.New("not every table holds what its flow would write")

// Run compares the windows of flows with a recompute and prints the outcome.
func (c *verifyCommand) Run(ctx context.Context, p *program) error {
	settings, err := config.Load(config.Flags{Config: c.Config, Upstream: c.Upstream}, p.lookup)
	if err != nil {
		return err
	}
	if settings.Upstream == nil {
		return errors.New("verify needs --upstream: the database that has the tables")
	}
	s := notify(ctx)
	defer s.release()
	verifications, err := verifyUpstream(s.first, settings.Upstream, c.Tables)
	if err != nil {
		return plain(err)
	}
	if c.JSON {
		err = printJSON(p.stdout, verifications)
	} else {
		err = printTable(p.stdout, verifications)
	}
	if err != nil {
		return err
	}
	for _, v := range verifications {
		if !v.Good() {
			return errNotExact
		}
	}
	return nil
}

func verifyUpstream(ctx context.Context, upstream *config.Upstream, tables []string) (verifications []refresh.Verification, err error) {
	service, err := flowstate.NewService(upstream.Service.ConnString())
	if err != nil {
		return nil, err
	}
	defer service.Close()
	err = service.Do(ctx, upstream.Service.Database, func(s pgsession.Session) (err error) {
		verifications, err = refresh.Verify(ctx, s, tables)
		return err
	})
	return verifications, notInstalled(err, upstream.Service.Database)
}

// plain adds to an error's message what it says beyond that.
func plain(err error) error {
	var d *pgdiag.Diagnostic
	if !errors.As(err, &d) {
		return err
	}
	message := d.Message
	for _, more := range []string{d.Detail, d.Hint} {
		if more != "" {
			message = strings.TrimSuffix(message, ".") + ". " + more
		}
	}
	return errors.New(message)
}

func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false) // a window may have < in it
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// printTable prints a line for each table, and after them the rows that differ:
// with + those that are missing, with - those that are too many.
func printTable(out io.Writer, verifications []refresh.Verification) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "table\toutcome\tmissing\textra\treason")
	for _, v := range verifications {
		line := fmt.Sprintf("%s\t%s\t%d\t%d\t%s", printable(v.Table), v.Outcome, v.Missing, v.Extra, printable(v.Reason))
		fmt.Fprintln(table, strings.TrimRight(line, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, v := range verifications {
		if v.Missing+v.Extra == 0 {
			continue
		}
		fmt.Fprintf(out, "\n%s where %s\n", printable(v.Table), printable(v.Window))
		printRows(out, "+", v.MissingRows, v.Missing)
		printRows(out, "-", v.ExtraRows, v.Extra)
	}
	return nil
}

// printRows prints the first rows of one side.
func printRows(out io.Writer, sign string, rows []string, total int64) {
	for _, row := range rows {
		fmt.Fprintln(out, sign, printable(row))
	}
	if total > int64(len(rows)) {
		fmt.Fprintf(out, "%s ... (%d rows in all)\n", sign, total)
	}
}
