package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// scale is pgbench's: 100,000 accounts each, which fit into memory.
const scale = 10

// cell is one thing that is measured, on every way.
type cell struct {
	name string
	// run does it once and returns how much was done, in how long.
	run func(ctx context.Context, t *target) (units float64, took time.Duration, err error)
}

// cells are those that the options ask for.
func (b *bench) cells() []cell {
	var all []cell
	for _, mode := range b.modes {
		for _, clients := range b.clients {
			name := fmt.Sprintf("select, %s, %d", mode, clients)
			all = append(all, cell{name, b.pgbench(clients, "-S", "-M", mode)})
		}
	}
	all = append(all,
		cell{"TPC-B, prepared, 8", b.pgbench(8, "-M", "prepared")},
		cell{"connect and select, 8", b.pgbench(8, "-S", "-C")},
		cell{"COPY OUT", b.copyOut},
		cell{"COPY IN", b.copyIn},
	)
	var chosen []cell
	for _, c := range all {
		if b.only.MatchString(c.name) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

func (b *bench) initialise(ctx context.Context) error {
	output, err := exec.CommandContext(ctx, "pgbench", "-i", "-q", "-s", strconv.Itoa(scale), "-h", "127.0.0.1",
		"-p", strconv.Itoa(b.postgres.Port()), "-U", "postgres", "bench").CombinedOutput()
	if err != nil {
		return fmt.Errorf("pgbench -i: %w\n%s", err, output)
	}
	return nil
}

var processed = regexp.MustCompile(`number of transactions actually processed: (\d+)`)

// pgbench returns a run of pgbench, whose unit is a transaction.
func (b *bench) pgbench(clients int, arguments ...string) func(context.Context, *target) (float64, time.Duration, error) {
	return func(ctx context.Context, t *target) (float64, time.Duration, error) {
		all := append([]string{
			"-n", "-h", "127.0.0.1", "-p", strconv.Itoa(t.port), "-U", "postgres",
			"-c", strconv.Itoa(clients), "-T", strconv.Itoa(max(1, int(b.duration.Seconds()))),
		}, arguments...)
		started := time.Now()
		output, err := exec.CommandContext(ctx, "pgbench", append(all, "bench")...).CombinedOutput()
		took := time.Since(started)
		if err != nil {
			return 0, 0, fmt.Errorf("pgbench: %w\n%s", err, output)
		}
		match := processed.FindSubmatch(output)
		if match == nil {
			return 0, 0, fmt.Errorf("pgbench said\n%s", output)
		}
		units, err := strconv.ParseFloat(string(match[1]), 64)
		return units, took, err
	}
}

func (t *target) connect(ctx context.Context) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/bench?sslmode=disable", t.port))
}

const mebibyte = 1 << 20

// copyOut reads rows of 100 bytes that Postgres makes up. The unit is 1 MiB.
func (b *bench) copyOut(ctx context.Context, t *target) (float64, time.Duration, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(ctx)
	started := time.Now()
	_, err = conn.CopyTo(ctx, io.Discard, fmt.Sprintf("copy (select repeat('x', 99) from generate_series(1, %d)) to stdout", b.copySize/100))
	return float64(b.copySize) / mebibyte, time.Since(started), err
}

// copyIn sends rows of 100 bytes, which Postgres reads and drops.
func (b *bench) copyIn(ctx context.Context, t *target) (float64, time.Duration, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create temporary table sink (line text)").ReadAll(); err != nil {
		return 0, 0, err
	}
	started := time.Now()
	_, err = conn.CopyFrom(ctx, &lines{left: b.copySize}, "copy sink from stdin where false")
	return float64(b.copySize) / mebibyte, time.Since(started), err
}

// lines reads as lines of 100 bytes.
type lines struct {
	left int64
	at   int // in the line
}

func (l *lines) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, io.EOF
	}
	if int64(len(b)) > l.left {
		b = b[:l.left]
	}
	for i := range b {
		b[i] = 'x'
		if l.at++; l.at == 100 {
			b[i], l.at = '\n', 0
		}
	}
	l.left -= int64(len(b))
	return len(b), nil
}

// once measures a cell on one way.
func (c cell) once(ctx context.Context, t *target) (s sample, err error) {
	before, err := cpuTime(t.pid)
	if err != nil {
		return s, err
	}
	units, took, err := c.run(ctx, t)
	if err != nil {
		return s, fmt.Errorf("%s by %s: %w", c.name, t.name, err)
	}
	after, err := cpuTime(t.pid)
	if err != nil {
		return s, err
	}
	if units == 0 {
		return s, errors.New("nothing was done")
	}
	return sample{units / took.Seconds(), (after - before).Seconds() / units}, nil
}
