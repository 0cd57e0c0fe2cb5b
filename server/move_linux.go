package server

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// mayPoll reports that a session that is at rest may go to a loop. Under TLS
// bytes that have arrived say nothing about messages.
func (s *Server) mayPoll(session *session) bool {
	return s.loops != nil && !s.draining.Load() && isPlain(session.client) && isPlain(session.backend)
}

func isPlain(conn net.Conn) bool {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
		return true
	}
	return false
}

// moveToLoop gives a session whose goroutines have ended to a loop. It reports
// false, and changes nothing, when there is none that takes it.
func (s *session) moveToLoop() bool {
	clientFD, err := duplicate(s.client)
	if err != nil {
		return false
	}
	backendFD, err := duplicate(s.backend)
	if err != nil {
		unix.Close(clientFD)
		return false
	}
	ls := s.server.loops
	l := ls.all[ls.next.Add(1)%uint32(len(ls.all))]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping {
		unix.Close(clientFD)
		unix.Close(backendFD)
		return false
	}
	s.mu.Lock()
	s.client.Close()
	s.backend.Close()
	s.client, s.backend = nil, nil
	s.mu.Unlock()
	s.inLoop = true
	s.setConnections()
	s.countIn(&l.traffic)
	client, backend := &s.polled[0], &s.polled[1]
	*client = polled{session: s, loop: l, fd: clientFD, peer: backend, in: s.in, out: s.out.w, relay: s.relayClient}
	*backend = polled{session: s, loop: l, fd: backendFD, peer: client, in: s.from, out: s.up, relay: s.relayBackend}
	s.out.w.fd, s.up.fd = clientFD, backendFD
	s.in.keep()
	s.from.keep()
	l.arrivals = append(l.arrivals, s)
	l.wake()
	return true
}

// leaveLoop makes connections of a session's descriptors again. When it
// cannot, both sides are gone.
func (s *session) leaveLoop() error {
	client, err := connection(s.polled[0].fd)
	backend, backendErr := connection(s.polled[1].fd)
	if err == nil {
		err = backendErr
	}
	s.mu.Lock()
	s.client, s.backend = client, backend
	s.ready = false
	s.mu.Unlock()
	s.inLoop = false
	s.polled = [2]polled{}
	s.setConnections()
	s.countIn(s.server.shards.pick())
	return err
}

// setConnections tells readers and senders where they read and send.
func (s *session) setConnections() {
	s.in.conn, s.out.w.conn = s.client, s.client
	s.from.conn, s.up.conn = s.backend, s.backend
}

// duplicate returns a descriptor of conn's socket that the runtime's poller
// does not know: it would be woken by every packet, too.
func duplicate(conn net.Conn) (int, error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var fd int
	var dupErr error
	err = raw.Control(func(original uintptr) {
		fd, dupErr = unix.FcntlInt(original, unix.F_DUPFD_CLOEXEC, 0)
	})
	if err != nil {
		return 0, err
	}
	return fd, dupErr
}

// connection makes a connection of a descriptor, which it takes.
func connection(fd int) (net.Conn, error) {
	file := os.NewFile(uintptr(fd), "")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		// FileConn has set its own.
		err = tcp.SetKeepAliveConfig(keepAlive)
	}
	return conn, err
}
