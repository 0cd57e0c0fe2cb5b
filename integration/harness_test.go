package integration

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// patience is how long a condition may take to become true on a busy machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

var (
	scratchDir string
	server     *embedded.Postgres // in front of which shared runs
	shared     *proxy             // of all tests that do not harm it
	databases  atomic.Int64       // numbers the databases of server
)

// runTests starts a Postgres and a proxy, runs the tests, and stops both.
func runTests(m *testing.M) (status int) {
	failed := func(err error) bool {
		if err != nil {
			fmt.Fprintln(os.Stderr, "integration:", err)
			status = 1
		}
		return err != nil
	}
	var err error
	if scratchDir, err = os.MkdirTemp("", "rwproxy-integration-"); failed(err) {
		return status
	}
	defer func() { failed(os.RemoveAll(scratchDir)) }()
	// The unprivileged user that the server runs as must reach its data.
	if failed(os.Chmod(scratchDir, 0o755)) {
		return status
	}
	if server, err = startServer("shared"); failed(err) {
		return status
	}
	defer func() { failed(stopServer(server)) }()
	if shared, err = startProxy(server.URL("postgres")); failed(err) {
		return status
	}
	defer func() { failed(shared.stop()) }()
	return m.Run()
}

// startServer starts a Postgres whose data lives as long as the tests do.
func startServer(name string) (*embedded.Postgres, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return embedded.Start(ctx, embedded.Config{
		DataDir: filepath.Join(scratchDir, name),
		Bin:     os.Getenv("RWPROXY_TEST_PG_BIN"),
		Trust:   true,
		Settings: map[string]string{
			"autovacuum":       "off",
			"fsync":            "off",
			"full_page_writes": "off",
			"max_connections":  "300",
			"shared_buffers":   "32MB",
			"wal_level":        "logical",
		},
	})
}

func stopServer(s *embedded.Postgres) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.Stop(ctx)
}

// program builds rwproxy with the race detector, once.
var program = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratchDir, "rwproxy")
	out, err := exec.Command("go", "build", "-race", "-o", path, "github.com/rwproxy/rwproxy/cmd/rwproxy").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building rwproxy: %w\n%s", err, out)
	}
	return path, nil
})

// proxy is a running `rwproxy serve`.
type proxy struct {
	addr   string // host:port
	cmd    *exec.Cmd
	log    logBuffer
	exited chan struct{}
	status error // of the process; read after exited is closed
}

// startProxy runs rwproxy in front of an upstream and returns when its port
// accepts.
func startProxy(upstream string, settings ...string) (*proxy, error) {
	return startProxyBy(nil, upstream, settings...)
}

// startProxyBy starts a proxy by a command that gets its command line.
func startProxyBy(command []string, upstream string, settings ...string) (*proxy, error) {
	path, err := program()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &proxy{addr: addr, exited: make(chan struct{})}
	line := append(slices.Clone(command), path, "serve", "--upstream", upstream, "--listen", addr, "--http", "off", "--log-format", "json")
	line = append(line, settings...)
	p.cmd = exec.Command(line[0], line[1:]...)
	p.cmd.Env = cleanEnvironment()
	p.cmd.Dir = scratchDir
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.status = p.cmd.Wait()
		close(p.exited)
	}()
	deadline := time.Now().Add(patience)
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.exited:
			return nil, fmt.Errorf("rwproxy ended at once: %w\n%s", p.status, p.log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.kill()
			return nil, fmt.Errorf("rwproxy does not accept on %s: %w\n%s", addr, err, p.log.String())
		}
	}
}

// kill ends the process as `kill -9` does.
func (p *proxy) kill() {
	// An error means that it has ended already.
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// stop ends the process as an operator does and checks that it left cleanly.
func (p *proxy) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("it had ended before it was told to: %w\n%s", err, p.log.String())
	}
	select {
	case <-p.exited:
	case <-time.After(patience):
		p.kill()
		return fmt.Errorf("it did not end on SIGTERM\n%s", p.log.String())
	}
	text := p.log.String()
	if strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic") {
		return fmt.Errorf("its log shows a fault\n%s", text)
	}
	if p.status != nil {
		return fmt.Errorf("it left with %w\n%s", p.status, text)
	}
	return nil
}

// url returns the URL of a database as seen through the proxy.
func (p *proxy) url(direct string) string {
	u, err := url.Parse(direct)
	if err != nil {
		panic(err)
	}
	u.Host = p.addr
	return u.String()
}

// ownProxy starts a proxy for one test, which may kill it; else it must stop
// cleanly when the test ends.
func ownProxy(t *testing.T, upstream string, settings ...string) *proxy {
	t.Helper()
	return ownProxyBy(t, nil, upstream, settings...)
}

// ownProxyBy is ownProxy of startProxyBy.
func ownProxyBy(t *testing.T, command []string, upstream string, settings ...string) *proxy {
	t.Helper()
	p, err := startProxyBy(command, upstream, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		select {
		case <-p.exited:
			return
		default:
		}
		if err := p.stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// ownServer starts a server for one test, which may kill it, and a proxy in
// front of it.
func ownServer(t *testing.T, name string, settings ...string) (*embedded.Postgres, *proxy) {
	t.Helper()
	own, err := startServer(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := startProxy(own.URL("postgres"), settings...)
	if err != nil {
		t.Fatal(err, stopServer(own))
	}
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Error(err)
		}
		if err := stopServer(own); err != nil {
			t.Error(err)
		}
	})
	return own, p
}

// database is a fresh database of one test: through the proxy, and past it.
type database struct {
	name   string
	url    string // through the proxy
	direct string
	zone   string // its TimeZone setting
}

// newDatabase makes a database, dropped when the test ends, whose time zone has
// noon about now: no test that uses current_date can meet a midnight.
func newDatabase(t testing.TB) database {
	t.Helper()
	return newDatabaseOn(t, server, shared)
}

func newDatabaseOn(t testing.TB, server *embedded.Postgres, p *proxy) database {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	direct := server.URL(name)
	d := database{name: name, url: p.url(direct), direct: direct, zone: noonZone(time.Now())}
	admin := connect(t, server.URL("postgres"))
	admin.exec("create database "+name+" template template0",
		"alter database "+name+" set timezone = '"+d.zone+"'")
	admin.close()
	t.Cleanup(func() {
		admin := connect(t, server.URL("postgres"))
		admin.exec("drop database " + name + " with (force)")
		admin.close()
	})
	return d
}

// noonZone returns the time zone of whole hours in which it is between 12 and
// 13 o'clock. POSIX counts west of Greenwich as positive.
func noonZone(now time.Time) string {
	return fmt.Sprintf("Etc/GMT%+d", now.UTC().Hour()-12)
}

// freeAddress returns a loopback address that nothing listens on.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// cleanEnvironment is the environment without settings of rwproxy and libpq,
// which would change what a test runs.
func cleanEnvironment() []string {
	var env []string
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "RWPROXY_") && !strings.HasPrefix(e, "PG") {
			env = append(env, e)
		}
	}
	return env
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never came true that %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// logBuffer is a bytes.Buffer that a process may write while a test reads.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
