package pgtest

import (
	"errors"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) { os.Exit(Run(m, "work_mem=7MB")) }

// query runs the statements and returns the value of the last one.
func query(t *testing.T, url, sql string) string {
	t.Helper()
	connection, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	results, err := connection.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return string(results[len(results)-1].Rows[0][0])
}

func TestEveryTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	first, second := Database(t), Database(t)
	query(t, first, "create table public.mine (); select 'made'")
	if got := query(t, second, "select coalesce(to_regclass('public.mine')::text, 'none')"); got != "none" {
		t.Errorf("the second database has the first one's table %s", got)
	}
}

func TestADatabaseIsDroppedWithItsSessions(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("a test that leaves a session open", func(t *testing.T) {
		url = Database(t)
		connection, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { connection.PgConn().Conn().Close() })
	})
	if _, err := pgx.Connect(t.Context(), url); err == nil {
		t.Error("the database is still there")
	}
}

func TestSettingsReachTheServer(t *testing.T) {
	t.Parallel()
	if got := query(t, Server(t).URL("postgres"), "show work_mem"); got != "7MB" {
		t.Errorf("work_mem = %s", got)
	}
}

func TestTheServerIsStartedWhenItIsFirstAskedFor(t *testing.T) {
	t.Parallel()
	c := &cluster{}
	if err := c.stop(); err != nil {
		t.Errorf("stop of a server that was never started: %v", err)
	}
	if c.server != nil || c.dir != "" {
		t.Error("a server was started")
	}
	first, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	if second, err := c.start(); second != first || err != nil {
		t.Errorf("a second server was started: %v", err)
	}
	if err := c.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its data is still there: %v", err)
	}
}
