package console

import (
	"fmt"
	"testing"
	"time"
)

// clock is a time that a test moves.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func newTestThrottle() (*throttle, *clock) {
	c := &clock{time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)}
	return newThrottle(c.now), c
}

// fails tries wrong passwords until one is refused, and returns how many were
// tried.
func fails(t *testing.T, throttle *throttle, p pair) int {
	t.Helper()
	for n := range 10 * failureBurst {
		if a, wait := throttle.begin(p); a == nil {
			if wait <= 0 || wait > failureInterval {
				t.Errorf("wait %s", wait)
			}
			return n
		}
	}
	t.Fatal("no end of tries")
	return 0
}

func from(address, role string) pair { return pair{source(address), role} }

func TestTriesAreLimitedForEachAddress(t *testing.T) {
	t.Parallel()
	throttle, clock := newTestThrottle()
	if n := fails(t, throttle, from("192.0.2.1:1000", "alice")); n != failureBurst {
		t.Errorf("%d tries", n)
	}
	if n := fails(t, throttle, from("192.0.2.1:2000", "bob")); n != 0 {
		t.Errorf("%d tries for another role from the same address", n)
	}
	if n := fails(t, throttle, from("192.0.2.2:1000", "bob")); n != failureBurst {
		t.Errorf("%d tries from another address", n)
	}
	clock.at = clock.at.Add(2 * failureInterval)
	if n := fails(t, throttle, from("192.0.2.1:1000", "carol")); n != 2 {
		t.Errorf("%d tries after two intervals", n)
	}
}

func TestTriesAreLimitedForEachRoleWhereverTheyComeFrom(t *testing.T) {
	t.Parallel()
	throttle, _ := newTestThrottle()
	tries := 0
	for n := range 3 * failureBurst {
		if a, _ := throttle.begin(from(fmt.Sprintf("192.0.2.%d:1", n), "alice")); a != nil {
			tries++
		}
	}
	if tries != failureBurst {
		t.Errorf("%d tries", tries)
	}
}

func TestARoleThatHasLoggedInIsNotLockedOut(t *testing.T) {
	t.Parallel()
	throttle, _ := newTestThrottle()
	home := from("192.0.2.1:1", "alice")
	a, _ := throttle.begin(home)
	a.succeeded()
	fails(t, throttle, from("192.0.2.2:1", "alice"))   // somebody else tries her passwords
	fails(t, throttle, from("192.0.2.1:1", "mallory")) // and others' at her address
	for range 3 * failureBurst {
		a, wait := throttle.begin(home)
		if a == nil {
			t.Fatalf("locked out for %s", wait)
		}
		a.succeeded()
	}
	if n := fails(t, throttle, home); n != failureBurst {
		t.Errorf("%d tries from her own address", n)
	}
}

func TestOnlyFailuresCount(t *testing.T) {
	t.Parallel()
	throttle, clock := newTestThrottle()
	p := from("192.0.2.1:1", "alice")
	for range 3 * failureBurst {
		a, _ := throttle.begin(p)
		if a == nil {
			t.Fatal("refused")
		}
		a.untried()
	}
	// A role that has not been here for long is a stranger again.
	a, _ := throttle.begin(p)
	a.succeeded()
	clock.at = clock.at.Add(knownFor)
	fails(t, throttle, from("192.0.2.1:1", "bob"))
	if n := fails(t, throttle, p); n != 0 {
		t.Errorf("%d tries", n)
	}
}

func TestAnIPv6NetworkIsOneAddress(t *testing.T) {
	t.Parallel()
	throttle, _ := newTestThrottle()
	fails(t, throttle, from("[2001:db8::1]:1", "alice"))
	if n := fails(t, throttle, from("[2001:db8::ffff:1]:1", "bob")); n != 0 {
		t.Errorf("%d tries from the same network", n)
	}
	if n := fails(t, throttle, from("[2001:db8:0:1::1]:1", "bob")); n == 0 {
		t.Error("another network is refused")
	}
	if source("[::ffff:192.0.2.1]:1") != source("192.0.2.1:2") {
		t.Error("an IPv4 address is two")
	}
}

func TestATableOfFailuresDoesNotGrowForEver(t *testing.T) {
	t.Parallel()
	throttle, clock := newTestThrottle()
	for n := range 3 * maxTracked {
		a, _ := throttle.begin(from(fmt.Sprintf("10.%d.%d.1:1", n>>8, n&255), fmt.Sprint(n)))
		if a != nil && n%2 == 0 {
			a.succeeded()
		}
	}
	for _, size := range []int{len(throttle.addresses.byKey), len(throttle.roles.byKey), len(throttle.pairs.byKey), len(throttle.known)} {
		if size > maxTracked+1 {
			t.Errorf("%d entries", size)
		}
	}
	clock.at = clock.at.Add(failureBurst * failureInterval)
	if n := fails(t, throttle, from("192.0.2.1:1", "alice")); n != failureBurst {
		t.Errorf("%d tries after the flood", n)
	}
}

func TestTokensThatAreNoneAreCounted(t *testing.T) {
	t.Parallel()
	throttle, _ := newTestThrottle()
	address := source("192.0.2.1:1")
	for n := range failureBurst {
		if wait := throttle.rejected(address); wait != 0 {
			t.Fatalf("number %d waits %s", n, wait)
		}
	}
	if wait := throttle.rejected(address); wait <= 0 {
		t.Error("no end")
	}
}
