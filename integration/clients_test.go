package integration

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"
)

// client is a way to run statements: a driver and one of its modes.
type client struct {
	name string
	// stops says that an error ends the script: its statements are one batch.
	stops bool
	// run returns what came back as events, in order.
	run func(t *testing.T, d database, statements []string) []string
}

// allClients are the clients that everything documented must work with.
func allClients() []client {
	return []client{
		{name: "psql, a statement at a time", run: psqlFile},
		{name: "psql, all statements in one message", stops: true, run: psqlCommand},
		{name: "pgx, simple protocol", run: pgxMode(pgx.QueryExecModeSimpleProtocol)},
		{name: "pgx, unnamed statements", run: pgxMode(pgx.QueryExecModeExec)},
		{name: "pgx, prepared statements", run: pgxMode(pgx.QueryExecModeCacheStatement)},
		{name: "pgx, pipeline", stops: true, run: pgxPipeline},
		{name: "lib/pq, simple protocol", run: libpq(false)},
		{name: "lib/pq, prepared statements", run: libpq(true)},
		{name: "node-postgres, simple protocol", run: foreign("node-postgres", nodeCommand, "simple")},
		{name: "node-postgres, prepared statements", run: foreign("node-postgres", nodeCommand, "extended")},
		{name: "node-postgres, all statements in one message", stops: true, run: foreign("node-postgres", nodeCommand, "together")},
		{name: "psycopg, simple protocol", run: foreign("psycopg", pythonCommand, "simple")},
		{name: "psycopg, prepared statements", run: foreign("psycopg", pythonCommand, "extended")},
		{name: "psycopg, all statements in one message", stops: true, run: foreign("psycopg", pythonCommand, "together")},
		{name: "psycopg, pipeline", stops: true, run: foreign("psycopg", pythonCommand, "pipeline")},
		{name: "pgjdbc, simple protocol", run: foreign("pgjdbc", javaCommand, "simple")},
		{name: "pgjdbc, prepared statements", run: foreign("pgjdbc", javaCommand, "extended")},
		{name: "pgjdbc, all statements in one batch", stops: true, run: foreign("pgjdbc", javaCommand, "together")},
	}
}

// An event is a line: a result set's header or row as psql --no-align prints
// it, or an error. All clients are compared on these.
func headerEvent(columns []string) string    { return strings.Join(columns, "|") }
func rowEvent(values []string) string        { return strings.Join(values, "|") }
func errorEvent(code, message string) string { return "error " + code + ": " + message }

// connection settings of a foreign client.
func libpqEnvironment(t *testing.T, d database) []string {
	t.Helper()
	u, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	return append(cleanEnvironment(),
		"PGHOST="+host, "PGPORT="+port, "PGUSER="+u.User.Username(), "PGDATABASE="+strings.TrimPrefix(u.Path, "/"),
		"PGCLIENTENCODING=UTF8", "PYTHONIOENCODING=utf-8", "LC_ALL=C.UTF-8")
}

// missing is the one thing to say when a client cannot run: it is a failure,
// because a skipped client is an untested one.
func missing(t *testing.T, name string, err error, output []byte) {
	t.Helper()
	t.Fatalf("%s does not run; integration/clients/install.sh installs what it needs: %v\n%s", name, err, output)
}

// psqlOptions make psql print one event a line.
var psqlOptions = []string{
	"--no-psqlrc", "--quiet", "--no-align", "--pset=footer=off", "--pset=null=NULL", "--set=VERBOSITY=verbose",
}

func psqlFile(t *testing.T, d database, statements []string) []string {
	t.Helper()
	return psql(t, d, strings.Join(statements, ";\n")+";\n", "--file=-")
}

func psqlCommand(t *testing.T, d database, statements []string) []string {
	t.Helper()
	return psql(t, d, "", "--command="+strings.Join(statements, ";\n"))
}

var psqlError = regexp.MustCompile(`(?m)^(?:psql:.*?: )?ERROR:  (\w{5}): (.*)$`)

// psql runs psql. What it prints on its two outputs has no common order, so
// the errors come last; see [ordered].
func psql(t *testing.T, d database, input string, arguments ...string) []string {
	t.Helper()
	cmd := exec.Command("psql", append(psqlOptions, arguments...)...)
	cmd.Env = libpqEnvironment(t, d)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	failures := psqlError.FindAllStringSubmatch(stderr.String(), -1)
	if err != nil && len(failures) == 0 {
		missing(t, "psql", err, stderr.Bytes())
	}
	events := lines(stdout.String())
	for _, e := range failures {
		events = append(events, errorEvent(e[1], e[2]))
	}
	return events
}

// ordered puts the errors of events last: the order in which psql shows them.
func ordered(events []string) []string {
	var rows, errors []string
	for _, e := range events {
		if strings.HasPrefix(e, "error ") {
			errors = append(errors, e)
		} else {
			rows = append(rows, e)
		}
	}
	return append(rows, errors...)
}

func pgxMode(mode pgx.QueryExecMode) func(*testing.T, database, []string) []string {
	return func(t *testing.T, d database, statements []string) []string {
		t.Helper()
		ctx := t.Context()
		conn := pgxConnect(t, d)
		var events []string
		for _, s := range statements {
			rows, err := conn.Query(ctx, s, mode, pgx.QueryResultFormats{pgx.TextFormatCode})
			if err != nil {
				events = append(events, pgxError(t, err))
				continue
			}
			events = append(events, pgxRows(t, rows)...)
		}
		return events
	}
}

func pgxPipeline(t *testing.T, d database, statements []string) []string {
	t.Helper()
	conn := pgxConnect(t, d)
	batch := &pgx.Batch{}
	for _, s := range statements {
		batch.Queue(s)
	}
	results := conn.SendBatch(t.Context(), batch)
	var events []string
	for range statements {
		rows, err := results.Query()
		if err != nil {
			events = append(events, pgxError(t, err))
			break
		}
		of := pgxRows(t, rows)
		if events = append(events, of...); len(of) > 0 && strings.HasPrefix(of[len(of)-1], "error ") {
			break
		}
	}
	// The batch's error has been reported by the statement that failed.
	_ = results.Close()
	return events
}

func pgxConnect(t *testing.T, d database) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(d.url)
	if err != nil {
		t.Fatal(err)
	}
	// The mode of batches: no statement is parsed before the ones in front of it have run.
	config.DefaultQueryExecMode = pgx.QueryExecModeExec
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func pgxRows(t *testing.T, rows pgx.Rows) []string {
	t.Helper()
	defer rows.Close()
	var events []string
	fields := rows.FieldDescriptions()
	if len(fields) > 0 {
		columns := make([]string, len(fields))
		for i, f := range fields {
			columns[i] = f.Name
		}
		events = append(events, headerEvent(columns))
	}
	for rows.Next() {
		events = append(events, rowEvent(textValues(t, rows)))
	}
	if err := rows.Err(); err != nil {
		events = append(events, pgxError(t, err))
	}
	return events
}

// textValues returns a row as text whatever format it came in.
func textValues(t *testing.T, rows pgx.Rows) []string {
	t.Helper()
	values := make([]string, len(rows.RawValues()))
	for i, raw := range rows.RawValues() {
		switch f := rows.FieldDescriptions()[i]; {
		case raw == nil:
			values[i] = "NULL"
		case f.Format == pgx.TextFormatCode:
			values[i] = string(raw)
		default:
			var text string
			if err := rows.Conn().TypeMap().Scan(f.DataTypeOID, f.Format, raw, &text); err != nil {
				t.Fatalf("column %s: %v", f.Name, err)
			}
			values[i] = text
		}
	}
	return values
}

func pgxError(t *testing.T, err error) string {
	t.Helper()
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) {
		t.Fatal(err)
	}
	return errorEvent(pgErr.Code, pgErr.Message)
}

func libpq(prepared bool) func(*testing.T, database, []string) []string {
	return func(t *testing.T, d database, statements []string) []string {
		t.Helper()
		db, err := sql.Open("postgres", d.url+"?sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		db.SetMaxOpenConns(1) // one session, so that SET lasts
		var events []string
		for _, s := range statements {
			events = append(events, libpqStatement(t, db, s, prepared)...)
		}
		return events
	}
}

func libpqStatement(t *testing.T, db *sql.DB, statement string, prepared bool) []string {
	t.Helper()
	query := db.QueryContext
	if prepared {
		p, err := db.PrepareContext(t.Context(), statement)
		if err != nil {
			return []string{libpqError(t, err)}
		}
		defer func() { _ = p.Close() }()
		query = func(ctx context.Context, _ string, arguments ...any) (*sql.Rows, error) {
			return p.QueryContext(ctx, arguments...)
		}
	}
	rows, err := query(t.Context(), statement)
	if err != nil {
		return []string{libpqError(t, err)}
	}
	defer func() { _ = rows.Close() }()
	var events []string
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	if len(columns) > 0 {
		events = append(events, headerEvent(columns))
	}
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		text := make([]string, len(values))
		for i, v := range values {
			if text[i] = v.String; !v.Valid {
				text[i] = "NULL"
			}
		}
		events = append(events, rowEvent(text))
	}
	if err := rows.Err(); err != nil {
		events = append(events, libpqError(t, err))
	}
	return events
}

func libpqError(t *testing.T, err error) string {
	t.Helper()
	var pqErr *pq.Error
	if !errors.As(err, &pqErr) {
		t.Fatal(err)
	}
	return errorEvent(string(pqErr.Code), pqErr.Message)
}

// foreign runs one of the programs in clients.
func foreign(name string, command func(*testing.T, database) []string, mode string) func(*testing.T, database, []string) []string {
	return func(t *testing.T, d database, statements []string) []string {
		t.Helper()
		arguments := append(command(t, d), mode)
		cmd := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
		cmd.Env = libpqEnvironment(t, d)
		cmd.Stdin = strings.NewReader(strings.Join(statements, "\x00") + "\x00")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		output, err := cmd.Output()
		if err != nil {
			missing(t, name, err, stderr.Bytes())
		}
		return foreignEvents(t, string(output))
	}
}

func nodeCommand(*testing.T, database) []string {
	return []string{"node", filepath.Join("clients", "node", "client.js")}
}

// pythonCommand uses the system's own Python, for which Debian packages psycopg.
func pythonCommand(*testing.T, database) []string {
	return []string{"/usr/bin/python3", filepath.Join("clients", "python", "client.py")}
}

const pgjdbcJar = "/usr/share/java/postgresql.jar"

// javaClasses compiles the Java client, once.
var javaClasses = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratchDir, "java")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	out, err := exec.Command("javac", "-cp", pgjdbcJar, "-d", dir, filepath.Join("clients", "java", "Client.java")).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

func javaCommand(t *testing.T, d database) []string {
	t.Helper()
	dir, err := javaClasses()
	if err != nil {
		missing(t, "pgjdbc", err, nil)
	}
	// pgjdbc sets the session's time zone to Java's.
	return []string{
		"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Duser.timezone=" + d.zone, "-cp", dir + ":" + pgjdbcJar, "Client",
	}
}

// foreignEvents reads what a program of clients printed.
func foreignEvents(t *testing.T, output string) []string {
	t.Helper()
	unescape := strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n", `\r`, "\r")
	var events []string
	for _, line := range lines(output) {
		fields := strings.Split(line, "\t")
		for i, f := range fields {
			if fields[i] = unescape.Replace(f); f == `\N` {
				fields[i] = "NULL"
			}
		}
		switch kind, values := fields[0], fields[1:]; kind {
		case "columns":
			events = append(events, headerEvent(values))
		case "row":
			events = append(events, rowEvent(values))
		case "error":
			events = append(events, errorEvent(values[0], values[1]))
		default:
			t.Fatalf("a client printed %q", line)
		}
	}
	return events
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}
