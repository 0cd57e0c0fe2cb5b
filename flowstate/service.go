package flowstate

import (
	"context"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Service is the service connection: rwproxy's own role on every database of a
// server. It installs the schemas and does what no client's connection can. It
// is safe for concurrent use.
type Service struct {
	// HistoryDays is how long refreshes stay in the history after they have
	// ended, 0 for ever. It is set before the service is used.
	HistoryDays int

	config *pgx.ConnConfig

	mu        sync.Mutex
	closed    bool
	pools     map[string]*pool  // by database
	installed map[string]string // OID of schema rwproxy, by database

	collections map[string]*collection // of garbage, by database
	collecting  sync.WaitGroup

	installedIn func(database string) // nil, or told of databases with schemas
}

// NewService returns a service that connects to the server of a libpq URL, with
// its user and password. It does not connect yet.
func NewService(url string) (*Service, error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["application_name"] = "rwproxy"
	// Whoever owns a database sets defaults for every session in it, ours
	// included.
	config.RuntimeParams["role"] = "none"
	config.RuntimeParams["search_path"] = "pg_catalog"
	for _, limit := range limits {
		config.RuntimeParams[limit] = "0" // a session of the service has its own
	}
	config.RuntimeParams[idleInTransaction] = abandoned
	return &Service{
		config: config, pools: map[string]*pool{}, installed: map[string]string{}, collections: map[string]*collection{},
	}, nil
}

// limits are the settings that end a statement or a session that takes long.
var limits = []string{"statement_timeout", "lock_timeout", "idle_session_timeout"}

const (
	idleInTransaction = "idle_in_transaction_session_timeout"
	// abandoned is after how long a transaction is rolled back in which nothing
	// is asked for any more: its proxy is stopped, and its locks keep others out.
	abandoned = "1min"
)

// Do runs do on a connection to a database, and waits for one if all are busy.
// do leaves the session as it found it, or returns an error.
func (s *Service) Do(ctx context.Context, database string, do func(pgsession.Session) error) error {
	return s.connected(ctx, database, func(conn *pgx.Conn) error { return do(pgsession.FromPgx(conn)) })
}

func (s *Service) connected(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	p, err := s.pool(database)
	if err != nil {
		return err
	}
	return p.do(ctx, do)
}

// Connect opens a session of the service's role, which is the caller's to
// close, and to keep: while it is open the database cannot be dropped. notified
// is called for the notifications that the session gets, whenever it reads.
// Errors are those of Postgres, or of the network.
func (s *Service) Connect(ctx context.Context, database string, notified func(payload string)) (*pgx.Conn, error) {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return nil, errClosed()
	}
	config := s.config.Copy()
	config.Database = database
	config.OnNotification = func(_ *pgconn.PgConn, n *pgconn.Notification) { notified(n.Payload) }
	conn, err := pgx.ConnectConfig(ctx, config)
	return conn, pgsession.FromPgxError(err)
}

// Database is the database that the service's own URL names.
func (s *Service) Database() string {
	if s.config.Database == "" {
		return s.config.User // as Postgres has it
	}
	return s.config.Database
}

func errClosed() error { return pgdiag.New("57P01", "the proxy is shutting down") }

func (s *Service) pool(database string) (*pool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed()
	}
	p, found := s.pools[database]
	if !found {
		config := s.config.Copy()
		config.Database = database
		p = newPool(config)
		s.pools[database] = p
	}
	return p, nil
}

// Installed reports whether a client's database has rwproxy's schemas, up to
// date and from a role that may be trusted with them: what the functions in
// them do, they do in the client's session. Once it has answered yes it asks
// only the client's own connection.
func (s *Service) Installed(ctx context.Context, client pgsession.Session, database string) (bool, error) {
	oid, err := schemaOID(ctx, client)
	if err != nil || oid == "" {
		return false, err
	}
	s.mu.Lock()
	known := s.installed[database] == oid
	s.mu.Unlock()
	if known {
		return true, nil
	}
	err = s.EnsureInstalled(ctx, database)
	switch pgdiag.Code(err) {
	case "42501", "55000": // somebody else's schema, or a newer rwproxy's
		return false, nil
	}
	return err == nil, err
}

// Unusable is why the schemas that a client's database has cannot be used:
// 42501 if they are somebody else's, 55000 if they are a newer rwproxy's or are
// still being restored. It is nil if there are none, or nothing is in the way.
func (s *Service) Unusable(ctx context.Context, client pgsession.Session, database string) error {
	oid, err := schemaOID(ctx, client)
	if err != nil || oid == "" {
		return err
	}
	return s.EnsureInstalled(ctx, database)
}

// EnsureInstalled installs the schemas in a database, or brings them up to
// date. Errors as [Install].
func (s *Service) EnsureInstalled(ctx context.Context, database string) error {
	return s.connected(ctx, database, func(conn *pgx.Conn) error {
		if err := Install(ctx, conn); err != nil {
			return s.notInstalled(database, err)
		}
		oid, err := schemaOID(ctx, pgsession.FromPgx(conn))
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.installed[database] = oid
		s.mu.Unlock()
		if s.installedIn != nil {
			s.installedIn(database)
		}
		return nil
	})
}

// OnInstall has told called whenever the schemas of a database have been found
// up to date or brought there. It must be called before anything else is, and
// told must return at once.
func (s *Service) OnInstall(told func(database string)) { s.installedIn = told }

// notInstalled adds whose rights it is that are lacking: not the client's.
func (s *Service) notInstalled(database string, err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Code != "42501" || d.Hint != "" {
			return
		}
		role := s.config.User
		d.Detail = fmt.Sprintf("rwproxy installs its schemas as its service role %q.", role)
		d.Hint = fmt.Sprintf("GRANT CREATE ON DATABASE %s TO %s.", rewrite.QuoteIdentifier(database), rewrite.QuoteIdentifier(role))
	})
}

// schemaOID returns the OID of schema rwproxy, "" if there is none. A database
// dropped and made again under its name has another.
func schemaOID(ctx context.Context, s pgsession.Session) (string, error) {
	rows, err := s.Query(ctx, "select n.oid from pg_catalog.pg_namespace n where n.nspname = 'rwproxy'")
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0].Text, nil
}

// Close closes the idle connections, and waits for a collection of garbage;
// connections in use are closed when what uses them is done. It may be called
// more than once.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	for _, p := range s.pools {
		p.close()
	}
	for _, c := range s.collections {
		c.stop(s)
	}
	s.mu.Unlock()
	s.collecting.Wait()
}
