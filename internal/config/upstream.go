package config

import (
	"crypto/x509"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// defaultConnectTimeout bounds a connection attempt that the upstream setting
// does not bound with connect_timeout.
const defaultConnectTimeout = 10 * time.Second

// Upstream is the Postgres behind the proxy.
type Upstream struct {
	// Service is how the proxy itself connects.
	Service *pgx.ConnConfig
	// Host is where clients' sessions go: a name, an address, or the directory
	// of a Unix socket.
	Host string
	Port int
	// SSLMode is libpq's, never "allow".
	SSLMode string
	// RootCAs verifies the server's certificate; nil means the system's.
	RootCAs *x509.CertPool
	// ConnectTimeout bounds one attempt to connect.
	ConnectTimeout time.Duration
}

// NewUpstream returns the upstream that a libpq URL or keyword string names.
// As with libpq, what the string leaves out comes from the PG* environment
// variables, the password file and the service file. The error never quotes
// the string.
func NewUpstream(conninfo string) (*Upstream, error) {
	service, err := ParseConnection(conninfo)
	if err != nil {
		return nil, err
	}
	for _, fallback := range service.Fallbacks {
		if fallback.Host != service.Host || fallback.Port != service.Port {
			return nil, errors.New("names several hosts: name one")
		}
	}
	if service.ConnectTimeout == 0 {
		service.ConnectTimeout = defaultConnectTimeout
	}
	service.RuntimeParams["application_name"] = "rwproxy"
	u := &Upstream{
		Service:        service,
		Host:           service.Host,
		Port:           int(service.Port),
		ConnectTimeout: service.ConnectTimeout,
	}
	u.SSLMode, u.RootCAs, err = protection(service)
	return u, err
}

// ParseConnection reads a libpq URL or keyword string, "" for nothing but the
// PG* environment variables, the password file and the service file. The error
// never quotes the string.
func ParseConnection(conninfo string) (*pgx.ConnConfig, error) {
	settings, err := pgx.ParseConfig(conninfo)
	if err != nil {
		return nil, errors.New(describe(err))
	}
	return settings, nil
}

// Session returns how a role connects to a database with its own password:
// where the service does, and with nothing else of its.
func (u *Upstream) Session(role, password, database string) *pgx.ConnConfig {
	c := u.Service.Copy()
	c.User, c.Password, c.Database = role, password, database
	c.RuntimeParams = map[string]string{"application_name": "rwproxy api"}
	c.SSLCertMode = "disable"
	return c
}

// protection returns the sslmode that pgx has read and turned into attempts to
// connect, and the certificates of its sslrootcert.
func protection(service *pgx.ConnConfig) (string, *x509.CertPool, error) {
	first := service.TLSConfig
	switch {
	case first == nil && len(service.Fallbacks) == 0:
		return "disable", nil, nil
	case first == nil:
		return "", nil, errors.New("sslmode allow is not supported: use prefer or disable")
	case len(service.Fallbacks) > 0:
		return "prefer", first.RootCAs, nil
	case !first.InsecureSkipVerify:
		return "verify-full", first.RootCAs, nil
	case first.VerifyPeerCertificate != nil:
		return "verify-ca", first.RootCAs, nil
	}
	return "require", first.RootCAs, nil
}

func parseUpstream(value string) (*Upstream, error) {
	if value == "" {
		return nil, nil
	}
	return NewUpstream(value)
}

// describe says what is wrong with a connection string without any part of
// it: a string that could not be taken apart may have its password anywhere.
func describe(err error) string {
	const (
		form    = "not a libpq URL (postgres://user:password@host:port/database) or keyword string (host=... port=... user=...)"
		percent = "; special characters in a URL's password must be percent-encoded"
	)
	text := err.Error()
	for _, known := range []struct{ part, fault string }{
		{"sslmode is invalid", "sslmode is none of disable, prefer, require, verify-ca, verify-full"},
		{"failed to configure TLS", "the TLS settings cannot be used: check sslmode, sslrootcert, sslcert and sslkey"},
		{"invalid port", "the port is not a number from 1 to 65535" + percent},
	} {
		if strings.Contains(text, known.part) {
			return known.fault
		}
	}
	return form + percent
}
