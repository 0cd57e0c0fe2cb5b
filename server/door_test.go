package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/server"
)

func withTLS(c certificate) func(*server.Config) {
	return func(config *server.Config) { config.TLS = &tls.Config{Certificates: []tls.Certificate{c.pair}} }
}

func TestTLSMayBeginAtOnce(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	p := startProxy(t, nil, withTLS(c))
	config := &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1", NextProtos: []string{"postgresql"}}
	w := dialRaw(t, p.address)
	w.conn = tls.Client(w.conn, config)
	w.send(startupPacket("user", "postgres"))
	w.until('Z')
	w.send(query("select 1"))
	wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")

	for name, protocols := range map[string][]string{"no protocol": nil, "another protocol": {"h2"}} {
		config := config.Clone()
		config.NextProtos = protocols
		w := dialRaw(t, p.address)
		secured := tls.Client(w.conn, config)
		// The handshake may well succeed.
		_, _ = secured.Write(startupPacket("user", "postgres"))
		if rest, _ := io.ReadAll(secured); len(rest) > 0 {
			t.Errorf("%s: %q", name, rest)
		}
	}

	// An encrypted connection is not encrypted again.
	for _, code := range []uint32{sslRequest, gssRequest} {
		w := dialRaw(t, p.address)
		w.conn = tls.Client(w.conn, config)
		w.send(requestPacket(code))
		if left := w.untilEnd(); len(left) > 0 {
			t.Errorf("request %d in TLS: %s", code, shape(left))
		}
	}
	// TLS may not begin at once after another request.
	w = dialRaw(t, p.address)
	w.send(requestPacket(gssRequest))
	readByte(t, w.conn)
	if err := tls.Client(w.conn, config).Handshake(); err == nil {
		t.Error("TLS began after a GSSAPI request")
	}
	// Nor where it is not offered.
	without := startProxy(t, nil)
	if err := tls.Client(dialRaw(t, without.address).conn, config).Handshake(); err == nil {
		t.Error("TLS began where it is not offered")
	}
}

func TestProtocolOfTLSIsCheckedWhenItIsNamed(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	p := startProxy(t, nil, withTLS(c))
	for protocol, accepted := range map[string]bool{"": true, "postgresql": true, "h2": false} {
		w := dialRaw(t, p.address)
		w.send(requestPacket(sslRequest))
		readByte(t, w.conn)
		config := &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1"}
		if protocol != "" {
			config.NextProtos = []string{protocol}
		}
		if err := tls.Client(w.conn, config).Handshake(); (err == nil) != accepted {
			t.Errorf("protocol %q: %v", protocol, err)
		}
	}
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	p := startProxy(t, nil, func(config *server.Config) {
		config.TLS = &tls.Config{Certificates: []tls.Certificate{c.pair}, MinVersion: tls.VersionTLS10}
	})
	for version, accepted := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		w := dialRaw(t, p.address)
		w.send(requestPacket(sslRequest))
		readByte(t, w.conn)
		err := tls.Client(w.conn, &tls.Config{
			RootCAs: c.pool, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS10, MaxVersion: version,
		}).Handshake()
		if (err == nil) != accepted {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

// recorder keeps what is read from a connection.
type recorder struct {
	net.Conn
	read bytes.Buffer
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.read.Write(b[:n])
	return n, err
}

func TestTLSRecordsToAClientHoldAtMostEightKibibytes(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	p := startProxy(t, nil, withTLS(c))
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		w := dialRaw(t, p.address)
		w.send(requestPacket(sslRequest))
		readByte(t, w.conn)
		r := &recorder{Conn: w.conn}
		w.conn = tls.Client(r, &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1", MinVersion: version, MaxVersion: version})
		w.send(startupPacket("user", "postgres"))
		w.until('Z')
		w.send(query("select repeat('x', 1000000)"))
		w.until('Z')
		longest := 0
		for all := r.read.Bytes(); len(all) >= 5; {
			n := int(binary.BigEndian.Uint16(all[3:]))
			longest = max(longest, n)
			all = all[min(len(all), 5+n):]
		}
		// A record has its own type, nonce and tag besides.
		if longest > 8192+64 || longest < 8192 {
			t.Errorf("%s: the longest record has %d bytes", tls.VersionName(version), longest)
		}
	}
}

func TestACancelRequestGoesThroughAnyProxyAndEveryTransport(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	c := newCertificate(t)
	folder := t.TempDir()
	session := startProxy(t, nil)
	secured := startProxy(t, nil, withTLS(c))
	startProxy(t, nil, func(config *server.Config) {
		config.Listen = folder
		config.Upstream.Host = pgtest.Server(t).SocketDir()
	})
	w := dialWire(t, session.url(t, url))
	config := &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1", NextProtos: []string{"postgresql"}}
	for name, dial := range map[string]func() net.Conn{
		"another proxy": func() net.Conn { return dialRaw(t, secured.address).conn },
		"TLS": func() net.Conn {
			c := dialRaw(t, secured.address)
			c.send(requestPacket(sslRequest))
			readByte(t, c.conn)
			return tls.Client(c.conn, config)
		},
		"direct TLS": func() net.Conn { return tls.Client(dialRaw(t, secured.address).conn, config) },
		"a Unix socket on both sides": func() net.Conn {
			conn, err := net.Dial("unix", filepath.Join(folder, ".s.PGSQL.6432"))
			if err != nil {
				t.Fatal(err)
			}
			return conn
		},
	} {
		w.send(query("select pg_sleep(600)"))
		eventually(t, "the statement runs", w.waits(direct))
		conn := dial()
		if _, err := conn.Write(w.cancelRequest()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		// pgjdbc waits for the end of the connection.
		if rest, err := io.ReadAll(conn); len(rest) > 0 || err != nil {
			t.Errorf("%s: the answer is %q, %v", name, rest, err)
		}
		conn.Close()
		wantShape(t, w.until('Z'), "T E(57014) ZI")
	}
}

// listenAs starts something that takes the place of Postgres and keeps the
// first n bytes of each connection.
func listenAs(t *testing.T, n int) (port int, got <-chan []byte) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	all := make(chan []byte, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			b := make([]byte, n)
			_, _ = io.ReadFull(conn, b)
			conn.Close()
			all <- b
		}
	}()
	return listener.Addr().(*net.TCPAddr).Port, all
}

func TestLongCancelKeysAreForwardedUntouched(t *testing.T) {
	t.Parallel()
	for _, size := range []int{4, 32, 256} {
		w := &wire{t: t, pid: 4711, key: bytes.Repeat([]byte{0xa5}, size)}
		port, got := listenAs(t, len(w.cancelRequest()))
		p := startProxy(t, nil, func(config *server.Config) { config.Upstream.Port = port })
		dialRaw(t, p.address).send(w.cancelRequest())
		if request := <-got; !bytes.Equal(request, w.cancelRequest()) {
			t.Errorf("a key of %d bytes: %x", size, request)
		}
	}
}

func TestTheAnswerToANewerProtocolIsPostgress(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	p := startProxy(t, nil, withTLS(c))
	direct := fmt.Sprintf("127.0.0.1:%d", pgtest.Server(t).Port())
	for _, version := range []uint32{3 << 16, 3<<16 | 2, 3<<16 | 9999} {
		var answers []string
		for _, address := range []string{direct, p.address, p.address} {
			w := dialRaw(t, address)
			if len(answers) == 2 {
				w.send(requestPacket(sslRequest))
				readByte(t, w.conn)
				w.conn = tls.Client(w.conn, &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1"})
			}
			packet := startupPacket("user", "postgres", "_pq_.greased", "1")
			binary.BigEndian.PutUint32(packet[4:], version)
			w.send(packet)
			frames := w.until('Z')
			answer := shape(frames)
			for _, f := range frames {
				switch f.typ() {
				case 'v':
					answer += fmt.Sprintf(" %q", f.content())
				case 'K':
					answer += fmt.Sprintf(" key of %d bytes", len(f.content())-4)
				}
			}
			answers = append(answers, answer)
		}
		if answers[0] != answers[1] || answers[0] != answers[2] {
			t.Errorf("version %x: directly %s\nthrough the proxy %s\nwith TLS %s", version, answers[0], answers[1], answers[2])
		}
	}
}

func TestTheAddressOfAProxyHeaderIsLogged(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	c := newCertificate(t)
	p := startProxy(t, nil, withTLS(c), func(config *server.Config) {
		config.ProxyProtocol = true
		config.Logger = zap.New(core)
	})
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	self := "127.0.0.1:"
	for header, want := range map[string]string{
		"PROXY TCP4 192.0.2.1 198.51.100.2 1234 5432\r\n":  "192.0.2.1:1234",
		"PROXY TCP6 2001:db8::1 2001:db8::2 1234 5432\r\n": "[2001:db8::1]:1234",
		"PROXY UNKNOWN\r\n":               self,
		"PROXY UNKNOWN whatever else\r\n": self,
		signature + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x04\xd2\x15\x38":                                   "192.0.2.1:1234",
		signature + "\x21\x11\x00\x10\xc0\x00\x02\x01\xc0\x00\x02\x02\x04\xd2\x15\x38\x04\x00\x01\x00":                   "192.0.2.1:1234",
		signature + "\x21\x21\x00\x24" + strings.Repeat("\x20\x01", 8) + strings.Repeat("\x20", 16) + "\x04\xd2\x15\x38": "[2001:2001:2001:2001:2001:2001:2001:2001]:1234",
		signature + "\x20\x00\x00\x00":     self,
		signature + "\x21\x00\x00\x02ab":   self,
		signature + "\x21\x31\x00\x04abcd": self,
	} {
		for _, secure := range []bool{false, true} {
			w := dialRaw(t, p.address)
			w.send([]byte(header))
			if secure {
				w.conn = tls.Client(w.conn, &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1", NextProtos: []string{"postgresql"}})
			}
			w.send(startupPacket("user", "postgres"))
			w.until('Z')
			started := logs.FilterMessage("session started").TakeAll()
			if len(started) == 0 || !strings.HasPrefix(started[len(started)-1].ContextMap()["remote"].(string), want) {
				t.Errorf("%q: %v", header, started)
			}
			logs.TakeAll()
		}
	}
}

func TestAConnectionWithoutAProxyHeaderIsClosed(t *testing.T) {
	t.Parallel()
	p := startProxy(t, nil, func(config *server.Config) { config.ProxyProtocol = true })
	const signature = "\r\n\r\n\x00\r\nQUIT\n"
	for name, sent := range map[string]string{
		"none":                 string(startupPacket("user", "postgres")),
		"TLS":                  string(requestPacket(sslRequest)) + strings.Repeat("\x00", 8),
		"a name as address":    "PROXY TCP4 localhost localhost 1 2\r\n",
		"the other family":     "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
		"a zone":               "PROXY TCP6 fe80::1%eth0 fe80::2 1 2\r\n",
		"no port":              "PROXY TCP4 192.0.2.1 192.0.2.2\r\n",
		"a port too large":     "PROXY TCP4 192.0.2.1 192.0.2.2 65536 1\r\n",
		"another protocol":     "PROXY UDP4 192.0.2.1 192.0.2.2 1 2\r\n",
		"a line without end":   "PROXY TCP4 " + strings.Repeat("1", 200),
		"version 3":            signature + "\x31\x11\x00\x0c",
		"an unknown command":   signature + "\x22\x11\x00\x00",
		"too short":            signature + "\x21\x11\x00\x04abcd",
		"too long":             signature + "\x21\x11\xff\xff",
		"a header, then a bad": "PROXY UNKNOWN\r\nPROXY UNKNOWN\r\n",
	} {
		w := dialRaw(t, p.address)
		w.send([]byte(sent))
		if rest, _ := io.ReadAll(w.conn); len(rest) > 0 {
			t.Errorf("%s: %q", name, rest)
		}
	}
}

func TestOneConnectionTooManyIsToldSo(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	p := startProxy(t, nil, func(config *server.Config) { config.MaxConnections = 2 })
	first, second := dialWire(t, p.url(t, url)), dialWire(t, p.url(t, url))
	w := dialRaw(t, p.address)
	w.send(startupPacket("user", "postgres"))
	e := firstError(t, w.untilEnd())
	if e.Severity != "FATAL" || e.SeverityUnlocalized != "FATAL" || e.Code != "53300" || e.Message != "sorry, too many clients already" {
		t.Errorf("got %+v", e)
	}
	// A cancel request is no session.
	first.send(query("select pg_sleep(600)"))
	direct := connect(t, url)
	eventually(t, "the statement runs", first.waits(direct))
	dialRaw(t, p.address).send(first.cancelRequest())
	wantShape(t, first.until('Z'), "T E(57014) ZI")
	// A place that is left is free, however it was left.
	first.send(batch(&pgproto3.Terminate{}))
	first.untilEnd()
	second.conn.Close()
	for range 2 {
		eventually(t, "there is room", func() bool {
			conn, err := pgx.Connect(t.Context(), p.url(t, url))
			if err != nil {
				return false
			}
			t.Cleanup(func() { conn.Close(context.Background()) })
			return true
		})
	}
}

func TestSilentClientsKeepNobodyOut(t *testing.T) {
	t.Parallel()
	const n = 2000
	url := pgtest.Database(t)
	p := startProxy(t, nil, func(config *server.Config) {
		config.AuthenticationTimeout = 10 * time.Second
		config.MaxConnections = 10
	})
	silent := make([]net.Conn, n)
	var dialling sync.WaitGroup
	for i := range silent {
		dialling.Go(func() {
			conn, err := net.Dial("tcp", p.address)
			if err != nil {
				t.Error(err)
				return
			}
			silent[i] = conn
			// Nothing, a part of a packet, or a request without what follows.
			_, _ = conn.Write([][]byte{nil, {0, 0}, requestPacket(sslRequest)}[i%3])
		})
	}
	dialling.Wait()
	if t.Failed() {
		t.FailNow()
	}
	w := dialWire(t, p.url(t, url))
	for _, conn := range silent {
		if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(conn); err != nil && !isReset(err) {
			t.Fatalf("a silent client got %q, %v", rest, err)
		}
		conn.Close()
	}
	w.send(query("select 1"))
	wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")
}

// isReset reports that the other side closed a connection with bytes of ours
// unread.
func isReset(err error) bool { return strings.Contains(err.Error(), "reset by peer") }

func TestASilentTLSHandshakeIsEnded(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	p := startProxy(t, nil, withTLS(c), func(config *server.Config) { config.AuthenticationTimeout = 200 * time.Millisecond })
	for name, sent := range map[string][]byte{"asked": requestPacket(sslRequest), "direct": {0x16, 3, 1, 0}} {
		w := dialRaw(t, p.address)
		w.send(sent)
		if rest, err := io.ReadAll(w.conn); os.IsTimeout(err) || len(rest) > 1 {
			t.Errorf("%s: %q, %v", name, rest, err)
		}
	}
}
