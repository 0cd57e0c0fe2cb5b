package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// scale is pgbench's: 100,000 accounts each, which fit into memory.
const scale = 10

func (b *bench) initialise(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, "pgbench", "-i", "-q", "-s", strconv.Itoa(scale), "-h", "127.0.0.1",
		"-p", strconv.Itoa(b.postgres.Port()), "-U", "postgres", "bench").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgbench -i: %w\n%s", err, output)
	}
	return nil
}

var (
	processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)
	perSecond = regexp.MustCompile(`tps = ([\d.]+)`)
)

// errTooShort says that a run was over before it had begun.
var errTooShort = errors.New("the clients needed all of the time to connect")

// pgbench returns a run of pgbench, whose unit is a transaction.
func (b *bench) pgbench(clients int, arguments ...string) func(context.Context, *target, func() error) (float64, error) {
	return func(ctx context.Context, t *target, begin func() error) (rate float64, err error) {
		// pgbench's time counts from its start, connecting included.
		for seconds := max(1, int(b.duration.Seconds())); seconds < 100; seconds *= 2 {
			rate, err = b.pgbenchFor(ctx, seconds, clients, arguments, t, begin)
			if err != errTooShort {
				return rate, err
			}
		}
		return 0, err
	}
}

func (b *bench) pgbenchFor(ctx context.Context, seconds, clients int, arguments []string, t *target, begin func() error) (float64, error) {
	b.runs++
	name := fmt.Sprintf("pgbench %d", b.runs)
	command := exec.CommandContext(ctx, "pgbench", append([]string{
		"-n", "-h", "127.0.0.1", "-p", strconv.Itoa(t.port), "-U", "postgres",
		"-c", strconv.Itoa(clients), "-T", strconv.Itoa(seconds), "bench",
	}, arguments...)...)
	command.Env = append(os.Environ(), "PGAPPNAME="+name)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()

	err := b.awaitClients(ctx, name, clients, slices.Contains(arguments, "-C"), ended)
	if err == nil {
		err = begin()
	}
	if outcome := <-ended; outcome != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", outcome, output.String())
	}
	if err != nil {
		return 0, err
	}
	if match := processed.FindSubmatch(output.Bytes()); match == nil || string(match[1]) == "0" {
		return 0, errTooShort
	}
	match := perSecond.FindSubmatch(output.Bytes())
	if match == nil {
		return 0, fmt.Errorf("pgbench said\n%s", output.String())
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

// awaitClients waits until every client of a pgbench has a statement of its
// script behind it, unless they connect for each.
func (b *bench) awaitClients(ctx context.Context, name string, clients int, reconnecting bool, ended chan error) error {
	if reconnecting {
		return nil
	}
	conn, err := pgconn.Connect(ctx, b.postgres.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	// Only the script's statements are written in capitals.
	count := fmt.Sprintf("select count(*) from pg_stat_activity where application_name = '%s' and query ~ '^[A-Z]'", name)
	for {
		results, err := conn.Exec(ctx, count).ReadAll()
		if err != nil {
			return err
		}
		if n := string(results[0].Rows[0][0]); n == strconv.Itoa(clients) {
			return nil
		}
		select {
		case outcome := <-ended:
			ended <- outcome
			return errTooShort
		case <-time.After(time.Millisecond):
		}
	}
}
