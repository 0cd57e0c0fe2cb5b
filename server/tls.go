package server

import (
	"crypto/tls"
	"net"
)

// alpn is Postgres's protocol name in TLS.
const alpn = "postgresql"

// maxRecord bounds what is written to a client in one TLS record: libpq's
// asynchronous calls do not see what is left in OpenSSL's buffer when they
// have read 8 KiB of a longer one.
const maxRecord = 8 << 10

// clientTLS is a client's TLS connection.
type clientTLS struct{ *tls.Conn }

// Write implements net.Conn.
func (c clientTLS) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		n, err := c.Conn.Write(b[:min(len(b), maxRecord)])
		written += n
		if err != nil {
			return written, err
		}
		b = b[n:]
	}
	return written, nil
}

// halfClose tells the other side that nothing more will come, and keeps
// reading possible.
func halfClose(conn net.Conn) {
	type writeCloser interface{ CloseWrite() error }
	// A failure means that the connection is gone already, which its reader
	// finds out.
	if secured, ok := conn.(*tls.Conn); ok {
		_ = secured.CloseWrite()
		conn = secured.NetConn()
	}
	if c, ok := conn.(writeCloser); ok {
		_ = c.CloseWrite()
	}
}
