package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// SSLMode says how the connection to Postgres is protected, as libpq's sslmode
// does.
type SSLMode string

// The modes. The empty mode is SSLPrefer, as in libpq.
const (
	SSLDisable    SSLMode = "disable"
	SSLPrefer     SSLMode = "prefer"
	SSLRequire    SSLMode = "require"
	SSLVerifyCA   SSLMode = "verify-ca"
	SSLVerifyFull SSLMode = "verify-full"
)

// Upstream is where Postgres listens.
type Upstream struct {
	// Host is a host name, an address, or the folder of a Unix socket (an
	// absolute path).
	Host string
	Port int
	// SSLMode has no effect on a Unix socket.
	SSLMode SSLMode
	// RootCAs verifies the server's certificate; nil means the system's.
	RootCAs *x509.CertPool
}

func (u Upstream) isSocket() bool { return strings.HasPrefix(u.Host, "/") }

func (u Upstream) address() (network, address string) {
	if u.isSocket() {
		return "unix", filepath.Join(u.Host, socketName(u.Port))
	}
	return "tcp", net.JoinHostPort(u.Host, strconv.Itoa(u.Port))
}

func socketName(port int) string { return ".s.PGSQL." + strconv.Itoa(port) }

// validate reports the first fault of u.
func (u Upstream) validate() error {
	switch u.SSLMode {
	case "", SSLDisable, SSLPrefer, SSLRequire, SSLVerifyCA, SSLVerifyFull:
	default:
		return fmt.Errorf("unknown sslmode %q", u.SSLMode)
	}
	if u.Host == "" || u.Port <= 0 || u.Port > 65535 {
		return fmt.Errorf("upstream host %q and port %d are not an address", u.Host, u.Port)
	}
	return nil
}

// dial connects to Postgres, up to and including TLS. An error is a FATAL
// 08006 that names host and port.
func (u Upstream) dial(ctx context.Context) (net.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	network, address := u.address()
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, u.unreachable(err)
	}
	if u.isSocket() || u.SSLMode == SSLDisable {
		return conn, nil
	}
	secured, err := u.secure(ctx, conn)
	if err != nil {
		conn.Close()
		return nil, u.unreachable(err)
	}
	return secured, nil
}

// secure asks for TLS and starts it if Postgres agrees.
func (u Upstream) secure(ctx context.Context, conn net.Conn) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { interrupt(conn) })
	defer stop()
	if _, err := conn.Write(requestPacket(sslRequestCode)); err != nil {
		return nil, err
	}
	// One byte only: more would be the server's first TLS record, or an
	// attacker's plain text.
	var answer [1]byte
	if _, err := conn.Read(answer[:]); err != nil {
		return nil, err
	}
	switch {
	case answer[0] == 'S':
	case answer[0] == 'N' && (u.SSLMode == SSLPrefer || u.SSLMode == ""):
		return conn, nil
	case answer[0] == 'N':
		return nil, errors.New("the server does not support TLS, but sslmode requires it")
	default:
		return nil, errors.New("unexpected answer to a TLS request")
	}
	secured := tls.Client(conn, u.tlsConfig())
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return secured, nil
}

func (u Upstream) tlsConfig() *tls.Config {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12,
		ServerName: u.Host,
		RootCAs:    u.RootCAs,
		NextProtos: []string{alpn},
		// Small records would be sent one by one.
		DynamicRecordSizingDisabled: true,
	}
	if u.SSLMode == SSLVerifyFull {
		return config
	}
	// prefer and require promise encryption only; verify-ca checks the chain
	// but not the name, which tls.Config cannot say by itself.
	config.InsecureSkipVerify = true
	if u.SSLMode == SSLVerifyCA {
		config.VerifyConnection = func(state tls.ConnectionState) error {
			options := x509.VerifyOptions{Roots: u.RootCAs, Intermediates: x509.NewCertPool()}
			for _, certificate := range state.PeerCertificates[1:] {
				options.Intermediates.AddCert(certificate)
			}
			_, err := state.PeerCertificates[0].Verify(options)
			return err
		}
	}
	return config
}

func (u Upstream) unreachable(err error) error {
	d := pgdiag.New("08006", fmt.Sprintf("could not connect to Postgres on host %q, port %d", u.Host, u.Port))
	d.Severity = "FATAL"
	var opError *net.OpError
	if errors.As(err, &opError) && opError.Err != nil {
		err = opError.Err // without the proxy's own addresses
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("timeout expired")
	}
	return d.WithDetail(err.Error())
}
