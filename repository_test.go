// Package rwproxy holds the tests of the repository as a whole; the program is
// in cmd/rwproxy.
//
// It may import nothing of this module.
package rwproxy

import (
	"bytes"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// packages returns the folders of this module that hold Go files.
func packages(t *testing.T) []string {
	t.Helper()
	var folders []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !entry.IsDir() {
			return nil
		}
		if name := entry.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "tools") {
			return filepath.SkipDir
		}
		if files, _ := filepath.Glob(filepath.Join(path, "*.go")); len(files) > 0 {
			folders = append(folders, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

func TestEveryPackageSaysWhatItIsForAndWhatItMayImport(t *testing.T) {
	t.Parallel()
	for _, folder := range packages(t) {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		comment := ""
		for _, file := range files {
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			comment += parsed.Doc.Text()
		}
		if !strings.HasPrefix(comment, "Package ") && !strings.HasPrefix(comment, "Command ") {
			t.Errorf("%s has no package comment", folder)
		}
		if !strings.Contains(strings.Join(strings.Fields(comment), " "), "may import") {
			t.Errorf("the package comment of %s does not say what it may import", folder)
		}
	}
}

func TestMainStaysSmall(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("cmd/rwproxy/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(text, []byte("\n")); lines > 30 {
		t.Errorf("main.go has %d lines: what it does belongs in internal/cli", lines)
	}
}

var majorSuffix = regexp.MustCompile(`/v\d+$`)

func TestNoticeNamesEveryLinkedModule(t *testing.T) {
	t.Parallel()
	notice, err := os.ReadFile("NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "./cmd/rwproxy")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	for module := range strings.FieldsSeq(string(out)) {
		if !bytes.Contains(notice, []byte(majorSuffix.ReplaceAllString(module, ""))) {
			t.Errorf("NOTICE does not name %s, which the program links", module)
		}
	}
}
