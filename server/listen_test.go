package server

import (
	"context"
	"net"
	"syscall"
	"testing"
)

// option reads a socket option of a connection.
func option(t *testing.T, conn net.Conn, level, name int) int {
	t.Helper()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var value int
	var failure error
	if err := raw.Control(func(fd uintptr) {
		value, failure = syscall.GetsockoptInt(int(fd), level, name)
	}); err != nil || failure != nil {
		t.Fatal(err, failure)
	}
	return value
}

func TestBothSidesAreProbedForLife(t *testing.T) {
	t.Parallel()
	listener, err := listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	upstream := Upstream{Host: "127.0.0.1", Port: listener.Addr().(*net.TCPAddr).Port, SSLMode: SSLDisable}
	backend, err := upstream.dial(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	client, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for name, conn := range map[string]net.Conn{"client": client, "backend": backend} {
		if option(t, conn, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE) != 1 || option(t, conn, syscall.IPPROTO_TCP, syscall.TCP_NODELAY) != 1 {
			t.Errorf("%s: no keepalive, or small messages are held back", name)
		}
	}
}
