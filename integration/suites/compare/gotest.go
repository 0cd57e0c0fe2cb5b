package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
)

// tempDir is the part that differs each time of a path that testing.T's
// TempDir returns.
var tempDir = regexp.MustCompile(`\d+/\d{3}/`)

// readGoTest reads gotest.json, the output of `go test -json`. A test that has
// begun and has no end, because its process had one, has failed; so has a
// package that fails though none of its tests does.
func readGoTest(dir string) (results, error) {
	text, err := os.ReadFile(filepath.Join(dir, "gotest.json"))
	if err != nil {
		return nil, err
	}
	found := results{}
	failures := map[string]bool{} // by package
	for line := range bytes.Lines(text) {
		var event struct{ Action, Package, Test string }
		if json.Unmarshal(line, &event) != nil {
			continue // what a test has printed past its own output
		}
		name := event.Package
		if event.Test != "" {
			name += " " + tempDir.ReplaceAllString(event.Test, "/")
		}
		switch {
		case event.Action == "run":
			found[name] = outcome{status: failed}
		case event.Action == "pass" && event.Test != "":
			found[name] = outcome{status: passed}
		case event.Action == "skip" && event.Test != "":
			found[name] = outcome{status: skipped}
		case event.Action == "fail":
			if event.Test != "" || !failures[event.Package] {
				found[name] = outcome{status: failed}
			}
			failures[event.Package] = true
		}
	}
	return found, nil
}
