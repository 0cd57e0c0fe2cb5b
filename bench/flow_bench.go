package main

import (
	"context"
	_ "embed" // the sources
	"fmt"
	"path/filepath"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

//go:embed flows.sql
var sourcesSQL string

// flowBench is a Postgres with the sources of flows, and two ways to it.
type flowBench struct {
	options
	folder   string
	postgres *embedded.Postgres
	proxy    *target
	direct   *session
	hand     *session // as a user's psql
	proxied  *session
	copied   []byte // what a COPY loads
}

// measureFlows prints what refreshes and the capture of changes cost. They have
// a Postgres of their own: it waits for its disk, as one with data that matters
// does.
func (b *bench) measureFlows(ctx context.Context) error {
	if !b.only.MatchString("refresh") && !b.only.MatchString("apply") && !b.only.MatchString("capture") {
		return nil
	}
	f := &flowBench{options: b.options, folder: b.folder}
	defer f.close()
	if err := f.start(ctx, b.program); err != nil {
		return err
	}
	for _, measure := range []struct {
		name string
		run  func(context.Context) error
	}{{"refresh", f.measureRefreshes}, {"apply", f.measureApply}, {"capture", f.measureCapture}} {
		if !b.only.MatchString(measure.name) {
			continue
		}
		if err := measure.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", measure.name, err)
		}
	}
	return nil
}

func (f *flowBench) start(ctx context.Context, program string) (err error) {
	f.postgres, err = embedded.Start(ctx, embedded.Config{
		DataDir: filepath.Join(f.folder, "flows"),
		Trust:   true,
		Settings: map[string]string{
			"autovacuum":     "off",
			"shared_buffers": "1GB",
			"work_mem":       "64MB",
			"max_wal_size":   "16GB",
			"jit":            "off",
			// The CPU time of one backend is read.
			"max_parallel_workers_per_gather": "0",
		},
	})
	if err != nil {
		return err
	}
	direct := &target{name: "direct", port: f.postgres.Port()}
	if err := createDatabase(ctx, f.postgres); err != nil {
		return err
	}
	if f.direct, err = openSession(ctx, direct); err != nil {
		return err
	}
	if f.hand, err = openSession(ctx, direct); err != nil {
		return err
	}
	f.proxy, err = startRwproxy(ctx, "rwproxy", program, f.folder, upstream{"TCP", "127.0.0.1", f.postgres.Port()})
	if err != nil {
		return err
	}
	if f.proxied, err = openSession(ctx, f.proxy); err != nil {
		return err
	}
	if err := f.direct.run(ctx, fmt.Sprintf("set bench.rows = %d", f.rows)); err != nil {
		return err
	}
	return f.direct.run(ctx, sourcesSQL, "vacuum analyze sale, store, product")
}

func (f *flowBench) close() {
	for _, s := range []*session{f.direct, f.hand, f.proxied} {
		if s != nil {
			s.conn.Close(context.Background())
		}
	}
	if f.proxy != nil {
		f.proxy.stop()
	}
	if f.postgres != nil {
		_ = f.postgres.Stop(context.Background()) // its folder goes next
	}
}
