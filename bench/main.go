// Command bench measures rwproxy side by side with direct connections,
// pgbouncer and haproxy, and refreshes side by side with what people write by
// hand, and prints Markdown tables of ratios. It starts everything itself;
// docs/performance.md says how to read what it prints.
//
// It may import internal/embedded.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	rwproxy  string // "" builds it
	baseline string // another build of rwproxy to compare with, or ""
	rounds   int
	duration time.Duration // of one measurement
	clients  []int
	modes    []string
	copySize int64 // bytes
	idle     int   // sessions
	busy     int   // sessions
	rows     int64 // of the source of the flows
	only     *regexp.Regexp
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, arguments []string) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	b, err := newBench(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	if err := b.measure(ctx); err != nil {
		return err
	}
	return b.measureFlows(ctx)
}

func parse(arguments []string) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.rwproxy, "rwproxy", "", "the `program` to measure; built when not given")
	flags.StringVar(&o.baseline, "baseline", "", "another rwproxy `program` to measure beside it")
	flags.IntVar(&o.rounds, "rounds", 5, "measurements of each cell, of which the median counts")
	flags.DurationVar(&o.duration, "duration", 3*time.Second, "length of one measurement")
	clients := flags.String("clients", "1,8,32", "numbers of clients")
	modes := flags.String("modes", "simple,extended,prepared", "query modes of pgbench")
	flags.Int64Var(&o.copySize, "copy", 1<<30, "`bytes` of one COPY")
	flags.IntVar(&o.idle, "idle", 5000, "idle sessions")
	flags.IntVar(&o.busy, "busy", 200, "busy sessions whose shares are compared")
	flags.Int64Var(&o.rows, "rows", 5_000_000, "rows of the source of flows")
	only := flags.String("only", "", "a regular `expression`: which cells to measure")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	for _, n := range strings.Split(*clients, ",") {
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 {
			return o, fmt.Errorf("%q is not a number of clients", n)
		}
		o.clients = append(o.clients, count)
	}
	o.modes = strings.Split(*modes, ",")
	var err error
	o.only, err = regexp.Compile(*only)
	return o, err
}
