package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// column is one of a grid's.
type column struct {
	title    string
	least    int  // cells it has at least
	cuttable bool // its values may end with … where there is no room
	optional bool // it is left out where there is no room
}

const (
	gap       = "  " // between columns
	narrowest = 8    // cells that a column is cut to at least
)

// grid prints rows in columns that fit the terminal, or with all they hold where
// there is none. Widths are those of a terminal's cells: a wide character has
// two.
type grid struct {
	out     io.Writer
	width   int // of the terminal, in cells; 0 without one
	columns []column

	natural []int // the widths that all rows so far ask for; nil before the first
	widths  []int // those the columns have, -1 for one that is left out
}

func newGrid(out io.Writer, columns ...column) *grid {
	return &grid{out: out, width: terminalWidth(out), columns: columns}
}

// terminalWidth returns how many cells a line of the terminal has, 0 if out is
// none.
func terminalWidth(out io.Writer) int {
	file, ok := out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// print prints rows, and before the first ones the titles. Later rows may widen
// columns, they never narrow them.
func (g *grid) print(rows [][]string) {
	if g.natural == nil {
		titles := make([]string, len(g.columns))
		g.natural = make([]int, len(g.columns))
		for i, c := range g.columns {
			titles[i], g.natural[i] = c.title, c.least
		}
		rows = append([][]string{titles}, rows...)
	}
	for _, row := range rows {
		for i, value := range row {
			g.natural[i] = max(g.natural[i], uniseg.StringWidth(printable(value)))
		}
	}
	g.fit()
	for _, row := range rows {
		g.line(row)
	}
}

// fit chooses the widths of the columns: optional ones are left out from the
// right, then the widest ones are cut.
func (g *grid) fit() {
	g.widths = slices.Clone(g.natural)
	if g.width == 0 {
		return
	}
	for i := len(g.columns) - 1; i >= 0 && g.total() > g.width; i-- {
		if g.columns[i].optional {
			g.widths[i] = -1
		}
	}
	for g.total() > g.width {
		widest := -1
		for i, c := range g.columns {
			if c.cuttable && g.widths[i] > narrowest && (widest < 0 || g.widths[i] > g.widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return // the lines are cut
		}
		g.widths[widest] = max(g.secondWidest(widest)-1, g.widths[widest]-(g.total()-g.width), narrowest)
	}
}

// secondWidest returns the width of the widest cuttable column but one.
func (g *grid) secondWidest(widest int) int {
	second := narrowest
	for i, c := range g.columns {
		if c.cuttable && i != widest {
			second = max(second, g.widths[i])
		}
	}
	return second
}

// total is the width of a line.
func (g *grid) total() int {
	total := -len(gap)
	for _, width := range g.widths {
		if width >= 0 {
			total += len(gap) + width
		}
	}
	return total
}

// line prints one row in the widths that fit has chosen.
func (g *grid) line(row []string) {
	var line strings.Builder
	for i, width := range g.widths {
		if width < 0 {
			continue
		}
		if line.Len() > 0 {
			line.WriteString(gap)
		}
		value := printable(row[i])
		if g.width > 0 {
			value = cut(value, width)
		}
		line.WriteString(value)
		line.WriteString(strings.Repeat(" ", max(0, width-uniseg.StringWidth(value))))
	}
	text := strings.TrimRight(line.String(), " ")
	if g.width > 0 {
		text = cut(text, g.width)
	}
	fmt.Fprintln(g.out, text)
}

// cut returns text in at most width cells, with … in place of what it cuts off.
func cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	kept, used := 0, 0
	for characters := uniseg.NewGraphemes(text); characters.Next(); {
		if used+characters.Width() > width-1 {
			break
		}
		used += characters.Width()
		_, kept = characters.Positions()
	}
	return text[:kept] + "…"
}

// printable returns text on one line and without what a terminal would act on:
// it comes from whoever wrote a flow.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, notGraphic) {
		return text
	}
	var out strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			if !space {
				out.WriteByte(' ')
			}
		case notGraphic(r):
			out.WriteRune('\uFFFD')
		default:
			out.WriteRune(r)
		}
		space = unicode.IsSpace(r)
	}
	return out.String()
}

// notGraphic reports control and formatting characters, among them those that
// turn the direction of writing. The joiners that emoji and some scripts are
// written with are let through.
func notGraphic(r rune) bool {
	const zeroWidthNonJoiner, zeroWidthJoiner = '\u200C', '\u200D'
	return !unicode.IsGraphic(r) && r != zeroWidthJoiner && r != zeroWidthNonJoiner
}
