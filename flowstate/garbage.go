package flowstate

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// CollectGarbage deletes what no flow of a database needs any more: logged
// changes that every flow has taken in, triggers and logs of tables that no
// flow reads, proofs of views that are gone. What it would have to wait for, it
// leaves to the next call.
func (s *Service) CollectGarbage(ctx context.Context, database string) error {
	return s.connected(ctx, database, func(conn *pgx.Conn) error {
		if _, err := collect(ctx, conn, newRequest("collect_garbage").text("action", "needs"), "relations"); err != nil {
			return err
		}
		list, err := collect(ctx, conn, newRequest("collect_garbage").text("action", "list"), "relations")
		if err != nil || list == "" {
			return err
		}
		var relations []int64
		if err := json.Unmarshal([]byte(list), &relations); err != nil {
			return err
		}
		for _, oid := range relations {
			r := newRequest("collect_garbage").text("action", "relation").number("relation", oid)
			if _, err := collect(ctx, conn, r, "relations"); err != nil {
				return err
			}
		}
		return nil
	})
}

// collect runs one step of the collection in a transaction of its own.
func collect(ctx context.Context, conn *pgx.Conn, r *request, part string) (string, error) {
	var text string
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '"+captureLockTimeout+"'"); err != nil {
			return err
		}
		row, err := r.send(ctx, pgsession.FromPgx(conn), part)
		text = row[part].Text
		return err
	})
	switch err = pgsession.FromPgxError(err); pgdiag.Code(err) {
	case "55P03", "40P01": // locked by others
		return "", nil
	}
	return text, err
}
