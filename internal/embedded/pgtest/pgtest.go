// Package pgtest gives each test package a Postgres of its own, and each test
// a database of its own.
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		url := pgtest.Database(t)
//	}
//
// It may import internal/embedded.
package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// binVariable names the folder of the server binaries to test with; without it
// the newest installed ones are used.
const binVariable = "RWPROXY_TEST_PG_BIN"

// limit bounds every step of this package: it is reached only when something
// hangs.
const limit = time.Minute

var (
	server    *embedded.Postgres // set by Run, before any test
	databases atomic.Int64       // numbers the databases
)

// Run starts a server, runs the tests, stops the server and checks that no
// goroutine is left. Each setting is name=value, as in postgresql.conf. It
// returns the exit status for TestMain.
func Run(m *testing.M, settings ...string) int {
	status, err := run(m, settings)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return status
}

func run(m *testing.M, settings []string) (status int, err error) {
	values := map[string]string{
		// The data lives as long as the tests do.
		"fsync":              "off",
		"synchronous_commit": "off",
		"full_page_writes":   "off",
		"autovacuum":         "off",
		"max_connections":    "200",
		"shared_buffers":     "32MB",
		"wal_level":          "logical",
	}
	for _, setting := range settings {
		name, value, found := strings.Cut(setting, "=")
		if !found {
			return 1, fmt.Errorf("setting %q is not name=value", setting)
		}
		values[name] = value
	}
	dir, err := os.MkdirTemp("", "rwproxy-test-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	server, err = embedded.Start(ctx, embedded.Config{
		DataDir:  dir,
		Bin:      os.Getenv(binVariable),
		Settings: values,
		Trust:    true,
	})
	if err != nil {
		return 1, err
	}
	status = m.Run()
	ctx, cancelStop := context.WithTimeout(context.Background(), limit)
	defer cancelStop()
	if err := server.Stop(ctx); err != nil {
		return 1, err
	}
	if status == 0 {
		if err := goleak.Find(); err != nil {
			return 1, err
		}
	}
	return status, nil
}

// Server returns the server that Run started. A test that kills or restarts
// it cannot run in parallel with others: start one of your own for that.
func Server(t testing.TB) *embedded.Postgres {
	t.Helper()
	if server == nil {
		t.Fatal("no server: TestMain must call pgtest.Run")
	}
	return server
}

// TempDir returns a directory for the data of a server of the test's own,
// removed when the test ends. The server's user may enter it, as it may not
// enter t.TempDir when the tests run as root.
func TempDir(t testing.TB) string {
	t.Helper()
	directory, err := os.MkdirTemp("", "rwproxy-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(directory, "data")
}

// Database creates an empty database and returns its URL, for the superuser.
// It is dropped, with its sessions, when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	s := Server(t)
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := administer(s, "create database "+name+" template template0"); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() {
		if err := administer(s, "drop database "+name+" with (force)"); err != nil {
			t.Errorf("drop database: %v", err)
		}
	})
	return s.URL(name)
}

// administer runs one statement in database postgres.
func administer(s *embedded.Postgres, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	connection, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer connection.Close(ctx)
	_, err = connection.Exec(ctx, sql)
	return err
}
