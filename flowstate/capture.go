package flowstate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// CaptureRequest asks for the changes of tables to be recorded from now on.
type CaptureRequest struct {
	View      uint32 // of the flow that reads them; it may not be committed yet
	Author    string // the role whose rights the view has
	ClientPID int    // backend of the client that waits for the answer, 0 for none
	Sources   []CaptureSource
}

// CaptureSource is a table whose changes a flow wants to know.
type CaptureSource struct {
	OID uint32
	// Columns are those whose values are logged, most useful first: a statement
	// that changes very many values logs only the leading ones. A column whose
	// type cannot be compared exactly is left out.
	Columns []string
	// Reads are the columns that the flow reads: an UPDATE of others alone is
	// not logged. Nil stands for every column.
	Reads []string
}

// Tracking says whether the changes of a table are recorded.
type Tracking struct {
	OID      uint32
	Name     string // with its schema, quoted where needed; "" if its transaction has not committed
	Tracked  bool
	Obstacle string // why not, as one clause: "it is a foreign table"
	Hint     string // the way out, as a sentence
}

const (
	// captureLockTimeout bounds how long a table's writers can queue behind
	// the lock that installing triggers takes.
	captureLockTimeout = "100ms"
	captureAttempts    = 10
	capturePause       = 150 * time.Millisecond
)

// EnsureCapture records the changes of tables from now on, for the flow of a
// view, in committed transactions of its own: the flow's next snapshot must be
// taken afterwards. A table whose changes cannot be recorded is no error, its
// Tracking says why. It waits a few seconds at most for the writers of each.
// A flow's own target may be among the sources, with the columns of its
// predicate.
func (s *Service) EnsureCapture(ctx context.Context, database string, c CaptureRequest) ([]Tracking, error) {
	result := make([]Tracking, len(c.Sources))
	err := s.connected(ctx, database, func(conn *pgx.Conn) error {
		for i, source := range c.Sources {
			tracking, err := ensureCapture(ctx, conn, c, source)
			if err != nil {
				return err
			}
			result[i] = tracking
		}
		return nil
	})
	return result, err
}

// ensureCapture tries until the table's writers let it.
func ensureCapture(ctx context.Context, conn *pgx.Conn, c CaptureRequest, source CaptureSource) (Tracking, error) {
	const lockNotAvailable, deadlock, foreignKey = "55P03", "40P01", "23503"
	for attempt := 1; ; attempt++ {
		tracking, err := captureOnce(ctx, conn, c, source)
		switch pgdiag.Code(err) {
		case lockNotAvailable, deadlock, foreignKey: // the last: its log was collected as garbage meanwhile
		default:
			return tracking, err
		}
		if attempt == captureAttempts {
			return captureBusy(ctx, conn, source)
		}
		select {
		case <-ctx.Done():
			return Tracking{}, ctx.Err()
		case <-time.After(capturePause):
		}
	}
}

func captureOnce(ctx context.Context, conn *pgx.Conn, c CaptureRequest, source CaptureSource) (Tracking, error) {
	var tracking Tracking
	err := pgx.BeginTxFunc(ctx, conn, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "set local lock_timeout = '"+captureLockTimeout+"'"); err != nil {
			return err
		}
		r := newRequest("ensure_capture").
			number("view", int64(c.View)).
			text("author", c.Author).
			number("client_pid", int64(c.ClientPID)).
			number("relation", int64(source.OID)).
			list("columns", source.Columns)
		if source.Reads != nil {
			r.list("reads", source.Reads)
		}
		row, err := r.send(ctx, pgsession.FromPgx(conn), "name", "obstacle", "hint")
		tracking = Tracking{
			OID:      source.OID,
			Name:     row["name"].Text,
			Tracked:  row["obstacle"].Null,
			Obstacle: row["obstacle"].Text,
			Hint:     row["hint"].Text,
		}
		return err
	})
	return tracking, pgsession.FromPgxError(err)
}

// captureBusy is the answer for a table whose writers do not let go of it.
func captureBusy(ctx context.Context, conn *pgx.Conn, source CaptureSource) (Tracking, error) {
	rows, err := pgsession.FromPgx(conn).Query(ctx, "select $1::pg_catalog.oid::pg_catalog.regclass", int64(source.OID))
	if err != nil {
		return Tracking{}, err
	}
	return Tracking{
		OID:      source.OID,
		Name:     rows[0][0].Text,
		Obstacle: "other transactions were writing to it and did not end",
		Hint:     "A later refresh tries again.",
	}, nil
}

// StoredProof is how the changes of a flow's sources lead to the rows of its
// window that can differ.
type StoredProof struct {
	Sources []ProvedSource
	Detail  json.RawMessage // returned as [Changes].Proof
}

// ProvedSource is the routes of one table, in order of preference.
type ProvedSource struct {
	Relation uint32
	Routes   []ProvedRoute
}

// ProvedRoute leads from the logged changes of a table to keys of the view.
type ProvedRoute struct {
	Needs []LogColumns
	// SQL is a query for the distinct tuples of keys. In it {log:OID} stands
	// for the changes of a table since the last refresh, with columns named
	// c<attnum>: those rows that know all the columns needed. Everything in it
	// but tables is of pg_catalog.
	SQL string
	// LogsOnly says that SQL reads no table. It then runs with rwproxy's own
	// rights, else with those of the view's owner.
	LogsOnly bool
}

// LogColumns are columns of a table that a route must find logged.
type LogColumns struct {
	Relation uint32
	Columns  []string
}

// StoreProof stores the proof of a view, in place of the one it has. The
// fingerprint is that of the catalogs that the proof was made from, as
// [Changes] has it.
func (s *Service) StoreProof(ctx context.Context, database string, view uint32, fingerprint string, p StoredProof) error {
	sources, err := storedSources(p.Sources)
	if err != nil {
		return err
	}
	return s.Do(ctx, database, func(session pgsession.Session) error {
		_, err := newRequest("store_proof").
			number("view", int64(view)).
			text("fingerprint", fingerprint).
			json("sources", sources).
			json("detail", p.Detail).
			send(ctx, session)
		return err
	})
}
