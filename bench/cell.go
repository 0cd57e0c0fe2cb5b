package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// cell is one thing that is measured, on every way.
type cell struct {
	name string
	// run does it once and returns how much is done in a second. It calls begin
	// when what comes before is over: from then on the proxy's CPU time counts.
	run func(ctx context.Context, t *target, begin func() error) (rate float64, err error)
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

func (t *target) connect(ctx context.Context) (*pgconn.PgConn, error) {
	return pgconn.Connect(ctx, fmt.Sprintf("postgres://postgres@127.0.0.1:%d/bench?sslmode=disable", t.port))
}

const mebibyte = 1 << 20

// copyOut reads rows of 100 bytes that Postgres makes up. The unit is 1 MiB.
func (b *bench) copyOut(ctx context.Context, t *target, begin func() error) (float64, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if err := begin(); err != nil {
		return 0, err
	}
	started := time.Now()
	_, err = conn.CopyTo(ctx, io.Discard, fmt.Sprintf("copy (select repeat('x', 99) from generate_series(1, %d)) to stdout", b.copySize/100))
	return float64(b.copySize) / mebibyte / time.Since(started).Seconds(), err
}

// copyIn sends rows of 100 bytes, which Postgres reads and drops.
func (b *bench) copyIn(ctx context.Context, t *target, begin func() error) (float64, error) {
	conn, err := t.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create temporary table sink (line text)").ReadAll(); err != nil {
		return 0, err
	}
	if err := begin(); err != nil {
		return 0, err
	}
	started := time.Now()
	_, err = conn.CopyFrom(ctx, &lines{left: b.copySize}, "copy sink from stdin where false")
	return float64(b.copySize) / mebibyte / time.Since(started).Seconds(), err
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
func (c cell) once(ctx context.Context, t *target) (sample, error) {
	var began time.Time
	var before time.Duration
	rate, err := c.run(ctx, t, func() (err error) {
		began = time.Now()
		before, err = cpuTime(t.pid)
		return err
	})
	if err != nil {
		return sample{}, fmt.Errorf("%s by %s: %w", c.name, t.name, err)
	}
	counted := time.Since(began)
	after, err := cpuTime(t.pid)
	if err != nil {
		return sample{}, err
	}
	return sample{rate, (after - before).Seconds() / (rate * counted.Seconds())}, nil
}
