package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// target is a way to Postgres.
type target struct {
	name string
	port int // on 127.0.0.1
	pid  int // of the proxy; 0 for a direct connection
	stop func()
}

// upstream is where a proxy connects to.
type upstream struct {
	transport string // "TCP" or "Unix socket"
	host      string // an address, or the socket's folder
	port      int
}

func (u upstream) isSocket() bool { return strings.HasPrefix(u.host, "/") }

// freePort returns a port on 127.0.0.1 that nothing listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func startRwproxy(ctx context.Context, name, program, folder string, u upstream) (*target, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, program, "serve",
		"--listen", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		"--upstream", fmt.Sprintf("host=%s port=%d user=postgres dbname=bench sslmode=disable", u.host, u.port),
		"--http", "off", "--log-level", "warn")
	command.Dir = folder
	return start(ctx, name, command, port)
}

// startPgbouncer pools by session, without warm connections: with them it
// would be measured against what nobody else has.
func startPgbouncer(ctx context.Context, name, folder string, u upstream) (*target, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf(`[databases]
* = host=%s port=%d
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = session
server_lifetime = 0
max_client_conn = 20000
default_pool_size = 20000
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
`, u.host, u.port, port)
	// auth_type any needs a user to log in as.
	settings = strings.Replace(settings, "port="+strconv.Itoa(u.port), "port="+strconv.Itoa(u.port)+" user=postgres", 1)
	path := filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".ini")
	if err := os.WriteFile(path, []byte(settings), 0o644); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, "pgbouncer", "-q", path)
	if err := asOrdinaryUser(command); err != nil {
		return nil, err
	}
	return start(ctx, name, command, port)
}

func startHaproxy(ctx context.Context, name, folder string, u upstream) (*target, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	address := net.JoinHostPort(u.host, strconv.Itoa(u.port))
	if u.isSocket() {
		address = filepath.Join(u.host, ".s.PGSQL."+strconv.Itoa(u.port))
	}
	settings := fmt.Sprintf(`global
  maxconn 9000
  nbthread 1
defaults
  mode tcp
  timeout connect 10s
  timeout client 1h
  timeout server 1h
listen postgres
  bind 127.0.0.1:%d
  server postgres %s
`, port, address)
	path := filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".cfg")
	if err := os.WriteFile(path, []byte(settings), 0o644); err != nil {
		return nil, err
	}
	return start(ctx, name, exec.CommandContext(ctx, "haproxy", "-q", "-db", "-f", path), port)
}

// asOrdinaryUser has a program that refuses root run as Postgres does, whose
// socket nobody else may reach.
func asOrdinaryUser(command *exec.Cmd) error {
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return err
	}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return nil
}

// start starts a proxy and waits until it accepts connections.
func start(ctx context.Context, name string, command *exec.Cmd, port int) (*target, error) {
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Start(); err != nil {
		return nil, err
	}
	var outcome error
	ended := make(chan struct{})
	go func() {
		outcome = command.Wait()
		close(ended)
	}()
	t := &target{name: name, port: port, pid: command.Process.Pid, stop: func() {
		if command.Process.Signal(syscall.SIGINT) == nil {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Second):
			}
		}
		_ = command.Process.Kill()
	}}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			conn.Close()
			return t, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("%s ended: %w\n%s", name, outcome, output.String())
		default:
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			t.stop()
			return nil, fmt.Errorf("%s does not start\n%s", name, output.String())
		}
	}
}
