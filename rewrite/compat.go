package rewrite

import _ "embed"

//go:embed compat.sql
var compatSQL string

// CompatSQL returns statements that create schema rwproxy_compat's functions:
// the Databricks functions that PostgreSQL lacks. The schema has to exist.
// They can be run again, and replace what an earlier version created. Run them
// with search_path pg_catalog: the bodies are bound when they are created.
func CompatSQL() string { return compatSQL }
