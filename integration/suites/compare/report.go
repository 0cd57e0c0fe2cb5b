package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
)

// report is what a suite came to.
type report struct {
	suite           string
	tests           int
	direct, proxied int // tests that passed
	differences     []difference
	err             error // the suite could not be run
}

// differing returns how many tests differ, those that are unstable left out.
func (r report) differing() int {
	n := 0
	for _, d := range r.differences {
		if !d.unstable {
			n++
		}
	}
	return n
}

// printReports prints a line for each suite, then what its tests differ in.
func printReports(w io.Writer, reports []report) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "suite\ttests\tpassed directly\tthrough rwproxy\tdiffering\tunstable")
	for _, r := range reports {
		if r.err != nil {
			fmt.Fprintf(table, "%s\tnot run\n", r.suite)
			continue
		}
		unstable := len(r.differences) - r.differing()
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\n", r.suite, r.tests, r.direct, r.proxied, r.differing(), unstable)
	}
	table.Flush()
	for _, r := range reports {
		for _, d := range r.differences {
			kind := "differs"
			if d.unstable {
				kind = "unstable"
			}
			fmt.Fprintf(w, "%s: %s: %s: directly %v, through rwproxy %v\n", r.suite, d.test, kind, d.direct, d.proxied)
		}
	}
}

// verdict returns an error if a test differs or a suite could not be run.
func verdict(reports []report) error {
	var err error
	for _, r := range reports {
		if r.err != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", r.suite, r.err))
		}
		if n := r.differing(); n > 0 {
			err = errors.Join(err, fmt.Errorf("%s: %d tests differ", r.suite, n))
		}
	}
	return err
}
