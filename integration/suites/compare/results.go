package main

import (
	"maps"
	"slices"
)

// status is how a test ended.
type status string

const (
	passed  status = "passed"
	failed  status = "failed"
	skipped status = "skipped"
	missing status = "not run"
)

// outcome is what is compared of a test.
type outcome struct {
	status status
	output string // where the suite has its tests' output compared, else ""
}

// results are the outcomes of a suite's tests by name.
type results map[string]outcome

// of returns the outcome of a test.
func (r results) of(name string) outcome {
	if o, ok := r[name]; ok {
		return o
	}
	return outcome{status: missing}
}

// passed returns how many tests passed.
func (r results) passed() int {
	n := 0
	for _, o := range r {
		if o.status == passed {
			n++
		}
	}
	return n
}

// round is one run of a suite on each side.
type round struct {
	direct, proxied results
}

// names returns the tests of either side, sorted.
func (r round) names() []string {
	all := maps.Clone(r.direct)
	maps.Copy(all, r.proxied)
	return slices.Sorted(maps.Keys(all))
}

// differing returns the tests whose outcomes are not the same.
func (r round) differing() []string {
	return slices.DeleteFunc(r.names(), func(name string) bool {
		return r.direct.of(name) == r.proxied.of(name)
	})
}

// difference is a test that came out differently in the first round.
type difference struct {
	test            string
	direct, proxied []status // by round
	// unstable says that in one of the rounds, or between two, a direct
	// connection and the proxy had the same outcome: the test is no evidence
	// that they differ.
	unstable bool
}

// differences returns what differed in the first round, and how it came out
// in all of them.
func differences(rounds []round) []difference {
	var found []difference
	for _, name := range rounds[0].differing() {
		d := difference{test: name}
		for _, a := range rounds {
			d.direct = append(d.direct, a.direct.of(name).status)
			d.proxied = append(d.proxied, a.proxied.of(name).status)
			for _, b := range rounds {
				d.unstable = d.unstable || a.direct.of(name) == b.proxied.of(name)
			}
		}
		found = append(found, d)
	}
	return found
}
