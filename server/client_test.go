package server_test

import (
	"context"
	"database/sql"
	"errors"
	osexec "os/exec"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/lib/pq"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// behind returns the URL of a database with table log, through a proxy that
// intercepts, and a direct connection to it.
func behind(t *testing.T) (string, *pgx.Conn) {
	t.Helper()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	return startProxy(t, refreshing).url(t, url), direct
}

func TestPgxRunsOursInEveryMode(t *testing.T) {
	t.Parallel()
	url, direct := behind(t)
	conn := connect(t, url)
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		for range 2 {
			tag, err := conn.Exec(t.Context(), refreshGood, mode)
			if err != nil || tag.String() != "REFRESH STREAMING TABLE" {
				t.Errorf("%s: %v, %v", mode, tag, err)
			}
		}
		_, err := conn.Exec(t.Context(), "refresh streaming table refused", mode)
		var failure *pgconn.PgError
		if !errors.As(err, &failure) || failure.Code != "55000" || failure.Hint != "Try later." {
			t.Errorf("%s: %v", mode, err)
		}
	}
	batch := &pgx.Batch{}
	batch.Queue("insert into log values ('mine', false)")
	batch.Queue(refreshGood)
	batch.Queue("select count(*) from log")
	if err := conn.SendBatch(t.Context(), batch).Close(); err != nil {
		t.Error(err)
	}
	if got := value(t, direct, "select count(*) from log"); got != "12" {
		t.Errorf("%s rows in log, want 12", got)
	}
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), refreshGood); err != nil {
		t.Error(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Error(err)
	}
	if got := value(t, direct, "select count(*) from log"); got != "12" {
		t.Errorf("%s rows in log after a rollback, want 12", got)
	}
}

func TestLibPQRunsOurs(t *testing.T) {
	t.Parallel()
	url, direct := behind(t)
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := db.ExecContext(t.Context(), refreshGood); err != nil {
		t.Error(err)
	}
	statement, err := db.PrepareContext(t.Context(), refreshGood)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := statement.ExecContext(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := db.ExecContext(t.Context(), "refresh streaming table divided"); err == nil || !strings.Contains(err.Error(), "division by zero") {
		t.Error(err)
	}
	wantLog(t, direct, "good, good, good")
}

func TestPsqlRunsOurs(t *testing.T) {
	t.Parallel()
	url, direct := behind(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	psql := osexec.CommandContext(ctx, "psql", "-XqAt", url)
	psql.Stdin = strings.NewReader(`
		\set VERBOSITY verbose
		refresh streaming table good;
		begin; refresh streaming table good; commit;
		refresh streaming table good \; select 'several' \; copy log from stdin;
a	f
\.
		\copy (select 'copied') to stdout
		refresh streaming table rows;
		refresh streaming table refused;
		refresh streaming tabel good;
		select 'the end';
	`)
	out, err := psql.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"several\ncopied\n",
		"00112233-4455-6677-8899-aabbccddee11|here\n",
		"ERROR:  55000: not now\nLINE 1: refresh streaming table refused;\n                  ^\nHINT:  Try later.\n",
		"ERROR:  42601: ",
		"the end\n",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("output misses %q:\n%s", want, out)
		}
	}
	wantLog(t, direct, "good, good joined, good joined, a, rows")
}

// TestRefusalsComeFromPostgresItself covers statements that are ours by their
// first words, but malformed: Postgres fails on them too, and what the client
// reads is our reason.
func TestRefusalsComeFromPostgresItself(t *testing.T) {
	t.Parallel()
	w, _ := intercepting(t)
	const bad = "refresh streaming table good sometimes"
	for name, test := range map[string]struct {
		send     []byte
		answer   string
		position int32
	}{
		"a Query":               {query(bad), "E(42601) ZI", 30},
		"behind another":        {query("select 'é'; " + bad), "E(42601) ZI", 42},
		"in front of another":   {query(bad + "; select 1"), "E(42601) ZI", 30},
		"behind a worse one":    {query("selec 1; " + bad), "E(42601) ZI", 1},
		"the extended protocol": {withSync(run("  " + bad)...), "E(42601) ZI", 32},
		"a pipeline":            {withSync(concat(run("select 1"), run(bad), run("select 2"))...), "1 2 T D C(SELECT 1) E(42601) ZI", 30},
	} {
		w.send(test.send)
		frames := w.until('Z')
		wantShape(t, frames, test.answer)
		if e := firstError(t, frames); e.Position != test.position || (name != "behind a worse one") != strings.Contains(e.Message, "sometimes") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	w.send(query("begin"))
	w.until('Z')
	w.send(query(bad))
	wantShape(t, w.until('Z'), "E(42601) ZE")
	w.send(query("rollback; " + refreshGood))
	wantShape(t, w.until('Z'), "C(ROLLBACK) C(REFRESH STREAMING TABLE) ZI")
}
