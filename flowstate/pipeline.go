package flowstate

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// A pipeline, in the words of Databricks, is all flows of a database. It has
// the database's name, and the id in rwproxy.database.

// Pipelines returns the ids of the databases of the server that hold schemas of
// ours, by name. A database that the service may not connect to is left out.
func (s *Service) Pipelines(ctx context.Context) (map[string]string, error) {
	names, err := s.databases(ctx)
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for _, name := range names {
		err := s.Do(ctx, name, func(session pgsession.Session) error {
			id, err := pipelineID(ctx, session)
			if id != "" {
				ids[name] = id
			}
			return err
		})
		if ctx.Err() != nil {
			return nil, err
		}
	}
	return ids, nil
}

// databases returns the names of the databases that can be connected to.
func (s *Service) databases(ctx context.Context) (names []string, err error) {
	err = s.connected(ctx, s.config.Database, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `
			select d.datname
			  from pg_catalog.pg_database d
			 where d.datallowconn and not d.datistemplate
			 order by d.datname`)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	return names, err
}

// pipelineID returns "" unless the database holds schemas that may be trusted
// as [refuseForeignOwner] has it, and that have an id.
func pipelineID(ctx context.Context, session pgsession.Session) (string, error) {
	rows, err := session.Query(ctx, `
		select pg_catalog.to_regclass('rwproxy.database') is not null
		  from pg_catalog.pg_namespace n
		  join pg_catalog.pg_roles r on r.oid = n.nspowner
		 where n.nspname = 'rwproxy' and (r.rolsuper or r.rolname = session_user)`)
	if err != nil || len(rows) == 0 || rows[0][0].Text != "t" {
		return "", err
	}
	rows, err = session.Query(ctx, "select d.id from rwproxy.database d")
	if err == nil && len(rows) == 0 {
		err = errors.New("rwproxy.database is empty")
	}
	if err != nil {
		return "", err
	}
	return rows[0][0].Text, nil
}

// ConnectableDatabases returns which databases a role may connect to. With like
// their names match that pattern, as in LIKE.
func (s *Service) ConnectableDatabases(ctx context.Context, role string, like *string) (names []string, err error) {
	err = s.connected(ctx, s.config.Database, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `
			select d.datname
			  from pg_catalog.pg_database d
			  join pg_catalog.pg_roles r on r.rolname = $1
			 where d.datallowconn
			   and not d.datistemplate
			   and pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT')
			   and ($2::pg_catalog.text is null or d.datname::pg_catalog.text like $2)`, role, like)
		if err == nil {
			names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return pgsession.FromPgxError(err)
	})
	return names, err
}
