package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

func TestEveryClientRunsTheWorkedExamples(t *testing.T) {
	t.Parallel()
	scripts, err := filepath.Glob("../examples/*.sql")
	if err != nil || len(scripts) != 4 {
		t.Fatalf("want four examples, found %d: %v", len(scripts), err)
	}
	for _, script := range scripts {
		name := strings.TrimSuffix(filepath.Base(script), ".sql")
		statements := readStatements(t, script)
		expected := readEvents(t, strings.TrimSuffix(script, ".sql")+".expected")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, c := range allClients() {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					d := newDatabase(t)
					got := c.run(t, d, statements)
					if diff := cmp.Diff(expected, got); diff != "" {
						t.Errorf("(-want +got)\n%s", diff)
					}
				})
			}
		})
	}
}

// Scripts of testdata/clients: "statements.sql" and, in "expected", what comes
// back, errors included.
func TestEveryClientSeesTheSame(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/clients/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no scripts in testdata/clients: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range archive.Files {
			files[f.Name] = string(f.Data)
		}
		statements, expected := splitStatements(files["statements.sql"]), events(files["expected"])
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			for _, c := range allClients() {
				if c.stops && strings.Contains(files["expected"], "error ") {
					continue // an error ends the batch: the rest of the script would not run
				}
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					got := c.run(t, newDatabase(t), statements)
					if diff := cmp.Diff(ordered(expected), ordered(got)); diff != "" {
						t.Errorf("(-want +got)\n%s", diff)
					}
				})
			}
		})
	}
}

func readStatements(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	statements := splitStatements(string(text))
	if len(statements) == 0 {
		t.Fatalf("%s holds no statement", path)
	}
	return statements
}

// splitStatements cuts a script whose statements end with a semicolon at the
// end of a line, and removes the semicolons.
func splitStatements(script string) []string {
	var statements []string
	for rest := script; ; {
		statement, after, found := strings.Cut(rest, ";\n")
		if !found {
			return statements
		}
		statements = append(statements, strings.TrimSpace(statement))
		rest = after
	}
}

func readEvents(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return events(string(text))
}

// events reads expected events: result sets as psql --no-align prints them and
// errors, with blank lines between them.
func events(text string) []string {
	var all []string
	for _, line := range lines(text) {
		if line != "" {
			all = append(all, line)
		}
	}
	return all
}
