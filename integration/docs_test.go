package integration

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	flags := helpOf(t, "serve")
	for _, p := range documentation(t) {
		for i, b := range p.blocks {
			complain := func(format string, arguments ...any) {
				t.Helper()
				t.Errorf("%s:%d: %s", p.name, b.first+1, fmt.Sprintf(format, arguments...))
			}
			switch {
			case b.notRun != "":
			case b.language == "sql":
			case b.language == "json":
				if i == 0 || p.blocks[i-1].language != "sh" || p.blocks[i-1].notRun != "" {
					complain("it is the answer to nothing: put <!-- not run: reason --> in front of it")
				}
			case b.language == "text":
				if i == 0 || p.blocks[i-1].notRun != "" || p.blocks[i-1].language != "sql" && p.name != commandLinePage {
					complain("it is the output of nothing: put <!-- not run: reason --> in front of it")
				}
			case b.language == "sh" && i+1 < len(p.blocks) && p.blocks[i+1].language == "json": // is run
			case b.language == "sh":
				for _, line := range lines(b.text) {
					if err := checkCommand(t, line); err != nil {
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
func checkCommand(t *testing.T, line string) error {
	t.Helper()
	words := strings.Fields(line)
	if len(words) == 0 || words[0] == "#" {
		return nil
	}
	if name, _, assigned := strings.Cut(words[0], "="); assigned && name == strings.ToUpper(name) {
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
		command := "serve"
		if len(words) > 1 && !strings.HasPrefix(words[1], "-") {
			command = words[1]
		}
		flags := helpOf(t, command)
		for _, word := range words[1:] {
			if name, _, _ := strings.Cut(word, "="); strings.HasPrefix(name, "-") && flags[name] == "" {
				return fmt.Errorf("there is no flag %s", name)
			}
		}
	case "psql", "curl", "docker", "systemctl", "journalctl", "install", "useradd", "haproxy", "pg_dump", "createdb", "pg_restore", "printf":
		// Other people's programs.
	default:
		return fmt.Errorf("nothing checks %s", words[0])
	}
	for _, word := range words[1:] {
		if strings.HasPrefix(word, "deploy/") {
			if _, err := os.Stat("../" + word); err != nil {
				return err
			}
		}
	}
	return nil
}

var flagOfHelp = regexp.MustCompile(`(?m)^\s+(?:(-\w), )?(--[\w-]+)(?:=\S+)?\s`)

// helpOf returns the help of each flag of a command, by its name and by the
// letter that is short for it.
func helpOf(t *testing.T, command string) map[string]string {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, command, "--help")
	cmd.Env = cleanEnvironment()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	help := string(out)
	flags := map[string]string{}
	found := flagOfHelp.FindAllStringSubmatchIndex(help, -1)
	for i, match := range found {
		end := len(help)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		text := strings.Join(strings.Fields(help[match[4]:end]), " ")
		flags[help[match[4]:match[5]]] = text
		if match[2] >= 0 {
			flags[help[match[2]:match[3]]] = text
		}
	}
	return flags
}
