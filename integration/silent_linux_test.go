package integration

import (
	"net"
	"testing"
)

// The limit is so low that the silent clients alone exceed it.
func TestSilentClientsDoNotTakeAllDescriptors(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	p := ownProxyBy(t, []string{"sh", "-c", `ulimit -n 80; exec "$@"`, "sh"}, d.direct)
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
