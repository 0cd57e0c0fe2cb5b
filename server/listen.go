package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// keepAlive finds ends that have gone without a word: a connection is probed
// after a minute of silence, and given up after another minute without answer.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 10 * time.Second, Count: 6}

// maxSilent is how many connections may be open on which nothing has been said
// yet: a quarter of the descriptors that the process may have.
func maxSilent() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1 << 10
	}
	return int(min(limit.Cur, 1<<16) / 4)
}

// listen opens a TCP address, or a Unix socket when listen is a path.
func listen(ctx context.Context, listen string) (net.Listener, error) {
	config := net.ListenConfig{KeepAliveConfig: keepAlive}
	if !strings.ContainsRune(listen, '/') {
		return config.Listen(ctx, "tcp", listen)
	}
	path := listen
	if !strings.HasPrefix(filepath.Base(path), ".s.PGSQL.") {
		path = filepath.Join(path, socketName(defaultSocketPort))
	}
	listener, err := config.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && isStale(path) {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
		listener, err = config.Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, err
	}
	// As Postgres's unix_socket_permissions: whoever may reach the folder may
	// connect, authentication decides the rest.
	if err := os.Chmod(path, 0o777); err != nil {
		listener.Close()
		return nil, fmt.Errorf("set the socket's permissions: %w", err)
	}
	return listener, nil
}

// isStale reports that nobody listens on a socket file: it was left behind by
// a process that was killed.
func isStale(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED)
	}
	conn.Close()
	return false
}
