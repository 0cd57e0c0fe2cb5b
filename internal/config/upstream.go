package config

import (
	"crypto/tls"
	"errors"
	"net"
	"strconv"
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
	// Network and Address are where a client's session goes, for net.Dial.
	Network, Address string
	// TLS are the attempts of a session, in order; nil is a plain connection.
	// sslmode prefer has two: TLS, then plain.
	TLS []*tls.Config
	// ConnectTimeout bounds one attempt.
	ConnectTimeout time.Duration
}

// NewUpstream returns the upstream that a libpq URL or keyword string names.
// As with libpq, what the string leaves out comes from the PG* environment
// variables, the password file and the service file. The error never quotes
// the string.
func NewUpstream(conninfo string) (*Upstream, error) {
	service, err := pgx.ParseConfig(conninfo)
	if err != nil {
		return nil, errors.New(describe(err))
	}
	if service.ConnectTimeout == 0 {
		service.ConnectTimeout = defaultConnectTimeout
	}
	u := &Upstream{
		Service:        service,
		Network:        "tcp",
		Address:        net.JoinHostPort(service.Host, strconv.Itoa(int(service.Port))),
		TLS:            []*tls.Config{service.TLSConfig},
		ConnectTimeout: service.ConnectTimeout,
	}
	for _, fallback := range service.Fallbacks {
		if fallback.Host != service.Host || fallback.Port != service.Port {
			return nil, errors.New("names several hosts: name one")
		}
		u.TLS = append(u.TLS, fallback.TLSConfig)
	}
	if strings.HasPrefix(service.Host, "/") || strings.HasPrefix(service.Host, "@") {
		u.Network = "unix"
		u.Address = service.Host + "/.s.PGSQL." + strconv.Itoa(int(service.Port))
		u.TLS = []*tls.Config{nil}
	}
	service.RuntimeParams["application_name"] = "rwproxy"
	return u, nil
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
		form    = "not a libpq URL (postgres://user:password@host:port/database) or keyword string (host=… port=… user=…)"
		percent = "; special characters in a URL's password must be percent-encoded"
	)
	text := err.Error()
	for _, known := range []struct{ part, fault string }{
		{"sslmode is invalid", "sslmode is none of disable, allow, prefer, require, verify-ca, verify-full"},
		{"failed to configure TLS", "the TLS settings cannot be used: check sslmode, sslrootcert, sslcert and sslkey"},
		{"invalid port", "the port is not a number from 1 to 65535" + percent},
	} {
		if strings.Contains(text, known.part) {
			return known.fault
		}
	}
	return form + percent
}
