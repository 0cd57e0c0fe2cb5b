package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// maxSocketPath is what fits into a Unix socket address on every system,
// without its final zero byte.
const maxSocketPath = 103

// leftoverWait is how long a start waits for the server of a killed owner to
// finish its shutdown.
const leftoverWait = 15 * time.Second

// dataDir is a data directory that this process holds the lock of.
type dataDir struct {
	path    string // absolute, without symbolic links
	account account
	lock    *os.File
}

func (d *dataDir) cluster() string { return filepath.Join(d.path, "postgres") }
func (d *dataDir) hbaFile() string { return filepath.Join(d.path, "pg_hba.conf") }
func (d *dataDir) pidFile() string { return filepath.Join(d.cluster(), "postmaster.pid") }

// openDataDir creates the directory if need be, gives it to the account and
// takes its lock.
func openDataDir(path string, a account) (*dataDir, error) {
	if path == "" {
		return nil, errors.New("no data directory given")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	if err := refuseForeign(path); err != nil {
		return nil, err
	}
	// Parents are judged by where the directory really is.
	if path, err = resolve(path); err != nil {
		return nil, err
	}
	if err := a.reach(path); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := a.own(path, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("data directory %s is in use by another rwproxy: stop it, or choose another with --data-dir", path)
		}
		return nil, fmt.Errorf("lock data directory %s: %w", path, err)
	}
	return &dataDir{path: path, account: a, lock: lock}, nil
}

// resolve returns the path without symbolic links. The last element need not
// exist.
func resolve(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	parent, err := filepath.EvalSymlinks(filepath.Dir(path))
	return filepath.Join(parent, filepath.Base(path)), err
}

// refuseForeign protects a directory that is not one of ours: it will change
// owner and mode.
func refuseForeign(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(path, "lock")); err != nil {
		return fmt.Errorf("%s is neither empty nor a data directory of rwproxy: choose another with --data-dir", path)
	}
	return nil
}

// release gives the lock up.
//
// It unlocks by itself: a program that is being started, and has not given up
// the files that it inherits yet, would keep the lock a moment longer.
func (d *dataDir) release() error {
	return errors.Join(syscall.Flock(int(d.lock.Fd()), syscall.LOCK_UN), d.lock.Close())
}

// major returns the PostgreSQL major of the cluster, 0 when there is none yet.
func (d *dataDir) major() (int, error) {
	text, err := os.ReadFile(filepath.Join(d.cluster(), "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, fmt.Errorf("%s holds no PostgreSQL cluster that rwproxy can read", d.cluster())
	}
	return major, nil
}

// initialise runs initdb. The cluster appears under its name only when it is
// complete.
func (d *dataDir) initialise(ctx context.Context, i installation) error {
	unfinished := d.cluster() + ".initdb"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if err := d.account.makeDir(unfinished); err != nil {
		return err
	}
	// The C collation is the same on every system, so that an upgrade of the
	// system's libraries cannot break an index.
	ctype := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		ctype = "UTF-8"
	}
	cmd := exec.CommandContext(ctx, i.program("initdb"),
		"--pgdata="+unfinished, "--username=postgres", "--encoding=UTF8", "--locale=C", "--lc-ctype="+ctype,
		"--auth-local=trust", "--auth-host=scram-sha-256", "--no-instructions")
	cmd.Env = environment()
	cmd.Dir = d.path
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: d.account.credential}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, lastLines(string(out), 5))
	}
	return os.Rename(unfinished, d.cluster())
}

// writeHBA writes pg_hba.conf: who may connect, and how.
func (d *dataDir) writeHBA(trust bool, first []string) error {
	host := "scram-sha-256"
	if trust {
		host = "trust"
	}
	lines := append(append([]string{}, first...),
		"local all         all              trust",
		"local replication all              trust",
		"host  all         all 127.0.0.1/32 "+host,
		"host  replication all 127.0.0.1/32 "+host)
	text := strings.Join(lines, "\n") + "\n"
	if err := os.WriteFile(d.hbaFile(), []byte(text), 0o600); err != nil {
		return err
	}
	return d.account.own(d.hbaFile(), 0o600)
}

// clearStale removes what a crash left. It waits for a server whose owner has
// just died, and returns an error when one still runs in the cluster.
func (d *dataDir) clearStale(ctx context.Context) error {
	deadline := time.Now().Add(leftoverWait)
	for {
		pid, err := d.postmaster()
		if err != nil || pid == 0 {
			return err
		}
		if !isPostmaster(pid, d.cluster()) {
			// The number may belong to another process by now, in a container
			// most likely does, and Postgres would then refuse to start.
			return os.Remove(d.pidFile())
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a PostgreSQL server (process %d) is still running in %s: stop it with pg_ctl -D %s stop", pid, d.cluster(), d.cluster())
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// postmaster returns the process that postmaster.pid names, 0 for none.
func (d *dataDir) postmaster() (int, error) {
	lines, err := d.pidLines()
	if err != nil || len(lines) == 0 {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return 0, os.Remove(d.pidFile())
	}
	return pid, nil
}

// pidLines returns the lines of postmaster.pid, none when there is no such
// file: process, data directory, start time, port, socket directory, address,
// shared memory, status.
func (d *dataDir) pidLines() ([]string, error) {
	text, err := os.ReadFile(d.pidFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return strings.Split(string(text), "\n"), nil
}

// ready reports whether postmaster.pid says that the server of this process
// number accepts connections.
func (d *dataDir) ready(pid int) bool {
	lines, err := d.pidLines()
	return err == nil && len(lines) >= 8 &&
		strings.TrimSpace(lines[0]) == strconv.Itoa(pid) && strings.TrimSpace(lines[7]) == "ready"
}

// socketDir returns a directory for the Unix socket that only the account may
// enter, and whether it is a temporary one that has to be removed.
func (d *dataDir) socketDir() (path string, temporary bool, err error) {
	path = filepath.Join(d.path, "socket")
	if fitsSocket(path) {
		return path, false, d.account.makeDir(path)
	}
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		if !fitsSocket(filepath.Join(parent, "rwproxy-0123456789")) {
			continue
		}
		if path, err = os.MkdirTemp(parent, "rwproxy-"); err != nil {
			continue
		}
		if err = errors.Join(d.account.reach(path), d.account.own(path, 0o700)); err == nil {
			return path, true, nil
		}
		os.Remove(path)
	}
	return "", false, fmt.Errorf("no directory with a path short enough for a Unix socket: choose a shorter --data-dir than %s", d.path)
}

func fitsSocket(dir string) bool {
	return len(filepath.Join(dir, ".s.PGSQL.65535")) <= maxSocketPath
}

// pause waits a moment between two looks at a file.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(20 * time.Millisecond):
		return nil
	}
}
