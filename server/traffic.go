package server

import "sync/atomic"

// traffic counts the bytes that some sessions have read. Whoever reads often
// has one of its own, on a cache line of its own, so that counting does not
// make processors wait for each other.
type traffic struct {
	clients  atomic.Int64
	backends atomic.Int64
	_        [112]byte
}

// trafficShards is among how many counters the sessions outside of loops are
// spread.
const trafficShards = 16

// shards are the counters of the sessions outside of loops.
type shards struct {
	all  [trafficShards]traffic
	next atomic.Uint32
}

// pick returns one of the counters.
func (s *shards) pick() *traffic { return &s.all[s.next.Add(1)%trafficShards] }

// add adds what has been counted so far.
func (t *traffic) add(clients, backends *int64) {
	*clients += t.clients.Load()
	*backends += t.backends.Load()
}

// Traffic returns how many bytes sessions have read since New: from clients and
// from Postgres, of messages without their encryption. The message that opens a
// session and what is said until Postgres has let the client in count only
// where they are relayed. It may be called at any time.
func (s *Server) Traffic() (clients, backends int64) {
	for i := range s.shards.all {
		s.shards.all[i].add(&clients, &backends)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.loops.traffic() {
		t.add(&clients, &backends)
	}
	return clients, backends
}
