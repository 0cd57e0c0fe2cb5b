package flowstate

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// QueueChannel is the channel that is notified when there is something new in
// the queue.
const QueueChannel = "rwproxy"

// Request is a refresh that is to run by itself.
type Request struct {
	Target uint32 // OID of the table
	Kind   Kind
	// Where is the predicate of an override, as typed, with the settings that it
	// is read by.
	Where    string
	Settings map[string]string
}

// Enqueue queues a refresh for the session's role, and returns the id of its
// update, a UUID. It is accepted when the session's transaction commits. Errors
// as [Start], but no lock is needed.
func Enqueue(ctx context.Context, s pgsession.Session, r Request) (updateID string, err error) {
	q := newRequest("enqueue_refresh").
		number("target", int64(r.Target)).
		text("kind", string(r.Kind))
	if r.Kind == KindOverride {
		q.text("where", r.Where).object("settings", r.Settings)
	}
	row, err := q.send(ctx, s, "id")
	return row["id"].Text, err
}

// Job is a queued refresh that may begin.
type Job struct {
	ID          string // of the refresh, a UUID
	UpdateID    string // as ID, unless the update is of several refreshes
	Target      uint32 // OID of the table
	Schema      string
	Name        string // of the table
	Kind        Kind
	Cause       Cause
	RequestedBy string // the role that it runs as
	Attempt     int    // how often it was begun in vain
}

// Queue is what there is to do in a database. Its times are those of the
// database's clock.
type Queue struct {
	Now time.Time
	// Ready are the refreshes that may begin, the longest due first: one a table,
	// and none of a table that is being refreshed.
	Ready []Job
	// NextDue is when the next one becomes due; zero if none will.
	NextDue time.Time
	// Elsewhere says that refreshes of the queue are running, in whatever
	// session, or wait for others than those in Ready: nobody says when a session
	// is lost, or a table is free.
	Elsewhere bool
}

// ReadQueue returns at most limit refreshes that may begin now, for the service
// connection. Those that never can, for want of their table or role, it ends.
func ReadQueue(ctx context.Context, s pgsession.Session, limit int) (Queue, error) {
	row, err := newRequest("read_queue").number("limit", int64(limit)).send(ctx, s, "now", "ready", "next_due", "elsewhere")
	if err != nil {
		return Queue{}, err
	}
	q := Queue{Elsewhere: row["elsewhere"].Text == "true"}
	if err := json.Unmarshal([]byte(row["ready"].Text), &q.Ready); err != nil {
		return Queue{}, fmt.Errorf("queue: %w", err)
	}
	if q.Now, err = time.Parse(time.RFC3339Nano, row["now"].Text); err != nil {
		return Queue{}, err
	}
	if !row["next_due"].Null {
		q.NextDue, err = time.Parse(time.RFC3339Nano, row["next_due"].Text)
	}
	return q, err
}

// RequeueLost queues the refreshes again that ran by themselves in sessions that
// are lost, for the service connection, and returns how many there were. One
// that has lost many is recorded as failed instead.
func RequeueLost(ctx context.Context, s pgsession.Session) (int64, error) {
	row, err := newRequest("requeue_lost").send(ctx, s, "number")
	return integer(row["number"]), err
}

// StartQueued records that the session now runs a queued refresh of a table, as
// [Start] does, and returns what was asked for: nil if the refresh is not queued
// any more. Errors: 42501 unless the session's role is the one that asked for
// it, and as Start.
func StartQueued(ctx context.Context, s pgsession.Session, target uint32, id string) (*Request, error) {
	row, err := newRequest("start_refresh").number("target", int64(target)).text("id", id).
		send(ctx, s, "id", "where", "settings")
	if err != nil || row["id"].Null {
		return nil, err
	}
	r := &Request{Target: target, Where: row["where"].Text}
	if err := json.Unmarshal([]byte(row["settings"].Text), &r.Settings); err != nil {
		// It was enqueued without rwproxy. Trying it again is of no use.
		return nil, pgdiag.New("22023", "the settings of the refresh cannot be read").WithDetail(err.Error() + ".")
	}
	return r, nil
}

// Cancel ends a refresh, or all refreshes of an update: those that wait at once,
// those that run as soon as they can be interrupted. It returns false if there
// is none that has not ended, and 42501 unless the session's role has the rights
// of the one that asked for it, of the table's owner or of the service.
func Cancel(ctx context.Context, s pgsession.Session, updateID string) (bool, error) {
	rows, err := s.Query(ctx, "select rwproxy.cancel_refresh($1)", updateID)
	if err != nil {
		return false, withoutContext(err)
	}
	return rows[0][0].Text == "t", nil
}
