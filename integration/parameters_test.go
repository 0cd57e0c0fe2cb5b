package integration

import (
	"bytes"
	"database/sql"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// A statement with parameters is its text and, behind the byte 1F each, its
// parameters with their types; see clients/README.md.
func withParameters(text string, parameters ...string) string {
	return strings.Join(append([]string{text}, parameters...), "\x1f")
}

func splitParameters(t *testing.T, statement string) (text string, parameters []any) {
	t.Helper()
	parts := strings.Split(statement, "\x1f")
	for _, p := range parts[1:] {
		kind, value, _ := strings.Cut(p, " ")
		switch kind {
		case "date":
			day, err := time.Parse(time.DateOnly, value)
			if err != nil {
				t.Fatal(err)
			}
			parameters = append(parameters, day)
		case "integer":
			n, err := strconv.ParseInt(value, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			parameters = append(parameters, int32(n))
		default:
			parameters = append(parameters, value)
		}
	}
	return parts[0], parameters
}

// bindingClients are the ways in which clients send parameters.
func bindingClients() []client {
	return []client{
		{name: "psql, variables", run: psqlVariables},
		{name: "pgx, unnamed statements", run: pgxBound(pgx.QueryExecModeExec)},
		{name: "pgx, described statements", run: pgxBound(pgx.QueryExecModeDescribeExec)},
		{name: "pgx, prepared statements", run: pgxBound(pgx.QueryExecModeCacheStatement)},
		{name: "pgx, simple protocol", run: pgxBound(pgx.QueryExecModeSimpleProtocol)},
		{name: "lib/pq", run: libpqBound("")},
		{name: "lib/pq, binary", run: libpqBound("&binary_parameters=yes")},
		{name: "node-postgres", run: foreign("node-postgres", nodeCommand, "bound")},
		{name: "node-postgres, binary", run: foreign("node-postgres", nodeCommand, "bound-binary")},
		{name: "psycopg", run: foreign("psycopg", pythonCommand, "bound")},
		{name: "psycopg, binary", run: foreign("psycopg", pythonCommand, "bound-binary")},
		{name: "pgjdbc", run: foreign("pgjdbc", javaCommand, "bound")},
		{name: "pgjdbc, binary", run: foreign("pgjdbc", javaCommand, "bound-binary")},
	}
}

// psqlVariables has psql write the values into the statements.
func psqlVariables(t *testing.T, d database, statements []string) []string {
	t.Helper()
	var script bytes.Buffer
	for _, s := range statements {
		parts := strings.Split(s, "\x1f")
		for i, p := range parts[1:] {
			_, value, _ := strings.Cut(p, " ")
			script.WriteString("\\set p" + strconv.Itoa(i+1) + " '" + strings.ReplaceAll(value, "'", "''") + "'\n")
		}
		script.WriteString(regexp.MustCompile(`\$(\d)`).ReplaceAllString(parts[0], ":'p$1'") + ";\n")
	}
	return psql(t, d, script.String(), "--file=-")
}

func pgxBound(mode pgx.QueryExecMode) func(*testing.T, database, []string) []string {
	return func(t *testing.T, d database, statements []string) []string {
		t.Helper()
		conn := pgxConnect(t, d)
		var events []string
		for _, s := range statements {
			text, parameters := splitParameters(t, s)
			rows, err := conn.Query(t.Context(), text, append([]any{mode}, parameters...)...)
			if err != nil {
				events = append(events, pgxError(t, err))
				continue
			}
			events = append(events, pgxRows(t, rows)...)
		}
		return events
	}
}

func libpqBound(options string) func(*testing.T, database, []string) []string {
	return func(t *testing.T, d database, statements []string) []string {
		t.Helper()
		db, err := sql.Open("postgres", d.url+"?sslmode=disable"+options)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		db.SetMaxOpenConns(1)
		var events []string
		for _, s := range statements {
			text, parameters := splitParameters(t, s)
			if _, err := db.ExecContext(t.Context(), text, parameters...); err != nil {
				events = append(events, libpqError(t, err))
			}
		}
		return events
	}
}

func TestEveryClientBindsParametersOfOurs(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"postgres", "databricks"} {
		for _, c := range bindingClients() {
			t.Run(dialect+", "+c.name, func(t *testing.T) {
				t.Parallel()
				d := newDatabase(t)
				s := connect(t, d.url)
				s.exec(createSales, insertSales, createFresh, insertFresh, `create table gone (id integer)`, `insert into gone values (0)`,
					`alter database `+d.name+` set rwproxy.dialect = '`+dialect+`'`,
					`create streaming table per_day tblproperties ('rwproxy.dialect' = '`+dialect+`') flow replace where day >= '2024-02-01'
						by name select day, count(*) as n from sales group by day`,
					`insert into sales values (8, '2024-01-31', 'n', 1), (9, '2024-02-01', 'n', 1)`)
				// These two write the values into the text: a backslash means there what
				// the dialect says, and an error quotes the value.
				region, condition := `it's \ one`, "day = $1"
				switch c.name {
				case "psql, variables":
					region, condition = "it's one", "day = '2024-02-02'"
				case "pgx, simple protocol":
					region, condition = "it's one", "day =  '2024-02-02 00:00:00Z'"
				}
				got := c.run(t, d, []string{
					withParameters(`refresh streaming table per_day where day >= $1`, "date 2024-02-01"),
					withParameters(`refresh streaming table per_day where day = $1 and n > $2 - 100`, "date 2024-01-31", "integer 7"),
					withParameters(`insert into sales replace where day = $1 select id + $2, day, region, amount from fresh where day = $3`,
						"date 2024-02-01", "integer 5", "date 2024-02-01"),
					withParameters(`insert into sales by name replace using (id) select $1 as id, $2 as region`, "integer 1", "text "+region),
					withParameters(`insert into sales replace where day = $1 select * from fresh`, "date 2024-02-02"),
					withParameters(`insert overwrite gone select id from sales where id > $1`, "integer 2"),
				})
				want := []string{errorEvent("44000", `written data does not conform to partial table overwrite condition or constraint "`+condition+`"`)}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				s.want(`select * from per_day order by day`, "2024-01-31|2", "2024-02-01|3")
				s.want(`select id, day, region, amount from sales order by id`, "1|NULL|"+region+"|NULL",
					"4|NULL|NULL|40.00", "8|2024-01-31|n|1.00", "10|2024-02-01|n|50.00")
				s.want(`select * from gone order by id`, "4", "8", "10")
			})
		}
	}
}
