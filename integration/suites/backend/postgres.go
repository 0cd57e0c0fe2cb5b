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

// Postgres calls use with a new, empty Postgres that lives as long. It lets
// everybody in without a password, but for what the lines of hba say.
// RWPROXY_TEST_PG_BIN chooses its version, as it does for the tests.
func Postgres(ctx context.Context, settings map[string]string, hba []string, use func(*embedded.Postgres) error) (err error) {
	dir, err := os.MkdirTemp("", "rwproxy-suites-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	all := map[string]string{"fsync": "off"}
	maps.Copy(all, settings)
	server, err := embedded.Start(ctx, embedded.Config{
		DataDir:  dir,
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		Settings: all,
		HBA:      hba,
		Trust:    true,
	})
	if err != nil {
		return err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		err = errors.Join(err, server.Stop(ending))
	}()
	return use(server)
}
