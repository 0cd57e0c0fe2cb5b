package console

import (
	"context"
	_ "embed" // SQL files
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

//go:embed role_settings.sql
var roleSettings string

// closeTimeout bounds a polite goodbye to Postgres.
const closeTimeout = time.Second

// errNoPipeline is returned for a database that does not exist or has no flows.
var errNoPipeline = errors.New("no pipeline")

// session is a session of a caller's in a pipeline's database.
type session struct {
	pgsession.Session
	conn     *pgx.Conn
	role     string
	database string
	id       string // the pipeline's
}

// open opens a session of the caller's in the database of a pipeline, which is
// named by its id or by its database's name. Errors: 401, 403 if the role may
// not connect, 404 if there is no such pipeline.
func (a *api) open(ctx context.Context, c *caller, pipeline string) (*session, error) {
	// Postgres would cut a name that is longer, to that of another database.
	if len(pipeline) > maxName || strings.ContainsRune(pipeline, 0) {
		if err := a.prove(ctx, c); err != nil {
			return nil, err
		}
		return nil, pipelineMissing(pipeline)
	}
	if isUUID(pipeline) {
		return a.openByID(ctx, c, pipeline)
	}
	s, err := a.openDatabase(ctx, c, pipeline)
	if errors.Is(err, errNoPipeline) {
		err = pipelineMissing(pipeline)
	}
	return s, err
}

// openByID opens a pipeline by its id. A database may have that for its name.
func (a *api) openByID(ctx context.Context, c *caller, id string) (*session, error) {
	database := a.catalog.cached(id)
	if database == "" {
		return a.openFound(ctx, c, id)
	}
	s, err := a.openDatabase(ctx, c, database)
	if err == nil && s.id == id {
		return s, nil
	}
	if err == nil {
		s.close()
	} else if !errors.Is(err, errNoPipeline) {
		return nil, err
	}
	// The database has another name now, or is another one.
	a.catalog.forget()
	return a.openFound(ctx, c, id)
}

// openFound is openByID after a look at all databases.
func (a *api) openFound(ctx context.Context, c *caller, id string) (*session, error) {
	if err := a.prove(ctx, c); err != nil {
		return nil, err
	}
	database, err := a.catalog.find(ctx, id)
	if err != nil {
		return nil, err
	}
	if database == "" {
		database = id
	}
	s, err := a.openDatabase(ctx, c, database)
	switch {
	case errors.Is(err, errNoPipeline):
		return nil, pipelineMissing(id)
	case err != nil:
		return nil, err
	case s.id != id && s.database != id:
		s.close()
		return nil, pipelineMissing(id)
	}
	return s, nil
}

// openDatabase opens a session of the caller's in a database. Errors as open,
// and errNoPipeline.
func (a *api) openDatabase(ctx context.Context, c *caller, database string) (*session, error) {
	conn, err := a.connect(ctx, c, database)
	if err != nil {
		return nil, err
	}
	s := &session{Session: pgsession.FromPgx(conn), conn: conn, role: c.role, database: database}
	if err := s.prepare(ctx, a); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// prepare makes sure that what the session is about to read is rwproxy's.
// Whoever owns the database sets defaults for every session in it, so the
// search_path is ours.
func (s *session) prepare(ctx context.Context, a *api) error {
	for _, setting := range []string{"set search_path = pg_catalog, pg_temp", "set client_encoding = 'UTF8'"} {
		if _, err := s.Exec(ctx, setting); err != nil {
			return err
		}
	}
	installed, err := a.config.Service.Installed(ctx, s, s.database)
	if err != nil {
		return err
	}
	if !installed {
		return errNoPipeline
	}
	rows, err := s.Query(ctx, "select d.id from rwproxy.database d")
	if err != nil {
		return err
	}
	s.id = rows[0][0].Text
	a.catalog.learn(s.database, s.id)
	return nil
}

// enterRole gives the session the settings that decide what a text means, as the
// role has them when it logs in. The login behind a token is another, which has
// none of the role's own.
func (s *session) enterRole(ctx context.Context, c *caller) error {
	if !c.byToken {
		_, err := s.Exec(ctx, "reset search_path")
		return err
	}
	rows, err := s.Query(ctx, roleSettings, c.role)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if _, err := s.Query(ctx, "select pg_catalog.set_config($1, $2, false)", row[0].Text, row[1].Text); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) close() { closeConn(s.conn) }

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx) // it is gone either way
}

// Joined implements refresh.Client.
func (s *session) Joined() bool { return false }

// Notice implements refresh.Client. The API has no place for notices: what an
// update says is in its events.
func (s *session) Notice(*pgdiag.Diagnostic) {}

// User implements refresh.Client.
func (s *session) User() string { return s.role }

// Database implements refresh.Client.
func (s *session) Database() string { return s.database }
