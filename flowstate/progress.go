package flowstate

import (
	"context"
	"strconv"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Progress is how far a refresh has come.
type Progress struct {
	Step      string // what it does now
	Rows      int64  // of the step so far, -1 when that is not known
	Estimated bool   // Rows is about right
}

// NoteProgress writes down how far a refresh has come, for
// rwproxy.refreshes.progress. It is for the service connection, in a transaction
// that commits at once.
func NoteProgress(ctx context.Context, s pgsession.Session, refreshID string, p Progress) error {
	r := newRequest("note_progress").text("id", refreshID).text("step", p.Step).boolean("estimated", p.Estimated)
	if p.Rows >= 0 {
		r.number("rows", p.Rows)
	}
	_, err := r.send(ctx, s)
	return err
}

// ForgetProgress removes what NoteProgress has written of a refresh, and of
// those that were cut off.
func ForgetProgress(ctx context.Context, s pgsession.Session, refreshID string) error {
	_, err := newRequest("note_progress").text("id", refreshID).send(ctx, s)
	return err
}

// EstimatedRows returns how many rows the files of a table may hold, those of
// transactions that are open included. It is for the service connection. Error:
// 55P03 if the table is locked.
func EstimatedRows(ctx context.Context, s pgsession.Session, target uint32) (int64, error) {
	rows, err := s.Query(ctx, "select rwproxy.estimated_rows($1::pg_catalog.oid)", int64(target))
	if err != nil {
		return 0, withoutContext(err)
	}
	return strconv.ParseInt(rows[0][0].Text, 10, 64)
}
