package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

func TestTheTableOfSettingsIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	flags := helpOf(t, "serve")
	delete(flags, "--help")
	delete(flags, "-h")
	p := readPage(t, "../README.md")
	for _, row := range p.rows("| flag | environment | default | meaning |") {
		names, variables, initial := code(row[0]), code(row[1]), code(row[2])
		for i, name := range names {
			help, found := flags[name]
			if !found {
				t.Errorf("there is no flag %s", name)
			}
			for _, part := range append(initial, "$"+variables[i]) {
				if !strings.Contains(help, part) {
					t.Errorf("%s: the help does not say %s: %s", name, part, help)
				}
			}
			delete(flags, name)
		}
	}
	for name := range flags {
		t.Errorf("the table lacks %s", name)
	}
}

// The worked examples have one source, examples/*.sql, which the page repeats.
func TestTheWorkedExamplesPageHoldsTheExamples(t *testing.T) {
	t.Parallel()
	p := readPage(t, "../docs/worked-examples.md")
	scripts, err := filepath.Glob("../examples/*.sql")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	var headings []string
	for _, line := range p.lines {
		if strings.HasPrefix(line, "## ") {
			headings = append(headings, strings.TrimSpace(line))
		}
	}
	if len(headings) != len(scripts) {
		t.Fatalf("%d sections for %d examples", len(headings), len(scripts))
	}
	for i, script := range scripts {
		var onPage strings.Builder
		for _, b := range p.section(headings[i]) {
			if b.language == "sql" {
				onPage.WriteString(b.text)
			}
		}
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(withoutComments(string(text)), withoutComments(onPage.String())); diff != "" {
			t.Errorf("%s (-script +page)\n%s", script, diff)
		}
	}
}

// withoutComments returns the lines of a script that are neither blank nor
// comments.
func withoutComments(script string) []string {
	return slices.DeleteFunc(lines(script), func(line string) bool {
		return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "--")
	})
}

func TestTheStateReferenceHasEveryColumn(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	s.exec(`create streaming table t`) // installs the schema
	p := readPage(t, "../docs/state-reference.md")
	var onPage []string
	view, inColumns := "", false
	for _, line := range p.lines {
		line = strings.TrimSpace(line)
		switch heading, found := strings.CutPrefix(line, "## "); {
		case found:
			view = strings.Trim(heading, "`")
		case line == "| column | type | meaning |":
			inColumns = true
		case !strings.HasPrefix(line, "|"):
			inColumns = false
		case inColumns && !strings.HasPrefix(line, "| ---"):
			row := cells(line)
			onPage = append(onPage, view+"|"+code(row[0])[0]+"|"+row[1])
		}
	}
	want := s.rows(`select a.attrelid::regclass, a.attname, format_type(a.atttypid, a.atttypmod)
		from pg_attribute a join pg_class c on c.oid = a.attrelid
		where c.relnamespace = 'rwproxy'::regnamespace and c.relkind = 'v' and has_table_privilege('pg_monitor', c.oid, 'select') and a.attnum > 0
		order by array_position(array['flows', 'refreshes', 'updates', 'event_log'], c.relname::text), a.attnum`)
	if diff := cmp.Diff(want, onPage); diff != "" {
		t.Errorf("(-database +page)\n%s", diff)
	}
}

// Every message that the page of errors lists is one that a test provokes. An
// ellipsis stands for what differs from case to case.
func TestTheErrorsPageHoldsErrorsThatHappen(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile(errorsPath)
	if err != nil {
		t.Fatal(err)
	}
	p := readPage(t, "../docs/errors.md")
	rows := p.rows("| SQLSTATE | message | way out |")
	if len(rows) == 0 {
		t.Fatal("the page has no table of errors")
	}
	for _, row := range rows {
		state, message := row[0], code(row[1])[0]
		pattern := strings.ReplaceAll(regexp.QuoteMeta(message), "…", ".*")
		expression := regexp.MustCompile(`(?m)^ERROR ` + state + `: ` + pattern + `$`)
		if !slices.ContainsFunc(archive.Files, func(f txtar.File) bool { return expression.Match(f.Data) }) {
			t.Errorf("no statement of %s gets %s: %s", errorsPath, state, message)
		}
	}
}

var (
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	notOfAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestLinksOfTheDocumentationLeadSomewhere(t *testing.T) {
	t.Parallel()
	pages := documentation(t)
	for _, pattern := range []string{"../docs/decisions/*.md", "../examples/*.md", "../*.md"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			pages = append(pages, readPage(t, name))
		}
	}
	linked := map[string]bool{"README.md": true}
	for _, p := range pages {
		for _, match := range link.FindAllStringSubmatch(strings.Join(p.lines, ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			name := p.name
			if path != "" {
				name = filepath.Join(filepath.Dir(p.name), path)
			}
			linked[name] = true
			if _, err := os.Stat(filepath.Join("..", name)); err != nil {
				t.Errorf("%s: %s leads nowhere", p.name, match[1])
			} else if anchor != "" && !slices.Contains(readPage(t, filepath.Join("..", name)).anchors(), anchor) {
				t.Errorf("%s: %s has no such heading", p.name, match[1])
			}
		}
	}
	for _, p := range pages {
		if strings.HasPrefix(p.name, "docs/") && !linked[p.name] {
			t.Errorf("no page links to %s", p.name)
		}
	}
}

// anchors are the names by which a page's headings can be linked to.
func (p *page) anchors() []string {
	var anchors []string
	for _, line := range p.lines {
		if level, heading, _ := strings.Cut(strings.TrimSpace(line), " "); level != "" && strings.Trim(level, "#") == "" {
			heading = notOfAnchor.ReplaceAllString(strings.ToLower(heading), "")
			anchors = append(anchors, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return anchors
}
