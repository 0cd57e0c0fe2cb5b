package flowstate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

const (
	// collectionDelay gives a transaction that has dropped or refreshed
	// something the time to commit.
	collectionDelay = time.Second
	// collectionPause is how long a database is then left alone.
	collectionPause = 10 * time.Second
	// collectionTimeout bounds one collection. What is left is for the next.
	collectionTimeout = 30 * time.Second
)

// collection is when the garbage of a database is collected.
type collection struct {
	timer *time.Timer // nil when none is due
	last  time.Time   // when the last one began
	end   context.CancelFunc
}

// CollectGarbageSoon has the garbage of a database collected in a while, once
// for all calls until then. failed is told why it could not be.
func (s *Service) CollectGarbageSoon(database string, failed func(error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[database]
	if c == nil {
		c = &collection{}
		s.collections[database] = c
	}
	if s.closed || c.timer != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectionPause+collectionTimeout)
	c.end = cancel
	s.collecting.Add(1)
	c.timer = time.AfterFunc(max(collectionDelay, collectionPause-time.Since(c.last)), func() {
		defer s.collecting.Done()
		defer cancel()
		s.mu.Lock()
		c.timer, c.last = nil, time.Now()
		s.mu.Unlock()
		if err := s.CollectGarbage(ctx, database); err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
}

// stop ends a collection, or what is due of it. s is locked.
func (c *collection) stop(s *Service) {
	if c.end != nil {
		c.end()
	}
	if c.timer != nil && c.timer.Stop() {
		c.timer = nil
		s.collecting.Done()
	}
}

// CollectGarbage deletes what no flow of a database needs any more: logged
// changes that every flow has taken in, triggers and logs of tables that no
// flow reads, proofs of views that are gone, refreshes older than HistoryDays.
// What it would have to wait for, it leaves to the next call.
func (s *Service) CollectGarbage(ctx context.Context, database string) error {
	return s.connected(ctx, database, func(conn *pgx.Conn) error {
		if _, err := collect(ctx, conn, newRequest("collect_garbage").text("action", "needs"), "relations"); err != nil {
			return err
		}
		if s.HistoryDays > 0 {
			r := newRequest("collect_garbage").text("action", "history").number("days", int64(s.HistoryDays))
			if _, err := collect(ctx, conn, r, "relations"); err != nil {
				return err
			}
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
