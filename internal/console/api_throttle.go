package console

import (
	"net/netip"
	"sync"
	"time"
)

// Failed logins: so many at once, then one in each interval.
const (
	failureBurst    = 20
	failureInterval = 3 * time.Second
	// knownFor is how long an address from which a role has logged in counts as
	// its own.
	knownFor = 24 * time.Hour
	// maxTracked bounds each table of a throttle.
	maxTracked = 4096
)

// throttle slows down who tries passwords.
//
// A login takes a token from the bucket of its address and from that of its
// role, and gets them back unless it fails. Once a role has logged in from an
// address, the pair has a bucket of its own and needs neither: whoever tries
// that role's passwords elsewhere, or other roles' at that address, cannot keep
// it out.
type throttle struct {
	now func() time.Time

	mu        sync.Mutex
	addresses buckets
	roles     buckets
	pairs     buckets
	known     map[pair]time.Time // of the last success
	swept     time.Time          // when known was last rid of old entries
}

// pair is where a login comes from and for whom.
type pair struct {
	address netip.Prefix
	role    string
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, addresses: newBuckets(), roles: newBuckets(), pairs: newBuckets(), known: map[pair]time.Time{}}
}

// source returns what of a client's address counts: who has an IPv6 address has
// the 2^64 around it too.
func source(remote string) netip.Prefix {
	address, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := address.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits) // no address is shorter
	return prefix
}

// attempt is a login that is being tried.
type attempt struct {
	throttle *throttle
	pair     pair
	taken    []*bucket
}

// begin lets a login be tried, or says how long to wait.
func (t *throttle) begin(p pair) (*attempt, time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	var wanted []*bucket
	if last, known := t.known[p]; known && now.Sub(last) < knownFor {
		wanted = []*bucket{t.pairs.of(p, now)}
	} else {
		wanted = []*bucket{t.addresses.of(pair{address: p.address}, now), t.roles.of(pair{role: p.role}, now)}
	}
	for _, b := range wanted {
		if wait := b.wait(now); wait > 0 {
			return nil, wait
		}
	}
	for _, b := range wanted {
		b.tokens--
	}
	return &attempt{throttle: t, pair: p, taken: wanted}, 0
}

// rejected counts a bearer token that is none. It says how long to wait when
// there were too many from the address.
func (t *throttle) rejected(address netip.Prefix) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	b := t.addresses.of(pair{address: address}, now)
	if wait := b.wait(now); wait > 0 {
		return wait
	}
	b.tokens--
	return 0
}

// succeeded makes the address the role's own.
func (a *attempt) succeeded() {
	t := a.throttle
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if len(t.known) >= maxTracked && now.Sub(t.swept) >= failureInterval {
		t.swept = now
		for p, last := range t.known {
			if now.Sub(last) >= knownFor {
				delete(t.known, p)
			}
		}
	}
	if _, known := t.known[a.pair]; known || len(t.known) < maxTracked {
		t.known[a.pair] = now
	}
	a.giveBack()
}

// untried is for a login of which Postgres has not said whether it is one.
func (a *attempt) untried() {
	a.throttle.mu.Lock()
	defer a.throttle.mu.Unlock()
	a.giveBack()
}

func (a *attempt) giveBack() {
	for _, b := range a.taken {
		b.tokens = min(b.tokens+1, failureBurst)
	}
	a.taken = nil
}

// bucket holds up to failureBurst tokens and gets one each interval.
type bucket struct {
	tokens float64
	at     time.Time // when tokens was true
}

// wait returns how long it takes until there is a token, 0 if there is one.
func (b *bucket) wait(now time.Time) time.Duration {
	if passed := now.Sub(b.at); passed > 0 {
		b.tokens = min(b.tokens+float64(passed)/float64(failureInterval), failureBurst)
	}
	b.at = now
	if b.tokens >= 1 {
		return 0
	}
	return time.Duration((1 - b.tokens) * float64(failureInterval))
}

// buckets are the buckets that may not be full.
type buckets struct {
	byKey map[pair]*bucket
	swept time.Time // when full ones were last dropped
}

func newBuckets() buckets { return buckets{byKey: map[pair]*bucket{}} }

// of returns the bucket of a key. When there are too many, all new ones share
// the bucket of no key.
func (m *buckets) of(key pair, now time.Time) *bucket {
	if b, found := m.byKey[key]; found {
		return b
	}
	if len(m.byKey) >= maxTracked && now.Sub(m.swept) >= failureInterval {
		m.swept = now
		for k, b := range m.byKey {
			if b.wait(now); b.tokens >= failureBurst {
				delete(m.byKey, k)
			}
		}
	}
	if len(m.byKey) >= maxTracked {
		key = pair{}
		if b, found := m.byKey[key]; found {
			return b
		}
	}
	b := &bucket{tokens: failureBurst, at: now}
	m.byKey[key] = b
	return b
}
