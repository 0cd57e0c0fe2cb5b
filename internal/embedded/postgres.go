package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// fastShutdown is how long Stop waits, at most, before it gives up on a fast
// shutdown and asks for an immediate one.
const fastShutdown = 10 * time.Second

// portAttempts is how often Start tries another port when the one that was
// free a moment ago is taken.
const portAttempts = 5

// Config says which server to run.
type Config struct {
	// DataDir is created at the first start; its content stays.
	DataDir string
	// Bin is the folder of initdb and postgres. "" means the newest installed
	// one of a supported version, or the one that fits the data.
	Bin string
	// Settings are server settings, as in postgresql.conf.
	Settings map[string]string
	// Trust lets everybody on this machine in over loopback TCP without a
	// password. It is for tests.
	Trust bool
	// HBA are lines that come first in pg_hba.conf.
	HBA []string
	// Logger receives the server's log at level debug; nil discards it.
	Logger *zap.Logger
}

// Postgres is a running server. Its methods are safe for concurrent use.
type Postgres struct {
	config          Config
	installation    installation
	dir             *dataDir
	socketDir       string
	removeSocketDir bool
	port            int

	mu      sync.Mutex
	process *process // nil after Stop
}

// Start starts a server and returns when it accepts connections. It returns
// ErrNoBinaries if nothing is installed, ErrUnreachable if the server's user
// cannot reach the data directory, and an error if the directory is in use or
// holds a cluster of a version that is not installed. ctx limits the start,
// not the life of the server.
func Start(ctx context.Context, c Config) (*Postgres, error) {
	if c.Logger == nil {
		c.Logger = zap.NewNop()
	}
	account, err := serverAccount()
	if err != nil {
		return nil, err
	}
	dir, err := openDataDir(c.DataDir, account)
	if err != nil {
		return nil, err
	}
	p := &Postgres{config: c, dir: dir}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(err, p.cleanUp())
	}
	if err := p.runOnFreePort(ctx); err != nil {
		return nil, errors.Join(err, p.cleanUp())
	}
	return p, nil
}

// prepare does what comes before the server can run: its binaries, its
// cluster, its socket directory.
func (p *Postgres) prepare(ctx context.Context) error {
	major, err := p.dir.major()
	if err != nil {
		return err
	}
	if p.installation, err = find(ctx, p.config.Bin, major); err != nil {
		return err
	}
	switch {
	case major == 0:
		if err := p.dir.initialise(ctx, p.installation); err != nil {
			return err
		}
	case major != p.installation.major:
		return fmt.Errorf("data directory %s was created by PostgreSQL %d, and PostgreSQL %d is installed: install PostgreSQL %d, or move the data with pg_dump or pg_upgrade",
			p.dir.path, major, p.installation.major, major)
	}
	if err := p.dir.clearStale(ctx); err != nil {
		return err
	}
	if err := p.dir.writeHBA(p.config.Trust, p.config.HBA); err != nil {
		return err
	}
	p.socketDir, p.removeSocketDir, err = p.dir.socketDir()
	return err
}

func (p *Postgres) runOnFreePort(ctx context.Context) error {
	var err error
	for range portAttempts {
		if p.port, err = freePort(); err != nil {
			return err
		}
		if err = p.run(ctx); err == nil || !strings.Contains(err.Error(), "Address already in use") {
			return err
		}
	}
	return err
}

// freePort returns a loopback port that nothing listens on.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}

// run starts the program and waits until it accepts connections.
func (p *Postgres) run(ctx context.Context) error {
	process, err := launch(p.installation.program("postgres"), p.arguments(), p.dir.path, p.dir.account, p.config.Logger)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	for !p.dir.ready(process.pid()) {
		if !process.running() {
			return fmt.Errorf("PostgreSQL did not start: %s", process.log.last())
		}
		if err := pause(ctx); err != nil {
			process.kill()
			return fmt.Errorf("PostgreSQL did not start in time: %w: %s", err, process.log.last())
		}
	}
	p.mu.Lock()
	p.process = process
	p.mu.Unlock()
	return nil
}

// arguments returns the command line; of two values for a setting the later
// one counts.
func (p *Postgres) arguments() []string {
	args := []string{
		"-D", p.dir.cluster(),
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(p.port),
		"-c", "unix_socket_directories=" + p.socketDir,
		"-c", "hba_file=" + p.dir.hbaFile(),
		"-c", "logging_collector=off",
		"-c", "log_destination=stderr",
	}
	names := make([]string, 0, len(p.config.Settings))
	for name := range p.config.Settings {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		args = append(args, "-c", name+"="+p.config.Settings[name])
	}
	return args
}

// URL returns the address of a database for its superuser, who is called
// postgres: over TCP with Config.Trust, else over the Unix socket.
func (p *Postgres) URL(database string) string {
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Path: "/" + database}
	if p.config.Trust {
		u.Host = net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port))
		return u.String()
	}
	u.RawQuery = url.Values{"host": {p.socketDir}, "port": {strconv.Itoa(p.port)}}.Encode()
	return u.String()
}

// SocketDir returns the directory of the Unix socket.
func (p *Postgres) SocketDir() string { return p.socketDir }

// Port returns the port on 127.0.0.1, which is also in the socket's name. It
// stays the same across Restart.
func (p *Postgres) Port() int { return p.port }

// Major returns the major version of the server.
func (p *Postgres) Major() int { return p.installation.major }

// Pid returns the process of the postmaster, 0 when none runs.
func (p *Postgres) Pid() int {
	if process := p.current(); process != nil && process.running() {
		return process.pid()
	}
	return 0
}

// Done returns a channel that is closed when the server that runs now ends,
// for whatever reason.
func (p *Postgres) Done() <-chan struct{} {
	if process := p.current(); process != nil {
		return process.done
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// LastLog returns the last lines of the server's log, to explain its end.
func (p *Postgres) LastLog() string {
	if process := p.current(); process != nil {
		return process.log.last()
	}
	return ""
}

func (p *Postgres) current() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

// Stop ends the server: sessions are ended, transactions rolled back. When ctx
// ends, or after ten seconds, it is told to shut down at once and recovers at
// its next start. Stop is safe to call twice.
func (p *Postgres) Stop(ctx context.Context) error {
	p.mu.Lock()
	process := p.process
	p.process = nil
	p.mu.Unlock()
	if process == nil {
		return nil
	}
	halt(ctx, process)
	return p.cleanUp()
}

// Kill ends the server's processes with SIGKILL, as a power failure would.
// Restart brings it back; Stop is still needed to give up the data directory.
func (p *Postgres) Kill() error {
	process := p.current()
	if process == nil {
		return errors.New("the server has been stopped")
	}
	process.kill()
	return nil
}

// Restart stops the server if it runs, and starts it again on the same port.
func (p *Postgres) Restart(ctx context.Context) error {
	process := p.current()
	if process == nil {
		return errors.New("the server has been stopped")
	}
	halt(ctx, process)
	if err := p.dir.clearStale(ctx); err != nil {
		return err
	}
	return p.run(ctx)
}

// halt asks for a fast shutdown, for an immediate one when that takes too
// long, and kills the server when nothing helps.
func halt(ctx context.Context, process *process) {
	for _, step := range []struct {
		signal syscall.Signal
		limit  time.Duration
	}{{syscall.SIGINT, fastShutdown}, {syscall.SIGQUIT, 5 * time.Second}} {
		process.signal(step.signal)
		deadline := time.NewTimer(step.limit)
		select {
		case <-process.done:
			deadline.Stop()
			return
		case <-deadline.C:
		case <-ctx.Done():
			deadline.Stop()
			ctx = context.WithoutCancel(ctx)
		}
	}
	process.kill()
}

// cleanUp gives up what Start took.
func (p *Postgres) cleanUp() error {
	var err error
	if p.removeSocketDir {
		err = os.RemoveAll(p.socketDir)
	}
	return errors.Join(err, p.dir.release())
}
