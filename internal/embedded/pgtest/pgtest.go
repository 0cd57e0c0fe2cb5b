// Package pgtest gives each test package a Postgres of its own, started when a
// test first asks for it, and each test a database of its own.
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
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// binVariable names the folder of the server binaries to test with; without it
// the newest installed ones are used.
const binVariable = "RWPROXY_TEST_PG_BIN"

// limit bounds every step of this package: it is reached only when something
// hangs.
const limit = time.Minute

var (
	own       *cluster     // set by Run, before any test
	databases atomic.Int64 // numbers the databases
)

// cluster is the server of a test package. It is started when the first test
// asks for it, so that a run without such a test, a fuzz worker's say, has none.
type cluster struct {
	settings map[string]string

	once   sync.Once
	dir    string             // "" until started
	server *embedded.Postgres // nil until started
	err    error              // why it did not start
}

// Run runs the tests, stops the server if they have used it, and checks that no
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
	own = &cluster{settings: values}
	status = m.Run()
	if err := own.stop(); err != nil {
		return 1, err
	}
	if status == 0 {
		if err := goleak.Find(); err != nil {
			return 1, err
		}
	}
	return status, nil
}

// start starts the server, once.
func (c *cluster) start() (*embedded.Postgres, error) {
	c.once.Do(func() {
		if c.dir, c.err = os.MkdirTemp("", "rwproxy-test-"); c.err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		c.server, c.err = embedded.Start(ctx, embedded.Config{
			DataDir:  c.dir,
			Bin:      os.Getenv(binVariable),
			Settings: c.settings,
			Trust:    true,
			Logger:   zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), crashes{}, zap.DebugLevel)),
		})
	})
	return c.server, c.err
}

// crashes prints the lines of the server's log that say how a backend of it
// crashed, and in which statement: every test meanwhile fails with it.
type crashes struct{}

func (crashes) Write(entry []byte) (int, error) {
	for _, sign := range []string{"was terminated by signal", "Failed process was running", "PANIC:"} {
		if bytes.Contains(entry, []byte(sign)) {
			return os.Stderr.Write(entry)
		}
	}
	return len(entry), nil
}

func (crashes) Sync() error { return nil }

// stop stops the server if it was started, and removes its data.
func (c *cluster) stop() error {
	var err error
	if c.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		err = c.server.Stop(ctx)
	}
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// Server returns the package's server. A test that kills or restarts it cannot
// run in parallel with others: start one of your own for that.
func Server(t testing.TB) *embedded.Postgres {
	t.Helper()
	if own == nil {
		t.Fatal("no server: TestMain must call pgtest.Run")
	}
	server, err := own.start()
	if err != nil {
		t.Fatal(err)
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
