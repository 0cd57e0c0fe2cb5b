package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// page is a page of the documentation.
type page struct {
	name   string // relative to the repository
	lines  []string
	blocks []block
}

// block is a fenced block of a page.
type block struct {
	language    string
	text        string // without the fences, with its last line end
	first, last int    // the lines of its fences, from 0
	// notRun is the reason in a comment in front of the block that excepts it
	// from being run: <!-- not run: reason -->.
	notRun string
}

var notRunComment = regexp.MustCompile(`^<!-- not run: (.+) -->$`)

// documentation returns README.md and the pages of docs.
func documentation(t *testing.T) []*page {
	t.Helper()
	names, err := filepath.Glob("../docs/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	var pages []*page
	for _, name := range append([]string{"../README.md"}, names...) {
		pages = append(pages, readPage(t, name))
	}
	return pages
}

func readPage(t *testing.T, path string) *page {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p := &page{name: strings.TrimPrefix(path, "../"), lines: strings.SplitAfter(string(text), "\n")}
	for i := 0; i < len(p.lines); i++ {
		language, fenced := strings.CutPrefix(p.lines[i], "```")
		if !fenced {
			continue
		}
		b := block{language: strings.TrimSpace(language), first: i}
		if comment := notRunComment.FindStringSubmatch(p.before(i)); comment != nil {
			b.notRun = comment[1]
		}
		for i++; i < len(p.lines) && p.lines[i] != "```\n"; i++ {
			b.text += p.lines[i]
		}
		if i == len(p.lines) {
			t.Fatalf("%s:%d: the block has no end", p.name, b.first+1)
		}
		b.last = i
		p.blocks = append(p.blocks, b)
	}
	return p
}

// before is the last line with text in front of line i.
func (p *page) before(i int) string {
	for i--; i >= 0; i-- {
		if line := strings.TrimSpace(p.lines[i]); line != "" {
			return line
		}
	}
	return ""
}

// section returns the blocks between a heading and the next one of its level.
func (p *page) section(heading string) []block {
	level, _, _ := strings.Cut(heading, " ")
	first, end := -1, len(p.lines)
	for i, line := range p.lines {
		switch {
		case first < 0 && strings.TrimSpace(line) == heading:
			first = i
		case first >= 0 && strings.HasPrefix(line, level+" "):
			end = min(end, i)
		}
	}
	var blocks []block
	for _, b := range p.blocks {
		if first >= 0 && b.first > first && b.last < end {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// rows returns the cells of the table that begins with a header row.
func (p *page) rows(header string) [][]string {
	var rows [][]string
	inside := false
	for _, line := range p.lines {
		line = strings.TrimSpace(line)
		switch {
		case line == header:
			inside = true
		case !strings.HasPrefix(line, "|"):
			inside = false
		case inside && !strings.HasPrefix(line, "| ---"):
			rows = append(rows, cells(line))
		}
	}
	return rows
}

var cellEnd = regexp.MustCompile(`\s+\|\s+`)

func cells(line string) []string {
	return cellEnd.Split(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |"), -1)
}

// code returns the pieces of a cell that are set as code.
func code(cell string) []string {
	var pieces []string
	for i, piece := range strings.Split(cell, "`") {
		if i%2 == 1 {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// write puts texts in place of those of the page's blocks, by block, and
// writes the page.
func (p *page) write(t *testing.T, texts map[int]string) {
	t.Helper()
	var out strings.Builder
	next := 0
	for i, b := range p.blocks {
		text, found := texts[i]
		if !found {
			continue
		}
		out.WriteString(strings.Join(p.lines[next:b.first+1], ""))
		out.WriteString(text)
		next = b.last
	}
	out.WriteString(strings.Join(p.lines[next:], ""))
	if err := os.WriteFile(filepath.Join("..", p.name), []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
