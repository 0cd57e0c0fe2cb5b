package jobs

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// relay is what lies between an instance and Postgres. When it is cut, Postgres
// sees what it sees when the instance's process is killed.
type relay struct {
	listener net.Listener
	target   string

	mu    sync.Mutex
	isCut bool
	conns []net.Conn
}

// newRelay returns a relay and the URL of a server through it.
func newRelay(t *testing.T, server string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: listener, target: u.Host}
	var group sync.WaitGroup
	group.Go(func() { r.serve(&group) })
	t.Cleanup(func() {
		listener.Close()
		r.cut()
		group.Wait()
	})
	u.Host = listener.Addr().String()
	return r, u.String()
}

func (r *relay) serve(group *sync.WaitGroup) {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		backend, err := net.Dial("tcp", r.target)
		if err != nil {
			client.Close()
			continue
		}
		if !r.keep(client, backend) {
			client.Close()
			backend.Close()
			continue
		}
		for _, direction := range [][2]net.Conn{{client, backend}, {backend, client}} {
			group.Go(func() {
				// It ends with either side, and then ends both.
				_, _ = io.Copy(direction[0], direction[1])
				client.Close()
				backend.Close()
			})
		}
	}
}

func (r *relay) keep(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conns = append(r.conns, conns...)
	return !r.isCut
}

// cut ends every connection at once, and lets none through.
func (r *relay) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = true
	for _, conn := range r.conns {
		conn.Close()
	}
	r.conns = nil
}

// restore lets connections through again.
func (r *relay) restore() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isCut = false
}
