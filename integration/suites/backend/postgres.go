// Package backend starts what the suites run against: a Postgres of their own,
// and rwproxy in front of it.
//
// It may import internal/embedded.
package backend

import (
	"context"
	"errors"
	"maps"
	"os"
	"time"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// stopping is how long a server or proxy may take to end.
const stopping = time.Minute

// Config says which Postgres to start.
type Config struct {
	// Settings are server settings, as in postgresql.conf.
	Settings map[string]string
	// HBA are lines that come first in pg_hba.conf. The others let everybody in
	// without a password.
	HBA []string
	// TLS has the server offer TLS.
	TLS bool
}

// Server is a running Postgres.
type Server struct {
	URL  string // of database postgres, for its superuser
	Port int    // on 127.0.0.1
	// Certificate is the server's; empty without TLS.
	Certificate Certificate
}

// Postgres calls use with a new, empty Postgres that lives as long.
// RWPROXY_TEST_PG_BIN chooses its version, as it does for the tests.
func Postgres(ctx context.Context, c Config, use func(Server) error) (err error) {
	dir, err := os.MkdirTemp("", "rwproxy-suites-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := map[string]string{"fsync": "off"}
	maps.Copy(all, c.Settings)
	postgres, err := embedded.Start(ctx, embedded.Config{
		DataDir:  dir,
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		Settings: all,
		HBA:      c.HBA,
		Trust:    true,
	})
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		err = errors.Join(err, postgres.Stop(ending))
	}()
	server := Server{URL: postgres.URL("postgres"), Port: postgres.Port()}
	if c.TLS {
		if server.Certificate, err = newCertificate(dir); err != nil {
			return err
		}
		if err := offerTLS(ctx, server.URL, server.Certificate); err != nil {
			return err
		}
	}
	return use(server)
}
