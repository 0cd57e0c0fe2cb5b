// Command splitcheck DIR compares rewrite.Split with PostgreSQL: every script
// for psql in DIR is cut into statements, and a Postgres started for it is asked
// whether each is one statement and no part of one. None may be taken for a
// statement of rwproxy's. The exit status is 1 if there are differences.
//
// It may import rewrite and integration/suites/backend.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/integration/suites/backend"
	"github.com/rwproxy/rwproxy/rewrite"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: splitcheck DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "splitcheck:", err)
		os.Exit(1)
	}
}

// run checks the scripts in dir and prints what it found.
func run(ctx context.Context, dir string) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.sql"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("there is no *.sql in %s", dir)
	}
	return backend.Postgres(ctx, backend.Config{}, func(server backend.Server) error {
		statements, unreadable, differences := 0, 0, 0
		for _, file := range files {
			r, err := checkFile(ctx, server.URL, file)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, difference := range r.differences {
				fmt.Printf("%s: %s\n", filepath.Base(file), difference)
			}
			statements += r.statements
			unreadable += r.unreadable
			differences += len(r.differences)
		}
		fmt.Printf("%d files, %d statements (%d that Postgres cannot read), %d differences\n",
			len(files), statements, unreadable, differences)
		if differences > 0 {
			return errors.New("there are differences")
		}
		return nil
	})
}

// checkFile checks one script in a session of its own.
func checkFile(ctx context.Context, url, file string) (result, error) {
	script, err := os.ReadFile(file)
	if err != nil {
		return result{}, err
	}
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return result{}, err
	}
	defer c.Close(context.WithoutCancel(ctx))
	return check(ctx, c, withoutPsql(string(script)), rewrite.Split)
}
