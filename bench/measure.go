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

func printRow(name, transport string, samples map[string][]sample) {
	ours := median(samples["rwproxy"])
	rate := func(other string) string {
		if len(samples[other]) == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", ours.rate/median(samples[other]).rate)
	}
	cpu := func(other string) string {
		if len(samples[other]) == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", ours.cpu/median(samples[other]).cpu)
	}
	fmt.Printf("| %s | %s | %s | %s | %s | %s | %s | %.1f µs | %s | %s |\n", name, transport,
		rate("direct"), rate("pgbouncer"), cpu("pgbouncer"), rate("haproxy"), cpu("haproxy"), 1e6*ours.cpu,
		rate("baseline"), cpu("baseline"))
}

// median takes the middle of rates and of CPU times separately.
func median(samples []sample) sample {
	rates, cpus := make([]float64, len(samples)), make([]float64, len(samples))
	for i, s := range samples {
		rates[i], cpus[i] = s.rate, s.cpu
	}
	slices.Sort(rates)
	slices.Sort(cpus)
	return sample{rates[len(rates)/2], cpus[len(cpus)/2]}
}
