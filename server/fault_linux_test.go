package server_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sys/unix"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/server"
)

// stage is a session to which something is going to happen.
type stage struct {
	*wire
	direct *pgx.Conn // to the same database
}

// moments are what a session may be doing when something happens to it.
var moments = map[string]struct {
	send   []byte
	answer byte // the last message that comes before it happens, 0 for none
	runs   bool // a statement, until somebody ends it
}{
	"logged in":                 {},
	"at rest":                   {send: query("select 1"), answer: 'Z'},
	"in a block":                {send: query("begin; insert into log values ('mine')"), answer: 'Z'},
	"inside a message":          {send: query("select 1")[:7]},
	"in a pipeline":             {send: batch(append(run("insert into log values ('mine')"), &pgproto3.Flush{})...), answer: 'C'},
	"while COPY waits for data": {send: query("copy log from stdin; " + refreshGood), answer: 'G'},
	"while a statement runs":    {send: query("select pg_sleep(600)"), runs: true},
	"while ours runs":           {send: query("refresh streaming table slow"), runs: true},
	"while ours runs, extended": {send: withSync(run("refresh streaming table slow")...), runs: true},
	"while ours runs in a pipeline": {
		send:   withSync(concat(run("insert into log values ('mine')"), run("refresh streaming table slow"))...),
		answer: 'C', runs: true,
	},
	"while ours waits its turn": {send: join(query("select pg_sleep(600)"), query(refreshGood)), runs: true},
}

// faults are what may happen to a session. It has to end; the proxy goes on.
var faults = map[string]func(*testing.T, *stage){
	"the client closes its connection": func(t *testing.T, s *stage) { s.conn.Close() },
	"the client resets its connection": func(t *testing.T, s *stage) {
		if err := s.conn.(*net.TCPConn).SetLinger(0); err != nil {
			t.Error(err)
		}
		s.conn.Close()
	},
	"the client is cut off": func(t *testing.T, s *stage) { cutOff(t, s.conn) },
	"the backend is terminated": func(t *testing.T, s *stage) {
		exec(t, s.direct, fmt.Sprintf("select pg_terminate_backend(%d)", s.pid))
		frames := s.untilEnd()
		if len(frames) == 0 || frames[len(frames)-1].typ() != 'E' || diagnostic(frames[len(frames)-1]).Code != "57P01" {
			t.Errorf("the client got %s", shape(frames))
		}
	},
}

// TestAFaultLeavesNothingBehind counts what there is in the whole process, so
// it runs by itself.
func TestAFaultLeavesNothingBehind(t *testing.T) {
	probeEverySecond(t)
	url := pgtest.Database(t)
	postgres := pgtest.Server(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	p := startProxy(t, refreshing)
	before := takeCensus(t, postgres)
	for fault, happens := range faults {
		t.Run(fault, func(t *testing.T) {
			for moment, m := range moments {
				t.Run(moment, func(t *testing.T) {
					t.Parallel() // to each other
					s := &stage{wire: dialWire(t, p.url(t, url)), direct: connect(t, url)}
					s.send(m.send)
					if m.answer != 0 {
						s.until(m.answer)
					}
					if m.runs {
						eventually(t, "the statement runs", s.waits(s.direct))
					}
					happens(t, s)
					eventually(t, "the backend ends", s.backendIsGone(s.direct))
				})
			}
		})
		before.returns(t, postgres)
		wantLog(t, direct, "")
	}
}

// probeEverySecond has the proxies of a test that runs by itself look every
// second whether the other side of a connection is there.
func probeEverySecond(t *testing.T) {
	t.Helper()
	t.Cleanup(server.ProbeConnections(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 1}))
}

// cutOff makes a side of a TCP connection lose every packet that comes, as it
// does when its machine or its network is gone: nothing is acknowledged. The
// probes find that out, unless something is under way: then the system sends it
// again for as long as it is set to, as it does for Postgres. (A limit on that,
// TCP_USER_TIMEOUT, would end clients that are there but do not read, too.)
func cutOff(t *testing.T, conn net.Conn) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	dropAll := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &dropAll[0]})
	})
	if err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// link is a network between a proxy and Postgres that can be cut.
type link struct {
	net.Listener
	near chan net.Conn // the ends at the proxy, as they are accepted
}

func newLink(t *testing.T, far string) *link {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{listener, make(chan net.Conn, 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			l.near <- near
			carry(near, far)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
	})
	return l
}

// carry passes bytes on in both directions until both sides have closed.
func carry(near net.Conn, far string) {
	defer near.Close()
	conn, err := net.Dial("tcp", far)
	if err != nil {
		return
	}
	defer conn.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = near.(*net.TCPConn).ReadFrom(conn)
		near.Close()
	}()
	_, _ = conn.(*net.TCPConn).ReadFrom(near)
	conn.Close()
	<-back
}

// TestABackendThatIsCutOffEndsItsSession runs by itself, as the probes are those
// of all proxies.
func TestABackendThatIsCutOffEndsItsSession(t *testing.T) {
	probeEverySecond(t)
	url := pgtest.Database(t)
	exec(t, connect(t, url), "create table log (target text, joined bool)")
	for moment, test := range map[string]struct{ send, answer string }{
		"at rest":         {"select 1", ""},
		"in a block":      {"begin", ""},
		"while ours runs": {"refresh streaming table slow", "E(08006)"},
	} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel() // to each other
			direct := connect(t, url)
			network := newLink(t, fmt.Sprintf("127.0.0.1:%d", pgtest.Server(t).Port()))
			p := startProxy(t, refreshing, func(c *server.Config) { c.Upstream.Port = network.Addr().(*net.TCPAddr).Port })
			w := dialWire(t, p.url(t, url))
			near := <-network.near
			w.send(query(test.send))
			if test.answer == "" {
				w.until('Z')
			} else {
				eventually(t, "the statement runs", w.waits(direct))
			}
			cutOff(t, near)
			wantShape(t, w.untilEnd(), test.answer)
			near.Close()
			eventually(t, "the backend ends", w.backendIsGone(direct))
			stopInTime(t, p)
		})
	}
}

// TestAPostgresWhoseQueueIsFullIsGivenUp fills the queue of connections that a
// listener has not accepted: one more is not refused, but never made.
func TestAPostgresWhoseQueueIsFullIsGivenUp(t *testing.T) {
	t.Parallel()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	// A queue of none has room for one.
	if err := unix.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	address, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := address.(*unix.SockaddrInet4).Port
	dialRaw(t, fmt.Sprintf("127.0.0.1:%d", port))
	p := startProxy(t, refreshing, func(c *server.Config) {
		c.Upstream.Port = port
		c.ConnectTimeout = 100 * time.Millisecond
	})
	w := dialRaw(t, p.address)
	w.send(startupPacket("user", "postgres"))
	e := firstError(t, w.untilEnd())
	if e.Severity != "FATAL" || e.Code != "08006" || e.Detail != "timeout expired" {
		t.Errorf("got %+v", e)
	}
	stopInTime(t, p)
}

// vanishing is a connection whose client is gone after a number of writes, or
// half-way through the next one.
type vanishing struct {
	net.Conn
	writes int
	half   bool
}

func (v *vanishing) Write(b []byte) (int, error) {
	switch {
	case v.writes > 0:
		v.writes--
		return v.Conn.Write(b)
	case v.half:
		_, _ = v.Conn.Write(b[:len(b)/2])
	}
	v.Close()
	return 0, net.ErrClosed
}

// TestAClientThatVanishesInItsLoginLeavesNothingBehind goes away after each
// message of each kind of login, of the TLS handshake too, and in the middle of
// it. It counts what there is in the whole process, so it runs by itself.
func TestAClientThatVanishesInItsLoginLeavesNothingBehind(t *testing.T) {
	postgres := startSecure(t)
	for _, upstream := range []server.SSLMode{server.SSLDisable, server.SSLRequire} {
		p := postgres.front(t, upstream)
		for _, user := range []string{"trusted", "clear_user", "md5_user", "scram_user"} {
			for _, mode := range []string{"disable", "require"} {
				before := takeCensus(t, postgres.Postgres)
				for _, half := range []bool{false, true} {
					messages := 0
					for ; !logsIn(t, p, postgres, user, mode, messages, half); messages++ {
						before.returns(t, postgres.Postgres)
					}
					before.returns(t, postgres.Postgres)
					t.Logf("%s, upstream %s, client %s: %d messages", user, upstream, mode, messages)
				}
			}
		}
	}
}

// logsIn logs in as a client that vanishes after a number of writes, and reports
// that it has got so far that it is logged in.
func logsIn(t *testing.T, p *proxy, postgres *securePostgres, user, mode string, writes int, half bool) bool {
	t.Helper()
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:secret@%s/postgres?sslmode=%s", user, p.address, mode))
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		return &vanishing{conn, writes, half}, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return false
	}
	conn.Close(ctx)
	return true
}
