package integration

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// The limit is so low that the silent clients alone exceed it.
func TestSilentClientsDoNotTakeAllDescriptors(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	p := ownProxy(t, d.direct)
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 80, Max: 80}, nil); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	for range 3 {
		if got := connect(t, p.url(d.direct)).value("select 1"); got != "1" {
			t.Errorf("got %s", got)
		}
	}
}
