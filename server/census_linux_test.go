package server_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// census counts what a session may leave behind: goroutines and sockets of this
// process, which the client is in too, and processes of Postgres, those that are
// still logging in included. A test that compares two has to run by itself.
type census struct{ goroutines, sockets, backends int }

func takeCensus(t *testing.T, postgres *embedded.Postgres) census {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	c := census{goroutines: runtime.NumGoroutine()}
	for _, d := range descriptors {
		// The one of the folder itself is closed by now.
		if target, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && strings.HasPrefix(target, "socket:") {
			c.sockets++
		}
	}
	pid := postgres.Pid()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	c.backends = len(bytes.Fields(children))
	return c
}

// returns waits until there is no more of anything than c counted.
func (c census) returns(t *testing.T, postgres *embedded.Postgres) {
	t.Helper()
	var now census
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		now = takeCensus(t, postgres)
		if now.goroutines <= c.goroutines && now.sockets <= c.sockets && now.backends <= c.backends {
			return
		}
	}
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		t.Error(err)
	}
	t.Fatalf("before %+v, now %+v\n%s", c, now, stacks.String())
}
