package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

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

// execute runs statements one by one.
func execute(t *testing.T, conn *pgx.Conn, statements ...string) {
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

// awaitText reads until a text has come, within a line.
func (r *running) awaitText(text string) {
	r.t.Helper()
	var read strings.Builder
	for !strings.Contains(read.String(), text) {
		b, err := r.output.ReadByte()
		if err != nil {
			r.t.Fatalf("no %q in %q", text, read.String())
		}
		read.WriteByte(b)
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
			execute(t, conn,
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
			execute(t, conn, "begin", "refresh streaming table days full", "lock table visits")
			done := make(chan error, 1)
			go func() {
				_, err := other.Exec(testContext(t), "refresh streaming table visits full")
				done <- err
			}()
			await("visits", "RUNNING")
			execute(t, conn, "commit")
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

// flow makes a streaming table of one row a source row, whose refreshes other
// tests' sessions can hold up by a lock on the source.
func flow(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	execute(t, conn, "create table visit (day date)",
		"create streaming table visits flow replace where true by name select day from visit",
		"insert into visit values ('2026-01-01')")
}

func TestWaitShowsOnATerminalHowARefreshGoesOn(t *testing.T) {
	t.Parallel()
	url := behind(t)
	conn := session(t, url)
	flow(t, conn)
	execute(t, conn, "begin", "lock table visit")
	r := startCommand(t, 40, "refresh", "visits", "--full", "--wait", "-d", url)
	r.awaitText("visits: ")
	execute(t, conn, "commit")
	r.await("refreshed public.visits: FULL_RECOMPUTE (FULL_REFRESH), 0 rows deleted, 1 rows inserted")
	if err := r.end(); err != nil {
		t.Error(err)
	}
}

func TestAnInterruptedWaitLeavesTheRefreshAlone(t *testing.T) {
	t.Parallel()
	url := behind(t)
	conn := session(t, url)
	flow(t, conn)
	execute(t, conn, "begin", "lock table visit")
	r := startCommand(t, 0, "refresh", "public.visits", "--wait", "-d", url)
	r.await("public.visits: running")
	r.interrupt()
	err := r.end()
	if err == nil {
		t.Fatal("no error")
	}
	said := regexp.MustCompile(`^interrupted; the refresh goes on, and (select rwproxy.cancel_refresh\('([0-9a-f-]{36})'\)) stops it$`).
		FindStringSubmatch(err.Error())
	if said == nil {
		t.Fatal(err)
	}
	execute(t, conn, "commit")
	again := startCommand(t, 0, "refreshes", "--follow", "--json", "-d", url)
	again.await(`"refresh_id":"`+said[2]+`"`, `"state":"COMPLETED"`)
	again.interrupt()
	if err := again.end(); err != nil {
		t.Error(err)
	}
}

// What interrupt says cancels a refresh, and who waits for it is told.
func TestWaitFailsWithARefreshThatIsCanceled(t *testing.T) {
	t.Parallel()
	url := behind(t)
	conn := session(t, url)
	flow(t, conn)
	execute(t, conn, "begin", "lock table visit")
	r := startCommand(t, 0, "refresh", "visits", "--wait", "-d", url)
	r.await("visits: running")
	execute(t, session(t, url), "select rwproxy.cancel_refresh(refresh_id) from rwproxy.refreshes where state = 'RUNNING'")
	if err := r.end(); err == nil || !strings.HasPrefix(err.Error(), "the refresh of public.visits is CANCELED: ") {
		t.Error(err)
	}
}

// An instance that leaves takes the connection with it, not the refresh.
func TestWaitOutlivesItsInstance(t *testing.T) {
	t.Parallel()
	direct := pgtest.Database(t)
	config, err := pgx.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{"RWPROXY_UPSTREAM": direct}
	leaving, err := start(testContext(t), settings(t, variables), zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	url := leaving.url(config.Database).String()
	conn := session(t, direct)
	flow(t, session(t, url))
	execute(t, conn, "begin", "lock table visit")
	r := startCommand(t, 0, "refresh", "visits", "--wait", "-d", url)
	r.await("visits: running")
	cut, cancel := context.WithCancel(t.Context())
	cancel() // nothing gets time to finish
	leaving.stop(cut)
	successor := settings(t, variables)
	successor.Listen.Address = leaving.server.Addr().String()
	launch(t, successor)
	execute(t, conn, "commit")
	r.await("refreshed public.visits: ")
	if err := r.end(); err != nil {
		t.Error(err)
	}
}
