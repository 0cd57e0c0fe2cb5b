package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"
)

// refreshSamples are the measurements of one flow after one change.
type refreshSamples struct {
	hand, materialized, streaming []spent
	// narrowed is the DELETE and INSERT, by hand, that the refresh ran.
	narrowed  []spent
	technique string // of the last round
}

// measureRefreshes compares ways to bring the result of a query up to date.
func (f *flowBench) measureRefreshes(ctx context.Context) error {
	for _, flow := range flows {
		if err := flow.create(ctx, f.direct, f.proxied); err != nil {
			return err
		}
	}
	fmt.Printf("\nRefreshes: %d rows, %d in the window; medians of %d alternating rounds. CPU: of the backend.\n\n", f.rows, windowRows(f.rows), f.rounds)
	fmt.Println("| flow | change | technique | flow CPU | flow time | hand/flow CPU | hand/flow time | concurrently/flow CPU | concurrently/flow time | own CPU | own time |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, change := range changes {
		samples := make([]refreshSamples, len(flows))
		for round := range f.rounds {
			if err := change.make(ctx, f.direct, f.rows, round); err != nil {
				return err
			}
			for i, flow := range flows {
				if err := f.refreshEveryWay(ctx, flow, round, &samples[i]); err != nil {
					return err
				}
				fmt.Fprintf(os.Stderr, "refresh %s, %s: round %d of %d\n", flow.name, change.name, round+1, f.rounds)
			}
		}
		for i, flow := range flows {
			if err := flow.compare(ctx, f.direct); err != nil {
				return err
			}
			samples[i].print(flow.name, change.name)
		}
	}
	return nil
}

// refreshEveryWay refreshes a flow's three tables, in an order that shifts from
// round to round.
func (f *flowBench) refreshEveryWay(ctx context.Context, flow flow, round int, s *refreshSamples) error {
	ways := []struct {
		session *session
		sql     string
		into    *[]spent
	}{
		{f.hand, flow.replace(window), &s.hand},
		{f.hand, flow.refreshMaterialized(), &s.materialized},
		{f.proxied, flow.refreshStreaming(), &s.streaming},
	}
	for i := range ways {
		way := ways[(i+round)%len(ways)]
		took, err := way.session.timed(ctx, way.sql)
		if err != nil {
			return err
		}
		*way.into = append(*way.into, took)
	}
	rows, err := f.direct.query(ctx, fmt.Sprintf(`
		select concat_ws(' ', technique, reason), applied_predicate
		  from rwproxy.refreshes where target_table = '%s' order by started_at desc limit 1`, flow.streaming()))
	if err != nil {
		return err
	}
	s.technique = rows[0][0]
	if err := flow.vacuum(ctx, f.direct); err != nil {
		return err
	}
	if s.technique != "INCREMENTAL" {
		return nil
	}
	took, err := f.hand.timed(ctx, flow.replace(rows[0][1]))
	if err != nil {
		return err
	}
	s.narrowed = append(s.narrowed, took)
	return f.direct.run(ctx, "vacuum "+flow.hand())
}

// print prints a row of the table. A refresh's own cost is what it takes beyond
// its DELETE and INSERT.
func (s *refreshSamples) print(flow, change string) {
	hand, materialized, streaming := medianSpent(s.hand), medianSpent(s.materialized), medianSpent(s.streaming)
	ownCPU, ownTime := "–", "–"
	if len(s.narrowed) == len(s.streaming) {
		narrowed := medianSpent(s.narrowed)
		ownCPU, ownTime = milliseconds(streaming.cpu-narrowed.cpu), milliseconds(streaming.wall-narrowed.wall)
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", flow, change, s.technique,
		milliseconds(streaming.cpu), milliseconds(streaming.wall),
		ratio(hand.cpu, streaming.cpu), ratio(hand.wall, streaming.wall),
		ratio(materialized.cpu, streaming.cpu), ratio(materialized.wall, streaming.wall), ownCPU, ownTime)
}

// medianSpent takes the middle of CPU and wall times separately.
func medianSpent(samples []spent) spent {
	cpu, wall := make([]time.Duration, len(samples)), make([]time.Duration, len(samples))
	for i, s := range samples {
		cpu[i], wall[i] = s.cpu, s.wall
	}
	slices.Sort(cpu)
	slices.Sort(wall)
	return spent{cpu[len(cpu)/2], wall[len(wall)/2]}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
}

func ratio(a, b time.Duration) string {
	r := float64(a) / float64(b)
	if r >= 10 {
		return fmt.Sprintf("%.0f", r)
	}
	return fmt.Sprintf("%.2f", r)
}
