package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rwproxy/rwproxy/integration/suites/backend"
)

// suite is a test suite of another project.
type suite struct {
	name   string
	script string        // fetches it and runs it: see the README
	needs  string        // a variable that names a checkout of the project, or ""
	limit  time.Duration // of one run
	server backend.Config
	read   func(dir string) (results, error)
}

var suites = []suite{
	{
		name: "regress", script: "postgres.sh", limit: 15 * time.Minute, read: readRegress,
		server: backend.Config{Settings: map[string]string{"compute_query_id": "regress", "max_prepared_transactions": "2"}},
	},
	{
		name: "isolation", script: "postgres.sh", limit: 15 * time.Minute, read: readRegress,
		server: backend.Config{Settings: map[string]string{"max_prepared_transactions": "5"}},
	},
	{
		name: "pgx", script: "go.sh", limit: 20 * time.Minute, read: readGoTest,
		server: backend.Config{TLS: true, HBA: []string{
			"host all pgx_md5 127.0.0.1/32 md5",
			"host all pgx_pw 127.0.0.1/32 password",
			"host all pgx_scram 127.0.0.1/32 scram-sha-256",
			"hostssl all pgx_ssl 127.0.0.1/32 scram-sha-256",
		}},
	},
	{
		name: "pq", script: "go.sh", limit: 10 * time.Minute, read: readGoTest,
		server: backend.Config{HBA: []string{
			"host all pqgomd5 127.0.0.1/32 md5",
			"host all pqgopassword 127.0.0.1/32 password",
			"host all pqgoscram 127.0.0.1/32 scram-sha-256",
		}},
	},
	{name: "pg-pool", script: "node.sh", limit: 10 * time.Minute, read: readJUnit},
	{name: "pg-cursor", script: "node.sh", limit: 10 * time.Minute, read: readJUnit},
	{
		name: "node-postgres", script: "node-postgres.sh", needs: "NODE_POSTGRES_SOURCE",
		limit: 20 * time.Minute, read: readJUnit,
	},
	{
		name: "psycopg", script: "python.sh", needs: "PSYCOPG_SOURCE", limit: 30 * time.Minute, read: readJUnit,
		server: backend.Config{Settings: map[string]string{"max_prepared_transactions": "10"}},
	},
}

// choose returns the suites of these names, in the order of the list. For none
// it returns all whose checkout, if they need one, is there.
func choose(names []string) ([]suite, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(suites), func(s suite) bool {
			return s.needs != "" && os.Getenv(s.needs) == ""
		}), nil
	}
	var chosen []suite
	var known []string
	for _, s := range suites {
		known = append(known, s.name)
		if slices.Contains(names, s.name) {
			if s.needs != "" && os.Getenv(s.needs) == "" {
				return nil, fmt.Errorf("%s needs a checkout of its project, whose folder %s names", s.name, s.needs)
			}
			chosen = append(chosen, s)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no suite %q: there are %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
