package server

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// Request codes that stand where a startup message has its protocol version.
const (
	cancelRequestCode = 80877102
	sslRequestCode    = 80877103
	gssRequestCode    = 80877104
)

// The bounds that Postgres puts on a startup packet.
const minStartup, maxStartup = 8, 10000

var (
	errStartup     = errors.New("invalid startup packet")
	errEarlyBytes  = errors.New("received unencrypted data after a TLS request")
	errOnlyOnce    = errors.New("TLS or GSSAPI encryption requested twice")
	errLateRequest = errors.New("encryption requested on a connection that has it")
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
	var askedTLS, askedGSS bool
	for {
		packet, err := readStartup(conn)
		if err != nil {
			return conn, startup{}, err
		}
		switch code := binary.BigEndian.Uint32(packet[4:]); {
		case code == gssRequestCode && len(packet) == 8:
			if askedGSS {
				return conn, startup{}, errOnlyOnce
			}
			askedGSS = true
			if _, err := conn.Write([]byte{'N'}); err != nil {
				return conn, startup{}, err
			}
		case code == sslRequestCode && len(packet) == 8:
			if askedTLS {
				return conn, startup{}, errOnlyOnce
			}
			askedTLS = true
			if conn, err = answerTLS(conn, config); err != nil {
				return conn, startup{}, err
			}
		case code == cancelRequestCode:
			return conn, startup{raw: packet, cancel: true}, nil
		default:
			s, err := parseStartup(packet)
			return conn, s, err
		}
	}
}

func answerTLS(conn net.Conn, config *tls.Config) (net.Conn, error) {
	if _, ok := conn.(clientTLS); ok {
		return conn, errLateRequest
	}
	if _, isSocket := conn.(*net.UnixConn); config == nil || isSocket {
		_, err := conn.Write([]byte{'N'})
		return conn, err
	}
	if _, err := conn.Write([]byte{'S'}); err != nil {
		return conn, err
	}
	// What arrives now is a handshake record or an attempt to slip plain text
	// in front of it; a packet was read byte-exactly, so nothing is buffered.
	secured := clientTLS{tls.Server(conn, config)}
	return secured, secured.Handshake()
}

// readStartup reads one packet without a type byte, and not a byte more.
func readStartup(conn net.Conn) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(conn, head[:4]); err != nil {
		return nil, err
	}
	length := int32(binary.BigEndian.Uint32(head[:]))
	if length < minStartup || length > maxStartup {
		return nil, errStartup
	}
	packet := make([]byte, length)
	copy(packet, head[:4])
	_, err := io.ReadFull(conn, packet[4:])
	return packet, err
}

// parseStartup reads the parameters that the proxy has to know. Whether the
// packet is valid is for Postgres to say.
func parseStartup(packet []byte) (startup, error) {
	s := startup{raw: packet}
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
	if b.bad {
		return s, errStartup
	}
	if s.database == "" {
		s.database = s.user
	}
	return s, nil
}

// isFalse reads a boolean as Postgres does: any unambiguous beginning counts.
func isFalse(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	return value == "0" || value == "of" || value == "off" ||
		value != "" && (strings.HasPrefix("false", value) || strings.HasPrefix("no", value))
}

// startupDeadline bounds the time from accepting a connection to the end of
// its startup packet, as Postgres's authentication_timeout does.
const startupDeadline = time.Minute
