// Package demo runs the worked examples through a proxy and prints, in plain
// words, what happens: the statements, the notices and the rows before and
// after.
//
// It may import examples, rewrite and pgx.
package demo

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/examples"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Run runs every example on the database at url, which is a proxy's, and
// prints to out. Schemas example_1 to example_4 are dropped first.
func Run(ctx context.Context, out io.Writer, url string) error {
	names, err := fs.Glob(examples.Scripts, "*.sql")
	if err != nil {
		return err
	}
	for i, name := range names {
		script, err := examples.Scripts.ReadFile(name)
		if err != nil {
			return err
		}
		schema := fmt.Sprintf("example_%d", i+1)
		if err := runScript(ctx, out, url, schema, string(script)); err != nil {
			return fmt.Errorf("example %s: %w", name, err)
		}
	}
	return nil
}

func runScript(ctx context.Context, out io.Writer, url, schema, script string) (err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = "rwproxy demo"
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		fmt.Fprintf(out, "  %s:  %s\n", n.Severity, n.Message)
	}
	// A script that has already run leaves its schema; dropping it is no news.
	quiet := config.Copy()
	quiet.OnNotice = nil
	if err := drop(ctx, quiet, schema); err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, s := range steps(script) {
		printWords(out, s.words)
		if s.statement == "" {
			continue
		}
		fmt.Fprintf(out, "\n  %s;\n", strings.ReplaceAll(s.statement, "\n", "\n  "))
		results, err := conn.PgConn().Exec(ctx, s.statement).ReadAll()
		if err != nil {
			return err
		}
		for _, r := range results {
			printResult(out, r)
		}
	}
	return nil
}

func drop(ctx context.Context, config *pgx.ConnConfig, schema string) error {
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "drop schema if exists "+rewrite.QuoteIdentifier(schema)+" cascade")
	return err
}
