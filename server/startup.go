package server

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// Request codes that stand where a startup message has its protocol version.
const (
	cancelRequestCode = 80877102
	sslRequestCode    = 80877103
	gssRequestCode    = 80877104
)

// protocolMajor is the major version of the protocol that the packet's
// parameters are in.
const protocolMajor = 3

// handshakeRecord is the first byte of a TLS connection. As that of a length
// it would be far too long.
const handshakeRecord = 0x16

// The bounds that Postgres puts on a startup packet.
const minStartup, maxStartup = 8, 10000

var (
	errStartup     = errors.New("invalid startup packet")
	errEarlyBytes  = errors.New("received unencrypted data after a request for encryption")
	errOnlyOnce    = errors.New("TLS or GSSAPI encryption requested twice")
	errLateRequest = errors.New("encryption requested on a connection that has it")
	errNoTLS       = errors.New("direct TLS connection, but TLS is not offered")
)

// startup is the first packet that is not about encryption.
type startup struct {
	raw    []byte // as the client sent it
	cancel bool   // a CancelRequest

	user, database string
	replication    bool
}

func requestPacket(code uint32) []byte {
	packet := binary.BigEndian.AppendUint32(nil, 8)
	return binary.BigEndian.AppendUint32(packet, code)
}

// negotiate answers requests for encryption and returns the connection to use
// from then on with the startup or cancel packet.
func negotiate(conn net.Conn, config *tls.Config) (net.Conn, startup, error) {
	head, err := readHead(conn)
	if err != nil {
		return conn, startup{}, err
	}
	if head[0] == handshakeRecord {
		if conn, err = acceptDirectTLS(conn, config, head); err != nil {
			return conn, startup{}, err
		}
		if head, err = readHead(conn); err != nil {
			return conn, startup{}, err
		}
	}
	var asked requests
	for {
		packet, err := readStartup(conn, head)
		if err != nil {
			return conn, startup{}, err
		}
		switch code := binary.BigEndian.Uint32(packet[4:]); {
		case (code == sslRequestCode || code == gssRequestCode) && len(packet) == 8:
			if err := asked.admit(conn, code); err != nil {
				return conn, startup{}, err
			}
			if conn, err = answer(conn, config, code); err != nil {
				return conn, startup{}, err
			}
		case code == cancelRequestCode:
			return conn, startup{raw: packet, cancel: true}, nil
		default:
			return conn, parseStartup(packet), nil
		}
		if head, err = readHead(conn); err != nil {
			return conn, startup{}, err
		}
	}
}

// requests are the requests for encryption that a client has sent.
type requests struct{ tls, gss bool }

// admit reports whether one more may be answered: each is allowed once, none on
// an encrypted connection, and nobody sends more before the answer but an
// attacker who cannot encrypt (CVE-2021-23214).
func (r *requests) admit(conn net.Conn, code uint32) error {
	if _, ok := conn.(clientTLS); ok {
		return errLateRequest
	}
	asked := &r.tls
	if code == gssRequestCode {
		asked = &r.gss
	}
	if *asked {
		return errOnlyOnce
	}
	*asked = true
	if hasMore(conn) {
		return errEarlyBytes
	}
	return nil
}

// answer answers a request for encryption.
func answer(conn net.Conn, config *tls.Config, code uint32) (net.Conn, error) {
	if code == gssRequestCode || !offersTLS(conn, config) {
		_, err := conn.Write([]byte{'N'})
		return conn, err
	}
	if _, err := conn.Write([]byte{'S'}); err != nil {
		return conn, err
	}
	return secureClient(conn, config, false)
}

// acceptDirectTLS starts TLS with a client that has not asked first: its head
// is the beginning of a TLS record.
func acceptDirectTLS(conn net.Conn, config *tls.Config, head []byte) (net.Conn, error) {
	if !offersTLS(conn, config) {
		return conn, errNoTLS
	}
	return secureClient(&replay{Conn: conn, first: head}, config, true)
}

// offersTLS reports whether a client may use TLS. On a Unix socket nobody can
// listen in; Postgres offers none there either.
func offersTLS(conn net.Conn, config *tls.Config) bool {
	_, isSocket := conn.(*net.UnixConn)
	return config != nil && !isSocket
}

// replay is a connection of which a few bytes have been read already.
type replay struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (r *replay) Read(b []byte) (int, error) {
	if len(r.first) > 0 {
		n := copy(b, r.first)
		r.first = r.first[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}

// hasMore reports that bytes of conn have arrived and not been read.
func hasMore(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	n := 0
	err = raw.Control(func(fd uintptr) {
		n, _, _ = syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	})
	return err == nil && n > 0
}

// readHead reads the length of the next packet.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, 4)
	_, err := io.ReadFull(r, head)
	return head, err
}

// readStartup reads the rest of a packet without a type byte, and not a byte
// more.
func readStartup(r io.Reader, head []byte) ([]byte, error) {
	length := int32(binary.BigEndian.Uint32(head))
	if length < minStartup || length > maxStartup {
		return nil, errStartup
	}
	packet := make([]byte, length)
	copy(packet, head)
	_, err := io.ReadFull(r, packet[4:])
	return packet, err
}

// parseStartup reads the parameters that the proxy has to know. Whether the
// packet is valid is for Postgres to say.
func parseStartup(packet []byte) startup {
	s := startup{raw: packet}
	if binary.BigEndian.Uint16(packet[4:]) != protocolMajor {
		return s
	}
	b := body{rest: packet[8:]}
	for !b.bad && len(b.rest) > 1 {
		name, value := b.text(), b.text()
		switch name {
		case "user":
			s.user = value
		case "database":
			s.database = value
		case "replication":
			s.replication = !isFalse(value)
		}
	}
	if s.database == "" {
		s.database = s.user
	}
	return s
}

// isFalse reads a boolean as Postgres does: any unambiguous beginning counts.
func isFalse(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	return value == "0" || value == "of" || value == "off" ||
		value != "" && (strings.HasPrefix("false", value) || strings.HasPrefix("no", value))
}
