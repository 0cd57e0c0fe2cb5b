package main

import (
	"context"
	"fmt"
	"os"
	"slices"
)

// sample is one measurement.
type sample struct {
	rate float64 // units per second
	cpu  float64 // seconds of the proxy per unit
}

// measure prints the tables.
func (b *bench) measure(ctx context.Context) error {
	if len(b.cells()) == 0 {
		return b.measureSessions(ctx)
	}
	fmt.Printf("Medians of %d alternating rounds of %v; COPY of %d MiB. rate: throughput; CPU: the proxy's CPU time per transaction or MiB.\n\n",
		b.rounds, b.duration, b.copySize/mebibyte)
	fmt.Println("| cell | upstream | rate/direct | rate/pgbouncer | CPU/pgbouncer | rate/haproxy | CPU/haproxy | CPU | rate/baseline | CPU/baseline |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, u := range []upstream{
		{"TCP", "127.0.0.1", b.postgres.Port()},
		{"Unix socket", b.postgres.SocketDir(), b.postgres.Port()},
	} {
		if err := b.measureUpstream(ctx, u); err != nil {
			return err
		}
	}
	return b.measureSessions(ctx)
}

func (b *bench) measureUpstream(ctx context.Context, u upstream) error {
	ways, err := b.ways(ctx, u)
	if err != nil {
		return err
	}
	defer stopAll(ways)
	for _, c := range b.cells() {
		samples := map[string][]sample{}
		for round := range b.rounds {
			for i := range ways {
				// Nobody is always the one after the same other.
				t := ways[(i+round)%len(ways)]
				s, err := c.once(ctx, t)
				if err != nil {
					return err
				}
				samples[t.name] = append(samples[t.name], s)
			}
			fmt.Fprintf(os.Stderr, "%s, %s: round %d of %d\n", c.name, u.transport, round+1, b.rounds)
		}
		printRow(c.name, u.transport, samples)
	}
	return nil
}

// printRow prints medians: of the ratios of each round, whose measurements
// have been taken under nearly the same conditions, and of our own CPU time.
func printRow(name, transport string, samples map[string][]sample) {
	ours := samples["rwproxy"]
	ratio := func(other string, of func(sample) float64) string {
		if len(samples[other]) == 0 {
			return "–"
		}
		ratios := make([]float64, len(ours))
		for i, s := range ours {
			ratios[i] = of(s) / of(samples[other][i])
		}
		return fmt.Sprintf("%.2f", median(ratios))
	}
	rate := func(s sample) float64 { return s.rate }
	cpu := func(s sample) float64 { return s.cpu }
	times := make([]float64, len(ours))
	for i, s := range ours {
		times[i] = 1e6 * s.cpu
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %.1f µs | %s | %s |\n", name, transport,
		ratio("direct", rate), ratio("pgbouncer", rate), ratio("pgbouncer", cpu), ratio("haproxy", rate), ratio("haproxy", cpu),
		median(times), ratio("baseline", rate), ratio("baseline", cpu))
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
