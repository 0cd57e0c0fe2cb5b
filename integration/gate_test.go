package integration

import (
	"context"
	"fmt"
	"testing"
)

// A gated flow reads its source through a function that waits for an advisory
// lock, so that a test can hold a refresh in the middle for as long as it needs.
const (
	gateKey    = 4711
	createGate = `create function gate(integer) returns integer language plpgsql as $$
		begin
			perform pg_advisory_xact_lock_shared(4711);
			return $1;
		end $$`
	createGated = `create streaming table gated flow replace where id > 0 by name select gate(id) as id, value from source`
	readGated   = `select id, value from gated order by id, value`
)

// gate is the lock; its holder stands past the proxy.
type gate struct{ holder *session }

// createGated makes a gated flow with two rows and an open gate, then adds a
// third row to its source: a refresh is due.
func (s *session) createGated(d database) *gate {
	s.t.Helper()
	s.exec(`create table source (id integer, value text)`, `insert into source values (1, 'old'), (2, 'old')`, createGate, createGated,
		`update source set value = 'new'`, `insert into source values (3, 'new')`)
	s.want(readGated, beforeRefresh...)
	return &gate{holder: connect(s.t, d.direct)}
}

// What gated holds before and after the refresh that is due.
var (
	beforeRefresh = []string{"1|old", "2|old"}
	afterRefresh  = []string{"1|new", "2|new", "3|new"}
)

func (g *gate) close() {
	g.holder.t.Helper()
	g.holder.exec(fmt.Sprintf(`select pg_advisory_lock(%d)`, gateKey))
}

func (g *gate) open() {
	g.holder.t.Helper()
	g.holder.exec(fmt.Sprintf(`select pg_advisory_unlock(%d)`, gateKey))
}

// startRefresh sends a refresh that meets the closed gate, waits until it does,
// and returns where its outcome will be. The session belongs to the refresh
// until then.
func (g *gate) startRefresh(s *session, statement string) <-chan error {
	s.t.Helper()
	outcome := make(chan error, 1)
	go func() {
		_, err := s.run(statement)
		outcome <- err
	}()
	g.waiting(s.pid())
	return outcome
}

// waiting waits until a backend waits for an advisory lock.
func (g *gate) waiting(pid uint32) {
	g.holder.t.Helper()
	eventually(g.holder.t, "the refresh waits", func() bool {
		return g.holder.value(fmt.Sprintf(`select count(*) from pg_stat_activity where pid = %d and wait_event = 'advisory'`, pid)) == "1"
	})
}

// gone waits until a backend has ended.
func (g *gate) gone(pid uint32) {
	g.holder.t.Helper()
	eventually(g.holder.t, "the backend is gone", func() bool {
		return g.holder.value(fmt.Sprintf(`select count(*) from pg_stat_activity where pid = %d`, pid)) == "0"
	})
}

// done returns the outcome of a refresh.
func done(t testing.TB, outcome <-chan error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case err := <-outcome:
		return err
	case <-ctx.Done():
		t.Fatal("the refresh does not end")
		return nil
	}
}
