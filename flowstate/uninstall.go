package flowstate

import (
	"context"
	_ "embed" // SQL files
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// uninstallLockTimeout is how long a table may be used that an uninstallation
// has to take a trigger from.
const uninstallLockTimeout = "10s"

//go:embed uninstall.sql
var dependentsSQL string

// Uninstall drops rwproxy's schemas from the connection's database, and the
// triggers that capture changes, in one transaction. The tables stay, streaming
// tables with their rows. It does nothing when nothing is installed. It waits
// for those who use captured tables, but not for long: whoever wants to use one
// next waits behind it. Errors: 55006 while a refresh runs, which would wait for
// it in turn, 55P03 while somebody uses a table, 2BP01 if something outside the
// schemas depends on what is in them, 42501 unless the role owns them.
func Uninstall(ctx context.Context, conn *pgx.Conn) error {
	if err := alone(ctx, conn, uninstall); err != nil {
		return fmt.Errorf("uninstall schema rwproxy: %w", err)
	}
	return nil
}

func uninstall(ctx context.Context, tx pgx.Tx) error {
	if err := refuseWhileRefreshing(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "set local lock_timeout = '"+uninstallLockTimeout+"'"); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, dependentsSQL, schemas)
	if err != nil {
		return err
	}
	dependents, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	if len(dependents) > 0 {
		return pgdiag.New("2BP01", "cannot drop schema rwproxy because other objects depend on it").
			WithDetail("It is needed by " + strings.Join(dependents, ", ") + ".").
			WithHint("Drop them first, or let them do without rwproxy's functions and views.")
	}
	names := make([]string, len(schemas))
	for i, schema := range schemas {
		names[i] = rewrite.QuoteIdentifier(schema)
	}
	// The triggers go with their functions.
	_, err = tx.Exec(ctx, "drop schema if exists "+strings.Join(names, ", ")+" cascade")
	if err = pgsession.FromPgxError(err); pgdiag.Code(err) == "55P03" {
		return pgdiag.New("55P03", "cannot drop schema rwproxy while tables are in use").
			WithDetail("A transaction has been using a table whose changes are recorded, or a view of rwproxy's, for longer than " + uninstallLockTimeout + ".").
			WithHint("Run it again when the transaction has ended: pg_stat_activity shows those that are open.")
	}
	return err
}

func refuseWhileRefreshing(ctx context.Context, tx pgx.Tx) error {
	var tables []string
	err := tx.QueryRow(ctx, `
		select coalesce(array_agg(distinct l.objid::regclass::text), '{}')
		  from pg_locks l
		  join pg_database d on d.oid = l.database and d.datname = current_database()
		  join pg_class c on c.oid = l.objid -- other locks of the class are of no table
		 where l.locktype = 'advisory'
		   and l.classid = $1::oid
		   and l.objsubid = 2
		   and l.granted`, uint32(LockClass)).Scan(&tables)
	if err != nil || len(tables) == 0 {
		return err
	}
	return pgdiag.New("55006", "cannot drop schema rwproxy while tables are being refreshed").
		WithDetail("A refresh runs of " + strings.Join(tables, ", ") + ".").
		WithHint("Stop the instances of rwproxy, or let the refresh end, or end it with rwproxy.cancel_refresh.")
}
