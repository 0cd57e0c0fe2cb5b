package cli

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// patience is how long a condition may take to become true on a busy machine.
const patience = time.Minute

// tests runs a package's tests next to a Postgres.
type tests struct{ m *testing.M }

func (t tests) Run() int { return pgtest.Run(t.m) }

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){
		"rwproxy": func() { os.Exit(Main(os.Args[1:])) },
		"sql":     func() { os.Exit(sql(os.Args[1], os.Args[2])) },
	})
}

// sql runs statements and prints the values of the last one's first row.
func sql(url, text string) int {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	values, err := ask(ctx, url, text)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(values)
	return 0
}

// ask runs statements and returns the values of the last one's first row.
func ask(ctx context.Context, url, text string) (string, error) {
	connection, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer connection.Close(ctx)
	results, err := connection.PgConn().Exec(ctx, text).ReadAll()
	if err != nil {
		return "", err
	}
	rows := results[len(results)-1].Rows
	if len(rows) == 0 {
		return "", nil
	}
	return string(bytes.Join(rows[0], []byte(" "))), nil
}

func TestScripts(t *testing.T) {
	t.Parallel()
	server := pgtest.Server(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// The user of an embedded server must reach the scripts' files.
			if err := os.Chmod(env.WorkDir+"/..", 0o755); err != nil {
				return err
			}
			listen, err := freeAddress()
			if err != nil {
				return err
			}
			console, err := freeAddress()
			if err != nil {
				return err
			}
			env.Setenv("UPSTREAM", server.URL("postgres"))
			env.Setenv("RWPROXY_LISTEN", listen)
			env.Setenv("RWPROXY_HTTP", console)
			env.Setenv("RWPROXY_LOG_FORMAT", "json")
			_, port, err := net.SplitHostPort(listen)
			if err != nil {
				return err
			}
			env.Setenv("RWPROXY_PORT", port)
			for _, database := range []string{"other", "flows", "refresh"} { // not created
				name := strings.ToUpper(database)
				env.Setenv("UPSTREAM_"+name, server.URL(database))
				env.Setenv("PROXY_"+name, "postgres://postgres@"+listen+"/"+database)
			}
			env.Setenv("PROXY", "postgres://postgres@"+listen+"/postgres")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await":        await,
			"await-closed": awaitClosed,
			"hangup":       hangup,
			"status":       status,
		},
	})
}

// freeAddress returns a loopback address that nothing listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	return listener.Addr().String(), nil
}

// await URL SQL VALUE waits until the statement returns the value.
func await(ts *testscript.TestScript, _ bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		got, err := ask(ctx, args[0], args[1])
		if err == nil && got == args[2] {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			ts.Fatalf("%s: %q, %v", args[1], got, err)
		}
	}
}

// await-closed waits until nobody listens for clients any more.
func awaitClosed(ts *testscript.TestScript, _ bool, _ []string) {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		connection, err := net.DialTimeout("tcp", ts.Getenv("RWPROXY_LISTEN"), time.Second)
		if err != nil {
			return
		}
		ts.Check(connection.Close())
		time.Sleep(20 * time.Millisecond)
	}
	ts.Fatalf("it still listens")
}

// hangup sends SIGHUP to the commands in the background.
func hangup(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGHUP))
	}
}

// status CODE PATH [FILE] asks the console for a path, with the bearer token in
// a file. It waits until the answer has the status.
func status(ts *testscript.TestScript, _ bool, args []string) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequest(http.MethodGet, "http://"+ts.Getenv("RWPROXY_HTTP")+args[1], nil)
	ts.Check(err)
	if len(args) > 2 {
		request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(ts.ReadFile(args[2])))
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		response, err := client.Do(request)
		ts.Check(err)
		ts.Check(response.Body.Close())
		got := strconv.Itoa(response.StatusCode)
		if got == args[0] {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s answered %s", args[1], got)
		}
	}
}
