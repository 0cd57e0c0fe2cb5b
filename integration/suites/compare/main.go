// Command compare runs test suites of other projects against a new Postgres,
// directly and through rwproxy, and prints which of their tests come out
// differently. Arguments are the names of suites; without one all are run. The
// exit status is 1 if there are differences, or a suite could not be run.
//
// It may import integration/suites/backend.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// run runs the suites that the arguments name, and prints the table.
func run(ctx context.Context, arguments []string) error {
	flags := flag.NewFlagSet("compare", flag.ContinueOnError)
	program := flags.String("rwproxy", "bin/rwproxy", "the `program` to compare with a direct connection")
	scripts := flags.String("scripts", "integration/suites", "the `folder` of the suites' scripts")
	output := flags.String("output", "", "a `folder` that keeps what the suites print; else it is removed")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	r := &runner{prepared: map[string]string{}}
	if r.program, err = filepath.Abs(*program); err != nil {
		return err
	}
	if r.scripts, err = filepath.Abs(*scripts); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "rwproxy-suites-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	r.output = filepath.Join(r.work, "output")
	if *output != "" {
		if r.output, err = filepath.Abs(*output); err != nil {
			return err
		}
	}
	// The server's user reads sources there.
	if err := os.Chmod(r.work, 0o755); err != nil {
		return err
	}
	var reports []report
	for _, s := range chosen {
		reports = append(reports, r.compare(ctx, s))
	}
	printReports(os.Stdout, reports)
	return verdict(reports)
}
