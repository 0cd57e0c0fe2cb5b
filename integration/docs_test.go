package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// The sql blocks of a page are run with psql, in order, in one session. A text
// block behind one is what psql prints, to the letter; a sql block without one
// must not fail. The flag -update writes what was printed into the pages.
func TestDocumentedStatementsPrintWhatTheirPageShows(t *testing.T) {
	t.Parallel()
	for _, p := range documentation(t) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			outputs := p.run(t, newDatabase(t))
			shown := map[int]string{}
			for i, b := range p.blocks {
				switch {
				case b.notRun != "" || b.language != "sql":
				case p.hasOutput(i):
					shown[i+1] = outputs[i]
				case failure.MatchString(outputs[i]):
					t.Errorf("%s:%d fails\n%s", p.name, b.first+1, outputs[i])
				}
			}
			if *update {
				p.write(t, shown)
				return
			}
			for i, got := range shown {
				if diff := cmp.Diff(p.blocks[i].text, got); diff != "" {
					t.Errorf("%s:%d (-page +psql)\n%s", p.name, p.blocks[i].first+1, diff)
				}
			}
		})
	}
}

var failure = regexp.MustCompile(`(?m)^(ERROR|FATAL|WARNING):`)

// hasOutput reports whether block i is followed by what it prints.
func (p *page) hasOutput(i int) bool {
	return i+1 < len(p.blocks) && p.blocks[i+1].language == "text" && p.blocks[i+1].notRun == ""
}

// run runs the sql blocks of a page and returns what each printed.
func (p *page) run(t *testing.T, d database) map[int]string {
	t.Helper()
	const marker = "the end of block "
	var script strings.Builder
	for i, b := range p.blocks {
		if b.language == "sql" && b.notRun == "" {
			fmt.Fprintf(&script, "%s\\echo '%s%d'\n", b.text, marker, i)
		}
	}
	cmd := exec.Command("psql", "--no-psqlrc")
	cmd.Env = libpqEnvironment(t, d)
	cmd.Stdin = strings.NewReader(script.String())
	// psql flushes one before it writes to the other.
	all, err := cmd.CombinedOutput()
	if err != nil {
		missing(t, "psql", err, all)
	}
	outputs := map[int]string{}
	rest := string(all)
	for i, b := range p.blocks {
		if b.language != "sql" || b.notRun != "" {
			continue
		}
		output, after, found := strings.Cut(rest, fmt.Sprintf("%s%d\n", marker, i))
		if !found {
			t.Fatalf("%s:%d was not run to its end\n%s", p.name, b.first+1, rest)
		}
		outputs[i], rest = asShown(output), after
	}
	return outputs
}

var (
	duration      = regexp.MustCompile(`\bin \d+ ms\b`)
	viewEnding    = regexp.MustCompile(`(rwproxy_flows\.\w+_)[0-9a-f]{8}\b`)
	trailingSpace = regexp.MustCompile(`(?m)[ \t]+$`)
)

// asShown is psql's output as a page shows it: no trailing white space, and an
// ellipsis for what no two runs have in common, a refresh's duration and the
// ending of a view's name.
func asShown(output string) string {
	output = trailingSpace.ReplaceAllString(output, "")
	output = duration.ReplaceAllString(output, "in … ms")
	output = viewEnding.ReplaceAllString(output, "${1}…")
	return strings.TrimRight(output, "\n") + "\n"
}

// Every block is run or checked, or says why it is not.
func TestEveryBlockOfTheDocumentationIsChecked(t *testing.T) {
	t.Parallel()
	flags := helpOfServe(t)
	for _, p := range documentation(t) {
		for i, b := range p.blocks {
			complain := func(format string, arguments ...any) {
				t.Helper()
				t.Errorf("%s:%d: %s", p.name, b.first+1, fmt.Sprintf(format, arguments...))
			}
			switch {
			case b.notRun != "":
			case b.language == "sql":
			case b.language == "text":
				if i == 0 || p.blocks[i-1].language != "sql" || p.blocks[i-1].notRun != "" {
					complain("it is the output of nothing: put <!-- not run: reason --> in front of it")
				}
			case b.language == "sh":
				for _, line := range lines(b.text) {
					if err := checkCommand(t, flags, line); err != nil {
						complain("%s: %v", line, err)
					}
				}
			case b.language == "yaml":
				for _, key := range regexp.MustCompile(`(?m)^[\w-]+`).FindAllString(b.text, -1) {
					if flags["--"+key] == "" {
						complain("there is no setting %s", key)
					}
				}
			default:
				complain("nothing checks a block of %q", b.language)
			}
		}
	}
}

// checkCommand checks that what a line of a sh block calls exists.
func checkCommand(t *testing.T, flags map[string]string, line string) error {
	t.Helper()
	words := strings.Fields(line)
	if len(words) == 0 || words[0] == "#" {
		return nil
	}
	switch words[0] {
	case "make":
		makefile, err := os.ReadFile("../Makefile")
		if err != nil {
			return err
		}
		if !strings.Contains(string(makefile), "\n"+words[1]+":") {
			return fmt.Errorf("there is no target %s", words[1])
		}
	case "rwproxy", "bin/rwproxy":
		for _, word := range words[1:] {
			if name, _, _ := strings.Cut(word, "="); strings.HasPrefix(name, "--") && flags[name] == "" {
				return fmt.Errorf("there is no flag %s", name)
			}
		}
	case "psql", "curl", "docker":
		// Other people's programs.
	default:
		return fmt.Errorf("nothing checks %s", words[0])
	}
	return nil
}

var flagOfHelp = regexp.MustCompile(`(?m)^\s+(?:-\w, )?(--[\w-]+)(?:=\S+)?\s`)

// helpOfServe returns the help of each flag of `rwproxy serve`.
func helpOfServe(t *testing.T) map[string]string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve", "--help")
	cmd.Env = cleanEnvironment()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	help := string(out)
	flags := map[string]string{}
	found := flagOfHelp.FindAllStringSubmatchIndex(help, -1)
	for i, match := range found {
		end := len(help)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		flags[help[match[2]:match[3]]] = strings.Join(strings.Fields(help[match[2]:end]), " ")
	}
	return flags
}

func TestTheTableOfSettingsIsThatOfTheProgram(t *testing.T) {
	t.Parallel()
	flags := helpOfServe(t)
	delete(flags, "--help")
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
		order by array_position(array['flows', 'refreshes', 'event_log'], c.relname::text), a.attnum`)
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
