package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// captureRows are in a table before it is measured.
const captureRows = 100_000

// copyRows are loaded by one COPY.
const copyRows = 1_000_000

// captured are a table whose changes are recorded, one whose changes wake a
// trigger as well, and one that no flow reads.
var captured = []string{"tracked", "triggered", "untracked"}

// write is something that is measured on each.
type write struct {
	name   string
	script string // of pgbench; "" for a COPY
}

var writes = []write{
	{"insert", `insert into %s values (nextval('sale_id'), '2026-04-01', :n %% 2000, :n %% 10000, :n)`},
	{"update", `update %s set amount = amount + 1 where id = :n`},
	{"copy", ""},
}

// measureCapture compares writes to a source with those to a table that no flow
// reads.
func (f *flowBench) measureCapture(ctx context.Context) error {
	if err := f.createCaptured(ctx); err != nil {
		return err
	}
	f.copied = salesToCopy()
	fmt.Printf("\nWrites to a source of two flows, 8 clients; medians of %d alternating rounds.\n\n", f.rounds)
	fmt.Println("| statement | tracked | triggered | untracked | tracked/untracked | triggered/tracked | log of one COPY |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- |")
	for _, w := range writes {
		rates := map[string][]float64{}
		var log int64
		for round := range f.rounds {
			for i := range captured {
				table := captured[(i+round)%len(captured)]
				before, err := f.logSize(ctx)
				if err != nil {
					return err
				}
				rate, err := f.write(ctx, w, table)
				if err != nil {
					return err
				}
				after, err := f.logSize(ctx)
				if err != nil {
					return err
				}
				log = max(log, after-before)
				rates[table] = append(rates[table], rate)
			}
			fmt.Fprintf(os.Stderr, "capture %s: round %d of %d\n", w.name, round+1, f.rounds)
		}
		tracked, triggered, untracked := medianOf(rates["tracked"]), medianOf(rates["triggered"]), medianOf(rates["untracked"])
		size := "–"
		if w.script == "" {
			size = fmt.Sprintf("%.0f KiB", float64(log)/1024)
		}
		fmt.Printf("| %s | %.0f rows/s | %.0f rows/s | %.0f rows/s | %.2f | %.2f | %s |\n",
			w.name, tracked, triggered, untracked, tracked/untracked, triggered/tracked, size)
	}
	return nil
}

func (f *flowBench) createCaptured(ctx context.Context) error {
	if err := f.direct.run(ctx, "create sequence sale_id start 1000000000 cache 1000"); err != nil {
		return err
	}
	for _, table := range captured {
		if err := f.direct.run(ctx,
			fmt.Sprintf("create table %s (like sale including all)", table),
			fmt.Sprintf("insert into %s select n, '2026-04-01', n %% 2000, n %% 10000, 1 from generate_series(1, %d) as n", table, captureRows),
			"vacuum analyze "+table); err != nil {
			return err
		}
	}
	for _, name := range []string{"day", "store"} {
		for table, clause := range map[string]string{"tracked": "", "triggered": "trigger on update at most every interval 1 day"} {
			err := f.proxied.run(ctx, fmt.Sprintf(
				"create streaming table %[2]s_%[1]s %[3]s flow replace where %[1]s is not null by name select %[1]s, sum(amount) as amount from %[2]s group by %[1]s",
				name, table, clause))
			if err != nil {
				return err
			}
		}
	}
	return f.fireTriggers(ctx)
}

// fireTriggers has the triggers fire for the first time: then they wait for a
// day, and what is measured is what a commit costs that notifies.
func (f *flowBench) fireTriggers(ctx context.Context) error {
	if err := f.direct.run(ctx, "update triggered set amount = amount + 1 where id = 1"); err != nil {
		return err
	}
	for {
		done, err := f.direct.number(ctx, "select count(*) from rwproxy.refreshes where cause = 'trigger' and state = 'COMPLETED'")
		if err != nil || done == 2 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// logSize is that of the logs of all sources, in bytes.
func (f *flowBench) logSize(ctx context.Context) (int64, error) {
	return f.direct.number(ctx, `
		select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
		  from pg_class c where c.relnamespace = 'rwproxy_log'::regnamespace and c.relkind = 'r'`)
}

// write does it once and returns rows per second.
func (f *flowBench) write(ctx context.Context, w write, table string) (float64, error) {
	if w.script == "" {
		return f.copyInto(ctx, table)
	}
	file := filepath.Join(f.folder, "script.sql")
	script := fmt.Sprintf("\\set n random(1, %d)\n%s;\n", captureRows, fmt.Sprintf(w.script, table))
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		return 0, err
	}
	output, err := exec.CommandContext(ctx, "pgbench", "-n", "-h", "127.0.0.1", "-p", strconv.Itoa(f.postgres.Port()), "-U", "postgres",
		"-c", "8", "-T", strconv.Itoa(max(1, int(f.duration.Seconds()))), "-M", "prepared", "-f", file, "bench").CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("pgbench: %w\n%s", err, output)
	}
	match := perSecond.FindSubmatch(output) // without the time to connect
	if match == nil {
		return 0, fmt.Errorf("pgbench said\n%s", output)
	}
	return strconv.ParseFloat(string(match[1]), 64)
}

// firstCopied is the key of the first row of a COPY: nobody else has higher ones.
const firstCopied = 1 << 40

// copyInto loads rows and removes them.
func (f *flowBench) copyInto(ctx context.Context, table string) (float64, error) {
	started := time.Now()
	_, err := f.hand.conn.CopyFrom(ctx, bytes.NewReader(f.copied), fmt.Sprintf("copy %s from stdin", table))
	if err != nil {
		return 0, err
	}
	rate := copyRows / time.Since(started).Seconds()
	return rate, f.direct.run(ctx, fmt.Sprintf("delete from %s where id >= %d", table, int64(firstCopied)), "vacuum "+table)
}

// salesToCopy are rows of many days, stores and products, as COPY takes them.
func salesToCopy() []byte {
	var text bytes.Buffer
	day := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for n := range int64(copyRows) {
		fmt.Fprintf(&text, "%d\t%s\t%d\t%d\t%d\n", firstCopied+n,
			day.AddDate(0, 0, int(n*100/copyRows)).Format(time.DateOnly), n*7919%2000, n*104729%10000, n%1000)
	}
	return text.Bytes()
}

// medianOf returns the middle one.
func medianOf[T int64 | float64](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
