package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// behind starts an instance in front of a database of the test's and returns
// the database's URL through it.
func behind(t *testing.T) string {
	t.Helper()
	direct := pgtest.Database(t)
	i := launch(t, settings(t, map[string]string{"RWPROXY_UPSTREAM": direct}))
	config, err := pgx.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	return i.url(config.Database).String()
}

// session is a connection that is closed when the test ends.
func session(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(testContext(t), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

// exec runs statements one by one.
func exec(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, sql := range statements {
		if _, err := conn.Exec(testContext(t), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// running is a client command that runs.
type running struct {
	t         *testing.T
	interrupt context.CancelFunc
	output    *bufio.Reader // of both streams
	ended     chan error
}

// startCommand runs a command whose output is a terminal of so many columns, or
// a pipe if there are none.
func startCommand(t *testing.T, columns uint16, arguments ...string) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(testContext(t))
	r := &running{t: t, interrupt: cancel, ended: make(chan error, 1)}
	reader, writer := io.Reader(nil), io.WriteCloser(nil)
	if columns > 0 {
		master, terminal, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { master.Close() })
		if err := pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: columns}); err != nil {
			t.Fatal(err)
		}
		reader, writer = master, terminal
	} else {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { read.Close() })
		reader, writer = read, write
	}
	r.output = bufio.NewReader(reader)
	go func() {
		p := &program{stdout: writer, stderr: writer, lookup: os.LookupEnv}
		err := p.run(ctx, arguments)
		r.ended <- err
		writer.Close()
	}()
	return r
}

// await reads lines until one has all the texts.
func (r *running) await(texts ...string) {
	r.t.Helper()
	var read strings.Builder
	for {
		line, err := r.output.ReadString('\n')
		read.WriteString(line)
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			return
		}
		if err != nil {
			r.t.Fatalf("no line has %q in\n%s", texts, read.String())
		}
	}
}

// end waits until the command has ended, and returns its error.
func (r *running) end() error {
	r.t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-testContext(r.t).Done():
		r.t.Fatal("it does not end")
		return nil
	}
}

func TestFollowPrintsEachRefreshAsItBeginsAndEnds(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]struct {
		arguments    []string
		table, state string
	}{
		"lines": {[]string{"--follow"}, "public.%s ", " %s "},
		"json":  {[]string{"-f", "--json"}, `"target_table":"%s"`, `"state":"%s"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := behind(t)
			conn, other := session(t, url), session(t, url)
			exec(t, conn,
				"create table visit (day date)",
				"create streaming table visits flow replace where true by name select day from visit",
				"create streaming table days flow replace where true by name select day from visit")

			r := startCommand(t, 0, slices.Concat([]string{"refreshes", "--limit=1", "-d", url}, options.arguments)...)
			await := func(table, state string) {
				t.Helper()
				r.await(fmt.Sprintf(options.table, table), fmt.Sprintf(options.state, state))
			}
			await("days", "COMPLETED") // the newest
			// One that waits for a lock has begun; one in a transaction shows
			// when that commits.
			exec(t, conn, "begin", "refresh streaming table days full", "lock table visits")
			done := make(chan error, 1)
			go func() {
				_, err := other.Exec(testContext(t), "refresh streaming table visits full")
				done <- err
			}()
			await("visits", "RUNNING")
			exec(t, conn, "commit")
			await("days", "COMPLETED")
			await("visits", "COMPLETED")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			r.interrupt()
			if err := r.end(); err != nil {
				t.Errorf("interrupted: %v", err)
			}
		})
	}
}
