package integration

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the product answers to testdata/errors.txtar, to be read before it is committed")

const errorsPath = "testdata/errors.txtar"

// Every statement of the table fails with exactly its error, the same in both
// protocols, and leaves everything as it was.
func TestBadStatementsGetTheirErrors(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile(errorsPath)
	if err != nil {
		t.Fatal(err)
	}
	d := newDatabase(t)
	s := connect(t, d.url)
	s.exec(string(archive.Files[0].Data)) // the objects that the statements speak of
	before := s.everything()
	cases := archive.Files[1:]
	for _, p := range []protocol{simple, extended} {
		other := connect(t, d.url)
		other.protocol = p
		for i, c := range cases {
			statement, want, _ := strings.Cut(string(c.Data), "\n\n")
			statement = strings.TrimSuffix(statement, ";")
			_, err := other.run(statement)
			got := errorText(statement, err)
			if *update && p == simple {
				cases[i].Data = []byte(statement + ";\n\n" + got + "\n\n")
				continue
			}
			if diff := cmp.Diff(strings.TrimSpace(want), got); diff != "" {
				t.Errorf("%s, %s (-want +got)\n%s\n%s", c.Name, p, statement, diff)
			}
			other.want(`select 'the session works'`, "the session works")
		}
	}
	if diff := cmp.Diff(before, s.everything()); diff != "" {
		t.Errorf("failed statements changed something (-before +after)\n%s", diff)
	}
	if *update {
		if err := os.WriteFile(errorsPath, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// everything is all that a failed statement must leave alone. Changes of a
// source go on being recorded once a refresh, also one that failed, asked for it.
func (s *session) everything() []string {
	s.t.Helper()
	all := s.rows(`select nspname, relname, relkind from pg_class c join pg_namespace n on n.oid = relnamespace
		where nspname not in ('pg_catalog', 'pg_toast', 'information_schema', 'rwproxy_log') order by 1, 2`)
	all = append(all, s.rows(`select * from orders order by id`)...)
	all = append(all, s.rows(`select * from totals order by day`)...)
	return append(all, s.rows(`select flow_name, predicate, query, properties, changed_at from rwproxy.flows order by 1`)...)
}

// errorText shows an error as the table has it.
func errorText(statement string, err error) string {
	if err == nil {
		return "no error"
	}
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := fmt.Sprintf("%s %s: %s", e.Severity, e.Code, e.Message)
	if e.Detail != "" {
		text += "\nDETAIL: " + e.Detail
	}
	if e.Hint != "" {
		text += "\nHINT: " + e.Hint
	}
	if e.Position > 0 {
		characters := []rune(statement)
		if int(e.Position) > len(characters) {
			return text + "\nAT: the end"
		}
		rest, _, _ := strings.Cut(string(characters[e.Position-1:]), "\n")
		text += "\nAT: " + rest
	}
	return text
}
