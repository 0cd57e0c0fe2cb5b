package server_test

import (
	"context"
	"encoding/binary"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
	"github.com/rwproxy/rwproxy/server"
)

// backendIsGone reports that Postgres has ended a wire's session.
func (w *wire) backendIsGone(direct *pgx.Conn) func() bool {
	return func() bool {
		var n int
		err := direct.QueryRow(context.Background(), "select count(*) from pg_stat_activity where pid = $1", w.pid).Scan(&n)
		return err == nil && n == 0
	}
}

// waits reports that a wire's backend runs the statement that "slow" injects.
func (w *wire) waits(direct *pgx.Conn) func() bool {
	return func() bool {
		var n int
		err := direct.QueryRow(context.Background(), "select count(*) from pg_stat_activity where pid = $1 and wait_event = 'PgSleep'", w.pid).Scan(&n)
		return err == nil && n == 1
	}
}

func (w *wire) cancelRequest() []byte {
	packet := binary.BigEndian.AppendUint32(nil, uint32(12+len(w.key)))
	packet = binary.BigEndian.AppendUint32(packet, 80877102)
	packet = binary.BigEndian.AppendUint32(packet, w.pid)
	return append(packet, w.key...)
}

func TestACancelRequestReachesTheStatementThatRuns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ sql, answer string }{
		"a native one":       {"select pg_sleep(600)", "T E(57014) ZI"},
		"one of ours":        {"refresh streaming table slow", "E(57014) ZI"},
		"one of ours, later": {"select 1; refresh streaming table slow; select 2", "T D C(SELECT 1) E(57014) ZI"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			direct := connect(t, url)
			exec(t, direct, "create table log (target text, joined bool)")
			p := startProxy(t, refreshing)
			w := dialWire(t, p.url(t, url))
			w.send(query(test.sql))
			eventually(t, "the statement runs", w.waits(direct))
			canceller := dialRaw(t, p.address)
			canceller.send(w.cancelRequest())
			if left := canceller.untilEnd(); len(left) > 0 {
				t.Errorf("a cancel request was answered: %s", shape(left))
			}
			wantShape(t, w.until('Z'), test.answer)
			wantLog(t, direct, "")
		})
	}
}

func TestAVanishedClientTakesItsBackendWithIt(t *testing.T) {
	t.Parallel()
	for name, send := range map[string][]byte{
		"idle":                       nil,
		"in a block":                 query("begin; insert into log values ('mine')"),
		"inside a message":           query("select 1")[:7],
		"while ours runs":            query("refresh streaming table slow"),
		"while ours runs, extended":  withSync(run("refresh streaming table slow")...),
		"while ours runs, pipelined": join(query("refresh streaming table slow"), query("select 1"), query("select 2")),
		"while ours waits its turn":  join(query("select pg_sleep(600)"), query(refreshGood)),
		"while ours reads COPY data": query("copy log from stdin; " + refreshGood),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			direct := connect(t, url)
			exec(t, direct, "create table log (target text, joined bool)")
			p := startProxy(t, refreshing)
			w := dialWire(t, p.url(t, url))
			w.send(send)
			if strings.Contains(name, "while ours") && !strings.Contains(name, "COPY") {
				eventually(t, "the statement runs", w.waits(direct))
			}
			w.conn.Close()
			eventually(t, "the backend ends", w.backendIsGone(direct))
			wantLog(t, direct, "")
			stopInTime(t, p)
		})
	}
}

func stopInTime(t *testing.T, p *proxy) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestABackendThatIsTerminatedSaysSoItself(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]string{
		"idle":                     "select 1",
		"while ours runs":          "refresh streaming table slow",
		"while ours runs, later":   "select 1; refresh streaming table slow",
		"while a native one waits": "select pg_sleep(600)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			direct := connect(t, url)
			exec(t, direct, "create table log (target text, joined bool)")
			p := startProxy(t, refreshing)
			w := dialWire(t, p.url(t, url))
			w.send(query(sql))
			if name == "idle" {
				w.until('Z')
			} else {
				eventually(t, "the statement runs", w.waits(direct))
			}
			exec(t, direct, "select pg_terminate_backend("+value(t, direct, "select "+itoa(w.pid))+")")
			e := firstError(t, w.untilEnd())
			if e.Code != "57P01" || e.Severity != "FATAL" {
				t.Errorf("got %+v", e)
			}
			wantLog(t, direct, "")
			stopInTime(t, p)
		})
	}
}

func itoa(n uint32) string {
	return strings.TrimSpace(string(appendUint(nil, n)))
}

func appendUint(b []byte, n uint32) []byte {
	if n >= 10 {
		b = appendUint(b, n/10)
	}
	return append(b, '0'+byte(n%10))
}

func TestStopEndsIdleSessionsAndLetsTheOthersFinish(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool); select pg_advisory_lock(1)")
	p := startProxy(t, refreshing)
	idle := dialWire(t, p.url(t, url))
	busy := dialWire(t, p.url(t, url))
	inBlock := dialWire(t, p.url(t, url))
	busy.send(query("select pg_advisory_lock(1)"))
	inBlock.send(query("begin"))
	inBlock.until('Z')
	eventually(t, "the statement waits", func() bool {
		return value(t, direct, "select count(*) from pg_locks where not granted and pid = "+itoa(busy.pid)) == "1"
	})

	stopped := make(chan error, 1)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	go func() { stopped <- p.Stop(ctx) }()
	if e := firstError(t, idle.untilEnd()); e.Code != "57P01" || e.Severity != "FATAL" {
		t.Errorf("idle session: %+v", e)
	}
	inBlock.send(query("insert into log values ('mine', false); commit"))
	frames := inBlock.untilEnd()
	wantShape(t, frames, "C(INSERT 0 1) C(COMMIT) ZI E(57P01)")
	exec(t, direct, "select pg_advisory_unlock(1)")
	wantShape(t, busy.untilEnd(), "T D C(SELECT 1) ZI E(57P01)")
	if err := <-stopped; err != nil {
		t.Errorf("stop: %v", err)
	}
	wantLog(t, direct, "mine")
	if _, err := net.Dial("tcp", p.address); err == nil {
		t.Error("a stopped server accepts connections")
	}
	stopInTime(t, p)
}

func TestStopCutsWhatIsLeftAtItsDeadline(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	p := startProxy(t, refreshing)
	ours := dialWire(t, p.url(t, url))
	inBlock := dialWire(t, p.url(t, url))
	login := dialRaw(t, p.address)
	login.send([]byte{0, 0})
	ours.send(query("refresh streaming table slow"))
	inBlock.send(query("begin"))
	inBlock.until('Z')
	eventually(t, "the statement runs", ours.waits(direct))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx); err != context.DeadlineExceeded {
		t.Errorf("stop: %v", err)
	}
	for name, w := range map[string]*wire{"ours": ours, "in a block": inBlock} {
		if e := firstError(t, w.untilEnd()); e.Code != "57P01" {
			t.Errorf("%s: %+v", name, e)
		}
		eventually(t, "the backend ends", w.backendIsGone(direct))
	}
	if left := login.untilEnd(); len(left) > 0 {
		t.Errorf("a client that had not logged in got %s", shape(left))
	}
}

func TestAHandlerIsToldThatItsSessionIsCut(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	told := make(chan []string, 1)
	p := startProxy(t, handlerFunc(func(ctx context.Context, c server.Client, s rewrite.Statement) (server.Outcome, error) {
		outcome, err := refreshing(ctx, c, s)
		_, after := c.Exec(ctx, "select 1")
		told <- []string{pgdiag.Code(err), pgdiag.Code(after)}
		return outcome, err
	}))
	w := dialWire(t, p.url(t, url))
	w.send(query("refresh streaming table slow"))
	eventually(t, "the statement runs", w.waits(direct))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Stop(ctx); err != context.Canceled {
		t.Errorf("stop: %v", err)
	}
	if codes := <-told; codes[0] != "57P01" || codes[1] != "57P01" {
		t.Errorf("the handler got %q", codes)
	}
}

func TestAHandlerThatPanicsEndsItsOwnSessionOnly(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	p := startProxy(t, refreshing)
	other := dialWire(t, p.url(t, url))
	w := dialWire(t, p.url(t, url))
	w.send(query("refresh streaming table panicking"))
	if left := w.untilEnd(); len(left) > 0 {
		t.Logf("answers: %s", shape(left))
	}
	eventually(t, "the backend ends", w.backendIsGone(direct))
	other.send(query(refreshGood))
	wantShape(t, other.until('Z'), "C(REFRESH STREAMING TABLE) ZI")
	if p.logs.FilterMessage("session ended by a panic").Len() != 1 {
		t.Error("the panic was not logged")
	}
	p.logs.TakeAll()
	stopInTime(t, p)
}

func TestAHandlerThatAsksForCopyDataEndsItsSession(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	w.send(query("refresh streaming table copying"))
	if e := firstError(t, w.untilEnd()); e.Severity != "FATAL" {
		t.Errorf("got %+v", e)
	}
	eventually(t, "the backend ends", w.backendIsGone(direct))
}

func TestAnUnreachablePostgresIsNamed(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	p := startProxy(t, refreshing, func(c *server.Config) { c.Upstream.Port = port })
	w := dialRaw(t, p.address)
	w.send(startupPacket("user", "postgres"))
	e := firstError(t, w.untilEnd())
	if e.Severity != "FATAL" || e.Code != "08006" || !strings.Contains(e.Message, `host "127.0.0.1", port `+itoa(uint32(port))) || !strings.Contains(e.Detail, "refused") {
		t.Errorf("got %+v", e)
	}
}

func TestAPostgresThatDoesNotAnswerIsGivenUp(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	p := startProxy(t, refreshing, func(c *server.Config) {
		c.Upstream.Port = silent.Addr().(*net.TCPAddr).Port
		c.Upstream.SSLMode = server.SSLRequire
		c.ConnectTimeout = 50 * time.Millisecond
	})
	w := dialRaw(t, p.address)
	w.send(startupPacket("user", "postgres"))
	if e := firstError(t, w.untilEnd()); e.Code != "08006" || e.Detail != "timeout expired" {
		t.Errorf("got %+v", e)
	}
}

func TestManyMessagesBeforeTheFirstAnswerIsRead(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	const n = 40000
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		one := batch(&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{})
		all := batch(&pgproto3.Parse{Name: "s", Query: "select 1"})
		for range n {
			all = append(all, one...)
		}
		w.send(append(all, withSync(run(refreshGood)...)...))
	}()
	frames := w.until('Z')
	<-sent
	if len(frames) != 1+3*n+4+1 {
		t.Errorf("%d answers", len(frames))
	}
	wantShape(t, frames[len(frames)-5:], "1 2 n C(REFRESH STREAMING TABLE) ZI")
	wantLog(t, direct, "good joined")
}

func TestALongPipelineBehindAStatementOfOursIsKept(t *testing.T) {
	t.Parallel()
	w, _ := intercepting(t)
	text := "select length('" + strings.Repeat("x", 1<<20) + "')"
	w.send(join(query(refreshGood), query(text), query(refreshGood), query(text)))
	for _, want := range []string{"C(REFRESH STREAMING TABLE) ZI", "T D C(SELECT 1) ZI", "C(REFRESH STREAMING TABLE) ZI", "T D C(SELECT 1) ZI"} {
		wantShape(t, w.until('Z'), want)
	}
}
