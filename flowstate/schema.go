package flowstate

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

//go:embed bootstrap.sql
var bootstrap string

//go:embed privileges.sql
var privileges string

// schemas are those that Install creates and owns.
var schemas = []string{"rwproxy", "rwproxy_flows", "rwproxy_compat", "rwproxy_log"}

// migrations returns the text of each migration: the first is version 1. They
// are only ever added to.
func migrations() ([]string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // in lexical order
	if err != nil {
		return nil, err
	}
	texts := make([]string, len(names))
	for i, name := range names {
		text, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	return texts, nil
}

// Install brings the schemas of the connection's database up to date, in one
// transaction. It changes nothing when they are, and any number of proxies may
// do it at once. The role needs CREATE on the database and becomes the owner.
// Errors: 55000 if the schemas are of a newer rwproxy or are still being
// restored, 42501 without the right, or if somebody else made a schema of that
// name.
func Install(ctx context.Context, conn *pgx.Conn) error {
	if err := alone(ctx, conn, install); err != nil {
		return fmt.Errorf("install schema rwproxy: %w", err)
	}
	return nil
}

// alone runs do in a transaction in which nobody else installs or uninstalls
// anything, and whose schemas are ours if they are there.
func alone(ctx context.Context, conn *pgx.Conn, do func(context.Context, pgx.Tx) error) error {
	var standby bool
	if err := conn.QueryRow(ctx, "select pg_catalog.pg_is_in_recovery()").Scan(&standby); err != nil {
		return pgsession.FromPgxError(err)
	}
	if standby {
		return pgdiag.New("25006", "cannot execute statements of rwproxy during recovery").
			WithDetail("The server is a standby, which can be read only.").
			WithHint("Connect to the primary.")
	}
	options := pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}
	return pgsession.FromPgxError(pgx.BeginTxFunc(ctx, conn, options, func(tx pgx.Tx) error {
		// At READ COMMITTED the statements after the lock see what its last holder
		// committed.
		if _, err := tx.Exec(ctx, "select pg_catalog.pg_advisory_xact_lock($1, $2)", LockClass, installLock); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, "set local search_path = pg_catalog, pg_temp"); err != nil {
			return err
		}
		if err := refuseForeignOwner(ctx, tx); err != nil {
			return err
		}
		return do(ctx, tx)
	}))
}

func install(ctx context.Context, tx pgx.Tx) error {
	texts, err := migrations()
	if err != nil {
		return err
	}
	version, err := installedVersion(ctx, tx)
	if err != nil {
		return err
	}
	if err := refuseUnfinished(ctx, tx, version); err != nil {
		return err
	}
	switch {
	case version > len(texts):
		return pgdiag.New("55000", fmt.Sprintf("schema rwproxy is of version %d, this rwproxy knows versions up to %d", version, len(texts))).
			WithHint("Run the newer rwproxy.")
	case version == len(texts):
		if err := identify(ctx, tx); err != nil {
			return err
		}
		return installCompat(ctx, tx)
	case version == 0:
		if _, err := tx.Exec(ctx, bootstrap); err != nil {
			return err
		}
	}
	for i := version; i < len(texts); i++ {
		if _, err := tx.Exec(ctx, texts[i]); err != nil {
			return fmt.Errorf("migration %d: %w", i+1, err)
		}
		if _, err := tx.Exec(ctx, "insert into rwproxy.schema_version (version) values ($1)", i+1); err != nil {
			return err
		}
	}
	if err := identify(ctx, tx); err != nil {
		return err
	}
	if err := installCompat(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, privileges); err != nil {
		return err
	}
	// An older rwproxy that listens looks whether it still knows the schema.
	_, err = tx.Exec(ctx, "select pg_notify('rwproxy', 'installed')")
	return err
}

// identify gives a database that was made from another, by CREATE DATABASE …
// TEMPLATE or from a dump, an id of its own.
func identify(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "select rwproxy.identify_database()")
	return err
}

// refuseForeignOwner refuses schemas of our names that are neither ours nor a
// superuser's. Whoever may create schemas could otherwise put functions there
// for everybody's session to run.
func refuseForeignOwner(ctx context.Context, tx pgx.Tx) error {
	var schema, owner string
	err := tx.QueryRow(ctx, `
		select n.nspname, pg_get_userbyid(n.nspowner)
		  from pg_namespace n
		  join pg_roles r on r.oid = n.nspowner
		 where n.nspname = any ($1)
		   and not r.rolsuper
		   and r.rolname <> session_user
		 limit 1`, schemas).Scan(&schema, &owner)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	return pgdiag.New("42501", fmt.Sprintf("schema %q is owned by role %q", schema, owner)).
		WithDetail("rwproxy runs what is in this schema for everybody, so it must belong to rwproxy's service role or to a superuser.").
		WithHint(fmt.Sprintf("Run rwproxy with %q as the service role, or, if the schema is not rwproxy's, drop it.", owner))
}

// refuseUnfinished refuses schemas of which there is only a part: a dump is
// being restored, which creates the tables first, then fills them, and creates
// the triggers last.
func refuseUnfinished(ctx context.Context, tx pgx.Tx, version int) error {
	var tables, triggers bool
	err := tx.QueryRow(ctx, `
		select to_regclass('rwproxy.streaming_table') is not null,
		       exists (
		           select from pg_trigger
		            where tgrelid = to_regclass('rwproxy.request') and tgname = 'b_run_step')`).Scan(&tables, &triggers)
	if err != nil || !tables || version > 0 && triggers {
		return err
	}
	return pgdiag.New("55000", "schema rwproxy is not complete").
		WithDetail("A restore of the database has not ended, or did not succeed.").
		WithHint("Wait for its end. If it has ended, drop the schemas rwproxy, rwproxy_flows, rwproxy_log and rwproxy_compat, and restore again.")
}

// installedVersion returns 0 if nothing is installed.
func installedVersion(ctx context.Context, tx pgx.Tx) (int, error) {
	var exists bool
	if err := tx.QueryRow(ctx, "select to_regclass('rwproxy.schema_version') is not null").Scan(&exists); err != nil || !exists {
		return 0, err
	}
	var version int
	err := tx.QueryRow(ctx, "select coalesce(max(version), 0) from rwproxy.schema_version").Scan(&version)
	return version, err
}

// installCompat makes the functions of schema rwproxy_compat those of this
// rwproxy.
func installCompat(ctx context.Context, tx pgx.Tx) error {
	text := rewrite.CompatSQL()
	sum := sha256.Sum256([]byte(text))
	hash := hex.EncodeToString(sum[:])
	var installed bool
	err := tx.QueryRow(ctx, "select exists (select from rwproxy.compat_version where hash = $1)", hash).Scan(&installed)
	if err != nil || installed {
		return err
	}
	if _, err := tx.Exec(ctx, text); err != nil {
		return fmt.Errorf("functions of schema rwproxy_compat: %w", err)
	}
	if _, err := tx.Exec(ctx, "delete from rwproxy.compat_version"); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "insert into rwproxy.compat_version (hash) values ($1)", hash); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, privileges)
	return err
}
