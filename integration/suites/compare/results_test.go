package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTestsThatComeOutDifferentlyAreFound(t *testing.T) {
	t.Parallel()
	only := func(s status) results { return results{"a": {status: s}} }
	for name, c := range map[string]struct {
		rounds []round
		want   []difference
	}{
		"the same outcome": {rounds: []round{{only(failed), only(failed)}}},
		"another outcome each time": {
			rounds: []round{{only(passed), only(failed)}, {only(passed), only(failed)}},
			want:   []difference{{test: "a", direct: []status{passed, passed}, proxied: []status{failed, failed}}},
		},
		"another outcome once": {
			rounds: []round{{only(passed), only(failed)}, {only(passed), only(passed)}},
			want:   []difference{{test: "a", direct: []status{passed, passed}, proxied: []status{failed, passed}, unstable: true}},
		},
		"the other outcome in the other round": {
			rounds: []round{{only(passed), only(failed)}, {only(failed), only(failed)}},
			want:   []difference{{test: "a", direct: []status{passed, failed}, proxied: []status{failed, failed}, unstable: true}},
		},
		"a test that is run on one side": {
			rounds: []round{{only(passed), nil}},
			want:   []difference{{test: "a", direct: []status{passed}, proxied: []status{missing}}},
		},
		"another output": {
			rounds: []round{{results{"a": {status: passed, output: "1"}}, results{"a": {status: passed, output: "2"}}}},
			want:   []difference{{test: "a", direct: []status{passed}, proxied: []status{passed}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, differences(c.rounds), cmp.AllowUnexported(difference{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheTableNamesWhatDiffersAndWhatCouldNotBeRun(t *testing.T) {
	t.Parallel()
	reports := []report{
		{suite: "good", tests: 3, direct: 2, proxied: 2},
		{suite: "bad", tests: 2, direct: 2, proxied: 0, differences: []difference{
			{test: "one", direct: []status{passed}, proxied: []status{failed}},
			{test: "two", direct: []status{passed}, proxied: []status{failed}, unstable: true},
		}},
		{suite: "gone", err: errors.New("no network")},
	}
	var printed bytes.Buffer
	printReports(&printed, reports)
	want := `suite  tests  passed directly  through rwproxy  differing  unstable
good   3      2                2                0          0
bad    2      2                0                1          1
gone   not run
bad: one: differs: directly [passed], through rwproxy [failed]
bad: two: unstable: directly [passed], through rwproxy [failed]
`
	if diff := cmp.Diff(want, printed.String()); diff != "" {
		t.Error(diff)
	}
	err := verdict(reports)
	if err == nil || !strings.Contains(err.Error(), "bad: 1 tests differ") || !strings.Contains(err.Error(), "gone: no network") {
		t.Errorf("the verdict is %v", err)
	}
	if err := verdict(reports[:1]); err != nil {
		t.Errorf("the verdict on a suite without differences is %v", err)
	}
}

func TestSuitesAreChosenByName(t *testing.T) {
	for name, c := range map[string]struct {
		names    []string
		checkout string
		want     []string // nil: refused
	}{
		"some":                        {names: []string{"pq", "regress"}, want: []string{"regress", "pq"}},
		"one that there is not":       {names: []string{"regres"}},
		"one whose checkout is not":   {names: []string{"psycopg"}},
		"one whose checkout is there": {names: []string{"psycopg"}, checkout: "folder", want: []string{"psycopg"}},
		"all, without the checkout":   {want: []string{"regress", "isolation", "pgx", "pq", "pg-pool", "pg-cursor"}},
		"all, and the checkout is there": {
			checkout: "folder",
			want:     []string{"regress", "isolation", "pgx", "pq", "pg-pool", "pg-cursor", "psycopg"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PSYCOPG_SOURCE", c.checkout)
			chosen, err := choose(c.names)
			if (err == nil) != (c.want != nil) {
				t.Fatalf("the error is %v", err)
			}
			var names []string
			for _, s := range chosen {
				names = append(names, s.name)
			}
			if diff := cmp.Diff(c.want, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}
