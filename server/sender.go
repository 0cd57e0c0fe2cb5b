package server

import "net"

// sender collects what goes out on one connection until it is flushed. What
// it is given is kept, not copied, as long as it is one piece of memory:
// messages that are passed on lie one behind the other in the buffer they were
// read into, and leave in one system call. So it is flushed before that buffer
// is read into again.
//
// In the loop a flush never waits: what the kernel does not take is kept as
// backlog, and whoever fills the sender is not read until it is gone.
type sender struct {
	conn net.Conn // nil in the loop
	fd   int      // in the loop

	piece   []byte // memory of the caller's
	backlog []byte // goes out before piece; memory of the sender's own
	failed  bool   // the connection takes no more
}

// Write implements io.Writer, but for keeping b.
func (w *sender) Write(b []byte) (int, error) {
	switch {
	case len(w.backlog) > 0:
		w.backlog = append(w.backlog, b...)
	case len(w.piece) == 0:
		w.piece = b
	case continues(w.piece, b):
		w.piece = w.piece[:len(w.piece)+len(b)]
	default:
		w.keep()
		w.backlog = append(w.backlog, b...)
	}
	return len(b), nil
}

// continues reports that b lies right behind a in the same memory.
func continues(a, b []byte) bool {
	return len(b) > 0 && cap(a)-len(a) >= len(b) && &a[:len(a)+1][len(a)] == &b[0]
}

// keep copies what has not been sent, so that the buffer it lies in is free.
func (w *sender) keep() {
	w.backlog = append(w.backlog, w.piece...)
	w.piece = nil
}

// Flush sends what has been written.
func (w *sender) Flush() error {
	if w.conn == nil {
		return w.flushNow()
	}
	for _, b := range [...][]byte{w.backlog, w.piece} {
		if len(b) == 0 {
			continue
		}
		if _, err := w.conn.Write(b); err != nil {
			w.failed = true
			return err
		}
	}
	w.backlog, w.piece = nil, nil
	return nil
}

// flushNow sends what the kernel takes at once.
func (w *sender) flushNow() error {
	if len(w.backlog) > 0 {
		w.keep()
		n, err := send(w.fd, w.backlog)
		w.backlog = w.backlog[n:]
		if len(w.backlog) == 0 {
			w.backlog = nil
		}
		return err
	}
	if len(w.piece) == 0 {
		return nil
	}
	n, err := send(w.fd, w.piece)
	w.piece = w.piece[n:]
	w.keep()
	if len(w.backlog) == 0 {
		w.backlog = nil
	}
	return err
}

func (w *sender) isBlocked() bool { return len(w.backlog) > 0 }
