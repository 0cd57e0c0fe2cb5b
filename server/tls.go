package server

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
)

// alpn is Postgres's protocol name in TLS.
const alpn = "postgresql"

// maxRecord bounds what is written to a client in one TLS record: libpq's
// asynchronous calls do not see what is left in OpenSSL's buffer when they
// have read 8 KiB of a longer one.
const maxRecord = 8 << 10

var errNoALPN = errors.New("direct TLS connection without ALPN")

// clientTLS is a client's TLS connection.
type clientTLS struct {
	*tls.Conn
	// binding is what SCRAM-SHA-256-PLUS binds a login to, nil if the
	// certificate has no such thing.
	binding []byte
}

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

// clientConfig completes the TLS configuration of the client's side.
func clientConfig(given *tls.Config) *tls.Config {
	config := given.Clone()
	if len(config.NextProtos) == 0 {
		config.NextProtos = []string{alpn}
	}
	config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	// A resumed session shows no certificate, which a login could be bound to.
	// Postgres hands out no tickets either.
	config.SessionTicketsDisabled = true
	// Small records would be sent one by one.
	config.DynamicRecordSizingDisabled = true
	return config
}

// secureClient does the server's part of a TLS handshake. With direct the
// client has not asked first, and has to say in the handshake which protocol
// it means to speak.
func secureClient(conn net.Conn, config *tls.Config, direct bool) (net.Conn, error) {
	var shown *tls.Certificate
	config = config.Clone()
	choose := config.GetCertificate
	if choose == nil {
		choose = firstSupported(config.Certificates)
	}
	config.Certificates = nil // else only a client that names a host gets to choose
	config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		var err error
		shown, err = choose(hello)
		return shown, err
	}
	secured := tls.Server(conn, config)
	if err := secured.Handshake(); err != nil {
		return conn, err
	}
	if direct && !slices.Contains(config.NextProtos, secured.ConnectionState().NegotiatedProtocol) {
		return conn, errNoALPN
	}
	return clientTLS{Conn: secured, binding: endPoint(shown.Certificate[0])}, nil
}

// firstSupported chooses as crypto/tls does among several certificates.
func firstSupported(certificates []tls.Certificate) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		for i := range certificates {
			if hello.SupportsCertificate(&certificates[i]) == nil {
				return &certificates[i], nil
			}
		}
		if len(certificates) == 0 {
			return nil, errors.New("no certificate")
		}
		return &certificates[0], nil
	}
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
