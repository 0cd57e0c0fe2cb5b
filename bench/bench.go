package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// bench is a Postgres with every way to it.
type bench struct {
	options
	folder   string
	postgres *embedded.Postgres
	program  string
	runs     int // of pgbench
}

func newBench(ctx context.Context, o options) (b *bench, err error) {
	folder, err := os.MkdirTemp("", "rwproxy-bench-")
	if err != nil {
		return nil, err
	}
	b = &bench{options: o, folder: folder, program: o.rwproxy}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	// pgbouncer and Postgres may run as another user.
	if err := os.Chmod(folder, 0o755); err != nil {
		return nil, err
	}
	if b.program == "" {
		b.program = filepath.Join(folder, "rwproxy")
		build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.program, "./cmd/rwproxy")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := build.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build rwproxy: %w\n%s", err, output)
		}
	}
	if b.program, err = filepath.Abs(b.program); err != nil {
		return nil, err
	}
	b.postgres, err = embedded.Start(ctx, embedded.Config{
		DataDir: filepath.Join(folder, "data"),
		Trust:   true,
		Settings: map[string]string{
			"fsync":              "off",
			"synchronous_commit": "off",
			"autovacuum":         "off",
			"max_connections":    "400",
			"shared_buffers":     "256MB",
		},
	})
	if err != nil {
		return nil, err
	}
	return b, b.fill(ctx)
}

// fill creates pgbench's tables and one for COPY.
func (b *bench) fill(ctx context.Context) error {
	if err := createDatabase(ctx, b.postgres); err != nil {
		return err
	}
	return b.initialise(ctx)
}

// createDatabase creates the database that everything is measured in.
func createDatabase(ctx context.Context, p *embedded.Postgres) error {
	conn, err := pgconn.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "create database bench").ReadAll()
	return err
}

func (b *bench) close() {
	if b.postgres != nil {
		// The folder goes next, whatever the server says.
		_ = b.postgres.Stop(context.Background())
	}
	os.RemoveAll(b.folder)
}

// ways starts every way to an upstream; rwproxy is the first, the direct one
// the last.
func (b *bench) ways(ctx context.Context, u upstream) (ways []*target, err error) {
	defer func() {
		if err != nil {
			stopAll(ways)
		}
	}()
	t, err := startRwproxy(ctx, "rwproxy", b.program, b.folder, u)
	if err != nil {
		return ways, err
	}
	ways = append(ways, t)
	if b.baseline != "" {
		if t, err = startRwproxy(ctx, "baseline", b.baseline, b.folder, u); err != nil {
			return ways, err
		}
		ways = append(ways, t)
	}
	if t, err = startPgbouncer(ctx, "pgbouncer", b.folder, u); err != nil {
		return ways, err
	}
	ways = append(ways, t)
	if _, missing := exec.LookPath("haproxy"); missing == nil {
		if t, err = startHaproxy(ctx, "haproxy", b.folder, u); err != nil {
			return ways, err
		}
		ways = append(ways, t)
	}
	return append(ways, &target{name: "direct", port: b.postgres.Port()}), nil
}

func stopAll(ways []*target) {
	for _, t := range ways {
		if t.stop != nil {
			t.stop()
		}
	}
}
