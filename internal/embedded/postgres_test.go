package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if directory := os.Getenv(ownerVariable); directory != "" {
		beOwner(directory)
	}
	goleak.VerifyTestMain(m)
}

// ownerVariable makes this test program an owner of a server, to be killed.
const ownerVariable = "RWPROXY_TEST_OWNER"

func beOwner(directory string) {
	p, err := Start(context.Background(), Config{DataDir: directory})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(p.Pid())
	<-p.Done()
	os.Exit(1)
}

// unsafe makes a server fast whose data nobody needs.
var unsafe = map[string]string{"fsync": "off", "shared_buffers": "16MB"}

func start(t *testing.T, c Config) *Postgres {
	t.Helper()
	if c.Settings == nil {
		c.Settings = unsafe
	}
	p, err := Start(testContext(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, p) })
	return p
}

func stop(t *testing.T, p *Postgres) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// tempDir returns a directory that the server's user may enter, as t.TempDir
// is not for root.
func tempDir(t *testing.T) string {
	directory, err := os.MkdirTemp("", "rwproxy-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) })
	if err := os.Chmod(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	return directory
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// ask runs one statement on a connection of its own and returns its first
// value as text.
func ask(t *testing.T, url, sql string) string {
	t.Helper()
	connection, err := pgx.Connect(testContext(t), url)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	result := connection.PgConn().ExecParams(testContext(t), sql, nil, nil, nil, nil).Read()
	if result.Err != nil {
		t.Fatalf("%s: %v", sql, result.Err)
	}
	if len(result.Rows) == 0 {
		return ""
	}
	return string(result.Rows[0][0])
}

func TestAServerAnswersOnItsSocketAndKeepsItsDataAcrossStops(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(tempDir(t), "data")
	first := start(t, Config{DataDir: directory})
	ask(t, first.URL("postgres"), "create table kept as select 42 as answer")
	stop(t, first)
	stop(t, first) // twice is once
	if first.Pid() != 0 {
		t.Error("a stopped server has a process")
	}

	second := start(t, Config{DataDir: directory})
	if got := ask(t, second.URL("postgres"), "select answer from kept"); got != "42" {
		t.Errorf("answer = %s", got)
	}
	if got := ask(t, second.URL("postgres"), "select lower('É') || current_setting('server_encoding')"); got != "éUTF8" {
		t.Errorf("lower and encoding = %s", got)
	}
}

func TestAServerDoesNotRunAsRoot(t *testing.T) {
	t.Parallel()
	p := start(t, Config{DataDir: filepath.Join(tempDir(t), "data")})
	info, err := os.Stat(filepath.Join(p.dir.cluster(), "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Error("the server runs as root")
	}
	socketDir, err := os.Stat(p.SocketDir())
	if err != nil {
		t.Fatal(err)
	}
	if socketDir.Mode().Perm() != 0o700 {
		t.Errorf("the socket's directory has mode %v", socketDir.Mode())
	}
}

func TestLoopbackAsksForAPasswordUnlessTrusted(t *testing.T) {
	t.Parallel()
	closed := start(t, Config{DataDir: filepath.Join(tempDir(t), "closed")})
	_, err := pgx.Connect(testContext(t), "postgres://postgres:guess@127.0.0.1:"+strconv.Itoa(closed.Port())+"/postgres")
	if err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("error = %v", err)
	}

	open := start(t, Config{DataDir: filepath.Join(tempDir(t), "open"), Trust: true})
	if got := ask(t, open.URL("postgres"), "select host(inet_client_addr())"); got != "127.0.0.1" {
		t.Errorf("client address = %s", got)
	}
}

func TestHBALinesComeFirst(t *testing.T) {
	t.Parallel()
	p := start(t, Config{DataDir: filepath.Join(tempDir(t), "data"), Trust: true, HBA: []string{"host postgres all 127.0.0.1/32 reject"}})
	_, err := pgx.Connect(testContext(t), p.URL("postgres"))
	if err == nil || !strings.Contains(err.Error(), "28000") {
		t.Errorf("error = %v", err)
	}
}

func TestAKilledServerRecoversWhatWasCommitted(t *testing.T) {
	t.Parallel()
	p := start(t, Config{DataDir: filepath.Join(tempDir(t), "data"), Trust: true, Settings: map[string]string{"shared_buffers": "16MB"}})
	ask(t, p.URL("postgres"), "create table kept as select 42 as answer")
	done, port := p.Done(), p.Port()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	if p.Pid() != 0 {
		t.Error("a killed server has a process")
	}
	if err := p.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if p.Port() != port {
		t.Errorf("port changed from %d to %d", port, p.Port())
	}
	if got := ask(t, p.URL("postgres"), "select answer from kept"); got != "42" {
		t.Errorf("answer = %s", got)
	}
}

func TestRestartEndsSessionsAndServesAgain(t *testing.T) {
	t.Parallel()
	p := start(t, Config{DataDir: filepath.Join(tempDir(t), "data")})
	before := p.Pid()
	if err := p.Restart(testContext(t)); err != nil {
		t.Fatal(err)
	}
	if p.Pid() == before || p.Pid() == 0 {
		t.Errorf("process = %d, before %d", p.Pid(), before)
	}
	ask(t, p.URL("postgres"), "select 1")
}

func TestAServerDiesWithItsOwnerAndTheDirectoryIsUsableAtOnce(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(tempDir(t), "data")
	owner := exec.Command(os.Args[0])
	owner.Env = append(os.Environ(), ownerVariable+"="+directory)
	out, err := owner.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 32)
	n, err := out.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(line[:n]))
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()

	p := start(t, Config{DataDir: directory})
	if got := strconv.Itoa(p.Pid()); got == pid {
		t.Errorf("the server %s of the killed owner still runs", pid)
	}
	ask(t, p.URL("postgres"), "select 1")
}

func TestAStalePidFileOfAnotherProcessIsIgnored(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(tempDir(t), "data")
	p := start(t, Config{DataDir: directory})
	stop(t, p)
	// Process numbers are used again: this one is alive, and no server.
	text := strconv.Itoa(os.Getpid()) + "\n" + p.dir.cluster() + "\n1700000000\n5432\n\n\n  0 0\nready\n"
	if err := os.WriteFile(p.dir.pidFile(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ask(t, start(t, Config{DataDir: directory}).URL("postgres"), "select 1")
}

func TestADataDirectoryInUseIsRefused(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(tempDir(t), "data")
	start(t, Config{DataDir: directory})
	_, err := Start(testContext(t), Config{DataDir: directory})
	if err == nil || !strings.Contains(err.Error(), "in use by another rwproxy") {
		t.Errorf("error = %v", err)
	}
}

func TestADataDirectoryOfAnotherMajorIsRefused(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(tempDir(t), "data")
	p := start(t, Config{DataDir: directory})
	stop(t, p)
	if err := os.WriteFile(filepath.Join(p.dir.cluster(), "PG_VERSION"), []byte("12\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(testContext(t), Config{DataDir: directory})
	if err == nil || !strings.Contains(err.Error(), "was created by PostgreSQL 12") {
		t.Errorf("error = %v", err)
	}
}

func TestADirectoryWithOtherFilesIsLeftAlone(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	if err := os.WriteFile(filepath.Join(directory, "thesis.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(testContext(t), Config{DataDir: directory})
	if err == nil || !strings.Contains(err.Error(), "neither empty nor a data directory") {
		t.Errorf("error = %v", err)
	}
}

func TestALongDataDirectoryHasItsSocketElsewhere(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(tempDir(t), strings.Repeat("long", 30))
	p := start(t, Config{DataDir: directory})
	if strings.HasPrefix(p.SocketDir(), directory) {
		t.Fatalf("socket directory %s is too long for a socket", p.SocketDir())
	}
	ask(t, p.URL("postgres"), "select 1")
	stop(t, p)
	if _, err := os.Stat(p.SocketDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket directory after stop: %v", err)
	}
}

func TestABadSettingIsReportedInTheServersWords(t *testing.T) {
	t.Parallel()
	_, err := Start(testContext(t), Config{
		DataDir:  filepath.Join(tempDir(t), "data"),
		Settings: map[string]string{"no_such_setting": "1"},
	})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "no_such_setting"`) {
		t.Errorf("error = %v", err)
	}
}
