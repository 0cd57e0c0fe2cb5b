package main

import (
	"context"
	"fmt"
	"strings"
)

// unvacuumed is how often a table is refreshed before its growth is measured.
const unvacuumed = 3

// applies are the ways to write a recomputed window.
var applies = []string{"delete_insert", "diff"}

// measureApply compares the ways to write a window when 1 % of the sources' rows
// has changed and the whole window is recomputed.
func (f *flowBench) measureApply(ctx context.Context) error {
	fmt.Printf("\nA window recomputed %d times without VACUUM, each time after 1 %% of its sources' rows has changed.\n\n", unvacuumed)
	fmt.Println("| flow | apply | CPU | time | WAL of one | growth of the table |")
	fmt.Println("| --- | --- | --- | --- | --- | --- |")
	for _, flow := range flows {
		for _, apply := range applies {
			if err := f.createApplied(ctx, flow, apply); err != nil {
				return err
			}
		}
		written := map[string]*written{}
		for round := range unvacuumed {
			if err := f.direct.run(ctx, uniform(100)(f.rows, round)); err != nil {
				return err
			}
			for i := range applies {
				apply := applies[(i+round)%len(applies)]
				w, err := f.writeApplied(ctx, flow, apply)
				if err != nil {
					return err
				}
				w.append(written, apply)
			}
		}
		for _, apply := range applies {
			written[apply].print(flow.name, apply)
			if err := f.proxied.run(ctx, "drop table "+appliedTable(flow, apply)); err != nil {
				return err
			}
		}
	}
	return nil
}

func appliedTable(f flow, apply string) string { return f.streaming() + "_" + apply }

func (f *flowBench) createApplied(ctx context.Context, flow flow, apply string) error {
	table := appliedTable(flow, apply)
	err := f.proxied.run(ctx, fmt.Sprintf(
		"create streaming table %s tblproperties ('rwproxy.apply' = '%s', 'rwproxy.refresh_policy' = 'full') flow replace where %s by name %s",
		table, apply, window, flow.query))
	if err != nil {
		return err
	}
	return f.direct.run(ctx,
		fmt.Sprintf("create unique index on %s (%s)", table, flow.key),
		fmt.Sprintf("create index on %s (day)", table),
		"vacuum analyze "+table)
}

// written is what refreshes have written to one table.
type written struct {
	spent  []spent
	wal    []int64 // bytes
	before int64   // bytes of the table at first
	after  int64
}

// writeApplied refreshes a table once. Nobody else writes meanwhile.
func (f *flowBench) writeApplied(ctx context.Context, flow flow, apply string) (w written, err error) {
	table := appliedTable(flow, apply)
	size := "select pg_table_size('" + table + "')"
	if w.before, err = f.direct.number(ctx, size); err != nil {
		return w, err
	}
	const position = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint"
	begin, err := f.direct.number(ctx, position)
	if err != nil {
		return w, err
	}
	took, err := f.proxied.timed(ctx, "refresh streaming table "+table)
	if err != nil {
		return w, err
	}
	end, err := f.direct.number(ctx, position)
	if err != nil {
		return w, err
	}
	w.spent, w.wal = []spent{took}, []int64{end - begin}
	w.after, err = f.direct.number(ctx, size)
	return w, err
}

// append adds what one more refresh has written.
func (w written) append(all map[string]*written, apply string) {
	sum, found := all[apply]
	if !found {
		all[apply] = &w
		return
	}
	sum.spent, sum.wal, sum.after = append(sum.spent, w.spent...), append(sum.wal, w.wal...), w.after
}

func (w *written) print(flow, apply string) {
	took := medianSpent(w.spent)
	fmt.Printf("| %s | %s | %s | %s | %.1f MiB | %.0f %% |\n", flow, strings.ReplaceAll(apply, "_", " + "),
		milliseconds(took.cpu), milliseconds(took.wall),
		float64(medianOf(w.wal))/mebibyte, 100*float64(w.after-w.before)/float64(w.before))
}
