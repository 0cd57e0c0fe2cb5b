package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// regressLine is what pg_regress prints of a test.
var regressLine = regexp.MustCompile(`(?m)^(?:test)?\s+(\S+)\s+\.\.\. (ok|FAILED|failed \(ignored\))`)

// readRegress reads the log of pg_regress, and what each test has printed: it
// may differ where two results are both expected, or both unexpected.
func readRegress(dir string) (results, error) {
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	found := results{}
	for _, line := range regressLine.FindAllStringSubmatch(string(log), -1) {
		o := outcome{status: failed}
		if line[2] == "ok" {
			o.status = passed
		}
		output, err := os.ReadFile(filepath.Join(dir, "results", line[1]+".out"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		o.output = string(output)
		found[line[1]] = o
	}
	return found, nil
}
