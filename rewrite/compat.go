package rewrite

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed compat/*.sql
var compatFiles embed.FS

// compatSQL is the files of compat, in the order of their names: none needs
// another, only the first comes first.
var compatSQL = func() string {
	names, err := fs.Glob(compatFiles, "compat/*.sql")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := compatFiles.ReadFile(name)
		if err != nil {
			panic(err) // the file is in the program
		}
		texts[i] = string(text)
	}
	return strings.Join(texts, "\n")
}()

// CompatSQL returns statements that create schema rwproxy_compat's functions:
// the Databricks functions that PostgreSQL lacks. The schema has to exist.
// They can be run again, and replace what an earlier version created. Run them
// with search_path pg_catalog: the bodies are bound when they are created.
func CompatSQL() string { return compatSQL }
