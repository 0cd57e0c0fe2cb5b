package server_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/server"
)

// limit bounds every wait of a test: it is reached only when something hangs.
const limit = 30 * time.Second

// relayVariable is "goroutines" to test what other systems than Linux have.
const relayVariable = "RWPROXY_TEST_RELAY"

func TestMain(m *testing.M) {
	// Postgres decides when it looks whether a connection still exists while a
	// statement runs; by default it does not.
	os.Exit(pgtest.Run(m, "client_connection_check_interval=50ms"))
}

// proxy is a server in front of a Postgres, for one test.
type proxy struct {
	*server.Server
	address string
	logs    *observer.ObservedLogs
}

// startProxy starts a server in front of the package's Postgres; change may
// alter its settings.
func startProxy(t testing.TB, handler server.Handler, change ...func(*server.Config)) *proxy {
	t.Helper()
	core, logs := observer.New(zap.WarnLevel)
	config := server.Config{
		Listen: "127.0.0.1:0",
		Upstream: server.Upstream{
			Host:    "127.0.0.1",
			Port:    pgtest.Server(t).Port(),
			SSLMode: server.SSLDisable,
		},
		Handler: handler,
		Logger:  zap.New(core),
	}
	if os.Getenv(relayVariable) == "goroutines" {
		server.RelayInGoroutines(&config)
	}
	for _, c := range change {
		c(&config)
	}
	s, err := server.New(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Sessions that a test leaves open are cut.
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = s.Stop(ctx)
		for _, entry := range logs.FilterMessage("session ended by a panic").All() {
			t.Errorf("a session panicked: %v", entry.ContextMap())
		}
	})
	return &proxy{Server: s, address: s.Addr().String(), logs: logs}
}

// url returns direct, the URL of a database, as reached through the proxy.
func (p *proxy) url(t testing.TB, direct string) string {
	t.Helper()
	config, err := pgx.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", config.User, p.address, config.Database)
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		conn.Close(ctx)
	})
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func value(t testing.TB, conn *pgx.Conn, sql string) string {
	t.Helper()
	results, err := conn.PgConn().Exec(t.Context(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return string(results[0].Rows[0][0])
}

// eventually waits for a condition that another process brings about.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

// frame is one message of the backend, header included.
type frame []byte

func (f frame) typ() byte       { return f[0] }
func (f frame) content() []byte { return f[5:] }

// wire is a client that speaks in bytes.
type wire struct {
	t    testing.TB
	conn net.Conn
	pid  uint32
	key  []byte
	// hideSettings leaves ParameterStatus messages out.
	hideSettings bool
}

// dialWire connects and logs in as user to the database of url.
func dialWire(t testing.TB, url string, options ...string) *wire {
	t.Helper()
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	w := dialRaw(t, net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port))))
	w.send(startupPacket(append([]string{"user", config.User, "database", config.Database}, options...)...))
	for _, f := range w.until('Z') {
		if f.typ() == 'K' {
			w.pid = binary.BigEndian.Uint32(f.content())
			w.key = f.content()[4:]
		}
	}
	return w
}

func dialRaw(t testing.TB, address string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	w := &wire{t: t, conn: conn}
	w.startWait()
	return w
}

func startupPacket(parameters ...string) []byte {
	packet := binary.BigEndian.AppendUint32(make([]byte, 4), 3<<16)
	for _, p := range parameters {
		packet = append(append(packet, p...), 0)
	}
	packet = append(packet, 0)
	binary.BigEndian.PutUint32(packet, uint32(len(packet)))
	return packet
}

// startWait begins what limit bounds: a single message, not how many a test has.
func (w *wire) startWait() {
	// A connection that is closed fails next anyway.
	_ = w.conn.SetDeadline(time.Now().Add(limit))
}

// send writes messages. A session that has ended meanwhile is found so by who
// reads.
func (w *wire) send(b []byte) {
	w.t.Helper()
	w.startWait()
	if _, err := w.conn.Write(b); errors.Is(err, os.ErrDeadlineExceeded) {
		w.t.Fatal("nobody reads")
	}
}

// read returns the next message, nil at the end of the connection.
func (w *wire) read() frame {
	w.t.Helper()
	w.startWait()
	head := make([]byte, 5)
	if _, err := io.ReadFull(w.conn, head); err != nil {
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			w.t.Fatal("no answer")
		}
		return nil
	}
	f := make(frame, 1+binary.BigEndian.Uint32(head[1:]))
	copy(f, head)
	if _, err := io.ReadFull(w.conn, f[5:]); err != nil {
		w.t.Fatalf("connection ended inside a message: %v", err)
	}
	return f
}

// until reads to a message of the given type, which is the last one returned.
func (w *wire) until(typ byte) []frame {
	w.t.Helper()
	var frames []frame
	for {
		f := w.read()
		if f == nil {
			w.t.Fatalf("connection ended before %q; got %s", typ, shape(frames))
		}
		if w.hideSettings && f.typ() == 'S' {
			continue
		}
		frames = append(frames, f)
		if f.typ() == typ {
			return frames
		}
	}
}

// untilEnd reads to the end of the connection.
func (w *wire) untilEnd() []frame {
	w.t.Helper()
	var frames []frame
	for f := w.read(); f != nil; f = w.read() {
		frames = append(frames, f)
	}
	return frames
}

// drain reads to ReadyForQuery and keeps nothing.
func (w *wire) drain() {
	w.t.Helper()
	w.startWait()
	r := bufio.NewReaderSize(w.conn, 64<<10)
	for {
		head, err := r.Peek(5)
		if err != nil {
			w.t.Fatal(err)
		}
		typ := head[0]
		if _, err := r.Discard(1 + int(binary.BigEndian.Uint32(head[1:]))); err != nil {
			w.t.Fatal(err)
		}
		if typ == 'Z' {
			return
		}
	}
}

// shape is the types of frames, with the tag, status or code of those that
// have one.
func shape(frames []frame) string {
	s := ""
	for _, f := range frames {
		if s != "" {
			s += " "
		}
		s += string(f.typ())
		switch f.typ() {
		case 'Z':
			s += string(f.content())
		case 'C':
			s += "(" + string(f.content()[:len(f.content())-1]) + ")"
		case 'E', 'N':
			s += "(" + diagnostic(f).Code + ")"
		}
	}
	return s
}

func diagnostic(f frame) *pgproto3.ErrorResponse {
	var e pgproto3.ErrorResponse
	if err := e.Decode(f.content()); err != nil {
		panic(err)
	}
	return &e
}

// firstError returns the only ErrorResponse of frames.
func firstError(t testing.TB, frames []frame) *pgproto3.ErrorResponse {
	t.Helper()
	var found *pgproto3.ErrorResponse
	for _, f := range frames {
		if f.typ() == 'E' {
			if found != nil {
				t.Fatalf("two errors in %s", shape(frames))
			}
			found = diagnostic(f)
		}
	}
	if found == nil {
		t.Fatalf("no error in %s", shape(frames))
	}
	return found
}

// batch encodes messages of a client.
func batch(messages ...pgproto3.FrontendMessage) []byte {
	var b []byte
	for _, m := range messages {
		var err error
		if b, err = m.Encode(b); err != nil {
			panic(err)
		}
	}
	return b
}

func query(sql string) []byte { return batch(&pgproto3.Query{String: sql}) }

// run is the messages of one statement in the extended protocol, without its
// Sync, on the unnamed statement and portal.
func run(sql string, parameters ...string) []pgproto3.FrontendMessage {
	b := &pgproto3.Bind{}
	for _, p := range parameters {
		b.Parameters = append(b.Parameters, []byte(p))
	}
	return []pgproto3.FrontendMessage{
		&pgproto3.Parse{Query: sql}, b, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{},
	}
}

func wantShape(t testing.TB, frames []frame, want string) {
	t.Helper()
	if got := shape(frames); got != want {
		for _, f := range frames {
			if f.typ() == 'E' {
				t.Logf("error: %+v", diagnostic(f))
			}
		}
		t.Errorf("answers:\n got  %s\n want %s", got, want)
	}
}
