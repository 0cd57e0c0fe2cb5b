package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// patience is how long a condition may take to become true on a busy machine.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	scratch, err := os.MkdirTemp("", "rwproxy-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratchDir = scratch
	code := pgtest.Run(m, "max_connections=300")
	if shared != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "the shared proxy:", err)
			code = 1
		}
	}
	if err := os.RemoveAll(scratch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

var (
	scratchDir string

	sharedOnce sync.Once
	shared     *proxy
	errShared  error
)

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
	path, err := program()
	if err != nil {
		return nil, err
	}
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	p := &proxy{addr: addr, exited: make(chan struct{})}
	p.cmd = exec.Command(path, append([]string{
		"serve", "--upstream", upstream, "--listen", addr, "--http", "off", "--log-format", "json",
	}, settings...)...)
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

// sharedProxy returns the proxy that all tests share which do not harm it.
func sharedProxy(t testing.TB) *proxy {
	t.Helper()
	sharedOnce.Do(func() { shared, errShared = startProxy(pgtest.Server(t).URL("postgres")) })
	if errShared != nil {
		t.Fatal(errShared)
	}
	return shared
}

// ownProxy starts a proxy for one test, which may kill it; else it must stop
// cleanly when the test ends.
func ownProxy(t *testing.T, upstream string, settings ...string) *proxy {
	t.Helper()
	p, err := startProxy(upstream, settings...)
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

// database is a fresh database of one test: through the proxy, and past it.
type database struct {
	url    string // through the shared proxy
	direct string
	zone   string // its TimeZone setting
}

// newDatabase makes a database whose time zone has noon about now: no test that
// uses current_date can meet a midnight.
func newDatabase(t testing.TB) database {
	t.Helper()
	direct := pgtest.Database(t)
	d := database{url: sharedProxy(t).url(direct), direct: direct, zone: noonZone(time.Now())}
	u, err := url.Parse(direct)
	if err != nil {
		t.Fatal(err)
	}
	s := connect(t, direct)
	s.exec(fmt.Sprintf(`alter database %q set timezone = '%s'`, strings.TrimPrefix(u.Path, "/"), d.zone))
	s.close()
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

// asExitError returns the exit error in err's chain, nil if there is none.
func asExitError(err error) *exec.ExitError {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit
	}
	return nil
}
