// Package integration tests rwproxy as its users meet it: a real `rwproxy
// serve` in front of a real Postgres, reached by host and port alone.
//
// Six clients (psql, pgx, lib/pq, node-postgres, psycopg, pgjdbc) run the
// worked examples and ordinary SQL; the rest is Go on the pgconn layer of pgx,
// which sends exactly the messages a test asks for.
//
//   - testdata/errors.txtar: statements that must fail, and their exact errors
//   - testdata/clients: scripts that every client runs, besides ../examples
//   - clients: one small program a foreign client, and install.sh
//
// It may import internal/embedded and nothing else of this module.
package integration
