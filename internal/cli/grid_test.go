package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"
	"pgregory.net/rapid"
)

var testColumns = []column{
	{title: "table", cuttable: true},
	{title: "state", least: 9},
	{title: "window", cuttable: true},
	{title: "by", optional: true},
	{title: "id", optional: true},
}

func TestAGridFitsItsTerminal(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"public.revenue", "RUNNING", "day >= date_add(current_date(), -7)", "alice", "0001"},
		{"売上.日次集計", "COMPLETED", "region = 'EU'", "bob", "0002"},
	}
	for _, test := range []struct {
		name  string
		width int
		want  string
	}{
		{"without a terminal", 0, `
table           state      window                               by     id
public.revenue  RUNNING    day >= date_add(current_date(), -7)  alice  0001
売上.日次集計   COMPLETED  region = 'EU'                        bob    0002
`},
		{"where all has room", 77, `
table           state      window                               by     id
public.revenue  RUNNING    day >= date_add(current_date(), -7)  alice  0001
売上.日次集計   COMPLETED  region = 'EU'                        bob    0002
`},
		{"optional columns go first", 70, `
table           state      window                               by
public.revenue  RUNNING    day >= date_add(current_date(), -7)  alice
売上.日次集計   COMPLETED  region = 'EU'                        bob
`},
		{"then the widest is cut", 50, `
table           state      window
public.revenue  RUNNING    day >= date_add(curren…
売上.日次集計   COMPLETED  region = 'EU'
`},
		{"then all that can be", 33, `
table       state      window
public.re…  RUNNING    day >= da…
売上.日次…  COMPLETED  region = …
`},
		{"and the line at last", 20, `
table     state    …
public.…  RUNNING  …
売上.日…  COMPLETED…
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			g := newGrid(&out, testColumns...)
			g.width = test.width
			g.print(rows)
			if diff := cmp.Diff(strings.TrimPrefix(test.want, "\n"), out.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLaterRowsOfAGridWidenItsColumns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	g := newGrid(&out, testColumns[:2]...)
	g.print(nil)
	g.print([][]string{{"t", "QUEUED"}})
	g.print([][]string{{"revenue", "RUNNING"}, {"t", "COMPLETED"}})
	want := `table  state
t      QUEUED
revenue  RUNNING
t        COMPLETED
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestNoTextReachesTheTerminalAsACommand(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"day >\n\t current_date": "day > current_date",
		"red \x1b[31m":           "red \uFFFD[31m",
		"\x9b2J":                 "\uFFFD2J",
		"\u009b2J":               "\uFFFD2J",
		"a\x00b\x7f":             "a\uFFFDb\uFFFD",
		"\u202Etxet":             "\uFFFDtxet",
		"\xff":                   "\uFFFD",
		"👩\u200D💻 नमस्ते 売上 e\u0301": "👩\u200D💻 नमस्ते 売上 e\u0301",
	} {
		if got := printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestNothingIsWiderThanItsTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOf(rapid.RuneFrom([]rune("ab 売👩\u200D💻\u0301\u1100\u1161\t\n\x1b\u202Eé🇩🇪")))
		var rows [][]string
		for range rapid.IntRange(0, 3).Draw(t, "rows") {
			row := make([]string, len(testColumns))
			for i := range row {
				row[i] = value.Draw(t, "value")
			}
			rows = append(rows, row)
		}
		var out bytes.Buffer
		g := newGrid(&out, testColumns...)
		g.width = rapid.IntRange(1, 100).Draw(t, "width")
		g.print(rows)
		printed := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if len(printed) != len(rows)+1 {
			t.Fatalf("%d lines for %d rows", len(printed), len(rows))
		}
		for _, line := range printed {
			if width := uniseg.StringWidth(line); width > g.width {
				t.Fatalf("%q has %d cells of %d", line, width, g.width)
			}
		}
	})
}
