package server_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/server"
)

const (
	sslRequest = 80877103
	gssRequest = 80877104
)

func requestPacket(code uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{0, 0, 0, 8}, code)
}

// certificate is self-signed for 127.0.0.1.
type certificate struct {
	pair      tls.Certificate
	pool      *x509.CertPool
	cert, key []byte // PEM
}

func newCertificate(t *testing.T) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := certificate{
		pool: x509.NewCertPool(),
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
	c.pool.AppendCertsFromPEM(c.cert)
	if c.pair, err = tls.X509KeyPair(c.cert, c.key); err != nil {
		t.Fatal(err)
	}
	return c
}

func readByte(t *testing.T, conn net.Conn) byte {
	t.Helper()
	var b [1]byte
	if _, err := conn.Read(b[:]); err != nil {
		t.Fatal(err)
	}
	return b[0]
}

func TestEncryptionRequestsAreRefusedOnceEach(t *testing.T) {
	t.Parallel()
	p := startProxy(t, nil)
	for name, codes := range map[string][]uint32{
		"TLS, then GSSAPI": {sslRequest, gssRequest},
		"GSSAPI, then TLS": {gssRequest, sslRequest},
	} {
		w := dialRaw(t, p.address)
		for _, code := range codes {
			w.send(requestPacket(code))
			if got := readByte(t, w.conn); got != 'N' {
				t.Errorf("%s: answer %q", name, got)
			}
		}
		w.send(startupPacket("user", "postgres"))
		w.until('Z')
	}
	for _, code := range []uint32{sslRequest, gssRequest} {
		w := dialRaw(t, p.address)
		w.send(join(requestPacket(code), requestPacket(code)))
		if left := w.untilEnd(); len(left) > 0 {
			t.Errorf("asked twice at once: %s", shape(left))
		}
		w = dialRaw(t, p.address)
		w.send(requestPacket(code))
		readByte(t, w.conn)
		w.send(requestPacket(code))
		if left := w.untilEnd(); len(left) > 0 {
			t.Errorf("asked twice: %s", shape(left))
		}
	}
}

func TestClientsMayUseTLS(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	p := startProxy(t, refreshing, func(config *server.Config) {
		config.TLS = &tls.Config{Certificates: []tls.Certificate{c.pair}}
	})
	config, err := pgx.ParseConfig(strings.Replace(p.url(t, url), "disable", "require", 1))
	if err != nil {
		t.Fatal(err)
	}
	config.TLSConfig = &tls.Config{RootCAs: c.pool, ServerName: "127.0.0.1"}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	exec(t, conn, refreshGood)
	if _, err := conn.Exec(t.Context(), refreshGood); err != nil {
		t.Error(err)
	}
	if got := value(t, conn, "select length(repeat('x', 3000000))"); got != "3000000" {
		t.Error(got)
	}
	wantLog(t, direct, "good, good")

	// A cancel request over TLS.
	slow := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "refresh streaming table slow")
		slow <- err
	}()
	w := &wire{t: t, pid: conn.PgConn().PID()}
	eventually(t, "the statement runs", w.waits(direct))
	if err := conn.PgConn().CancelRequest(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-slow; err == nil || !strings.Contains(err.Error(), "57014") {
		t.Errorf("cancelled statement: %v", err)
	}

	// A client that vanishes from a TLS connection.
	go func() {
		_, err := conn.Exec(context.Background(), "refresh streaming table slow")
		slow <- err
	}()
	eventually(t, "the statement runs", w.waits(direct))
	conn.PgConn().Conn().Close()
	if err := <-slow; err == nil {
		t.Error("a statement succeeded on a closed connection")
	}
	eventually(t, "the backend ends", w.backendIsGone(direct))
}

func TestPlainBytesBehindARequestForEncryptionEndTheConnection(t *testing.T) {
	t.Parallel()
	c := newCertificate(t)
	for name, config := range map[string]*tls.Config{"with TLS": {Certificates: []tls.Certificate{c.pair}}, "without": nil} {
		p := startProxy(t, nil, func(c *server.Config) { c.TLS = config })
		for _, code := range []uint32{sslRequest, gssRequest} {
			w := dialRaw(t, p.address)
			w.send(join(requestPacket(code), startupPacket("user", "postgres"), query("select 1")))
			if rest, err := io.ReadAll(w.conn); len(rest) > 0 {
				t.Errorf("%s, request %d: the session went on: %q, %v", name, code, rest, err)
			}
		}
	}
}

func TestBadStartupPacketsEndTheConnection(t *testing.T) {
	t.Parallel()
	p := startProxy(t, nil)
	for name, packet := range map[string][]byte{
		"too short":       {0, 0, 0, 7, 0, 3, 0},
		"length 0":        {0, 0, 0, 0, 0, 3, 0, 0},
		"negative length": {0xff, 0xff, 0xff, 0xff, 0, 3, 0, 0},
		"too long":        {0, 0, 0x27, 0x11, 0, 3, 0, 0},
		"HTTP":            []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		w := dialRaw(t, p.address)
		w.send(packet)
		if left := w.untilEnd(); len(left) > 0 {
			t.Errorf("%s: %s", name, shape(left))
		}
	}
	connect(t, p.url(t, pgtest.Database(t)))
}

func TestPostgresRefusesWhatItDoesNotUnderstandOfAStartupPacket(t *testing.T) {
	t.Parallel()
	p := startProxy(t, nil)
	for name, packet := range map[string][]byte{
		"no terminator":      {0, 0, 0, 12, 0, 3, 0, 0, 'u', 's', 'e', 'r'},
		"no user":            startupPacket("database", "postgres"),
		"an old protocol":    {0, 0, 0, 8, 0, 2, 0, 0},
		"an unknown version": {0, 0, 0, 8, 4, 210, 22, 50},
	} {
		var answers [2]string
		for i, address := range []string{p.address, fmt.Sprintf("127.0.0.1:%d", pgtest.Server(t).Port())} {
			w := dialRaw(t, address)
			w.send(packet)
			answer, err := io.ReadAll(w.conn)
			if err != nil {
				t.Fatal(err)
			}
			answers[i] = string(answer)
		}
		if answers[0] != answers[1] || answers[0] == "" {
			t.Errorf("%s:\nthe proxy says %q\nPostgres says  %q", name, answers[0], answers[1])
		}
	}
}

func TestBadMessagesEndTheirSessionOnly(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	p := startProxy(t, refreshing)
	for name, message := range map[string][]byte{
		"length 3":        {'Q', 0, 0, 0, 3},
		"length 0":        {'P', 0, 0, 0, 0},
		"negative length": {'B', 0xff, 0xff, 0xff, 0xff},
	} {
		w := dialWire(t, p.url(t, url))
		w.send(message)
		if e := firstError(t, w.untilEnd()); e.Code != "08P01" || e.Severity != "FATAL" {
			t.Errorf("%s: %+v", name, e)
		}
	}
	prepared := join(batch(run(refreshGood)...), []byte{'S', 0, 0, 0, 4})
	for name, message := range map[string][]byte{
		"a Query without its zero":     append([]byte{'Q', 0, 0, 0, byte(4 + len(refreshGood))}, refreshGood...),
		"a Parse without types":        append([]byte{'P', 0, 0, 0, byte(4 + 1 + len(refreshGood) + 1), 0}, refreshGood+"\x00"...),
		"a Bind of nothing":            {'B', 0, 0, 0, 4},
		"a Bind with too many":         {'B', 0, 0, 0, 10, 0, 0, 0xff, 0xff, 0xff, 0xff},
		"an Execute of nothing":        {'E', 0, 0, 0, 4},
		"a Close of nothing":           {'C', 0, 0, 0, 4},
		"a Describe of nothing":        {'D', 0, 0, 0, 4},
		"CopyData out of place":        {'d', 0, 0, 0, 4},
		"a promise of gigabytes":       {'Q', 0x7f, 0xff, 0xff, 0xff},
		"a promise of gigabytes, Bind": {'B', 0x3f, 0xff, 0xff, 0xff, 0, 0},
	} {
		w := dialWire(t, p.url(t, url))
		// Names matter once a statement of ours is prepared.
		w.send(join(prepared, message, []byte{'S', 0, 0, 0, 4}, batch(&pgproto3.Terminate{})))
		if err := w.conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		w.untilEnd()
		t.Logf("%s: survived", name)
	}
	connect(t, p.url(t, url))
}

func TestReplicationConnectionsPassThrough(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	p := startProxy(t, refreshing)
	for name, u := range map[string]string{"direct": url, "proxied": p.url(t, url)} {
		w := dialWire(t, u, "replication", "database")
		w.send(query("IDENTIFY_SYSTEM"))
		wantShape(t, w.until('Z'), "T D C(IDENTIFY_SYSTEM) ZI")
		// Ours are no statements there.
		w.send(query(refreshGood))
		if e := firstError(t, w.until('Z')); e.Code != "42601" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestStartupOptionsAndNewerProtocolsAreForwarded(t *testing.T) {
	t.Parallel()
	p := startProxy(t, refreshing)
	for name, address := range map[string]string{
		"direct":  fmt.Sprintf("127.0.0.1:%d", pgtest.Server(t).Port()),
		"proxied": p.address,
	} {
		w := dialRaw(t, address)
		packet := startupPacket("user", "postgres", "_pq_.nothing", "1", "application_name", "me", "options", "-c work_mem=77kB")
		binary.BigEndian.PutUint32(packet[4:], 3<<16|9999)
		w.send(packet)
		if got := shape(w.until('Z')); !strings.HasPrefix(got, "v R") && !strings.HasPrefix(got, "R v") {
			t.Errorf("%s: %s", name, got)
		}
		w.send(query("select current_setting('work_mem'), current_setting('application_name')"))
		if row := w.until('Z')[1]; !bytes.Contains(row, []byte("77kB")) || !bytes.Contains(row, []byte("me")) {
			t.Errorf("%s: %q", name, row)
		}
	}
}

func TestAUnixSocketOnBothSides(t *testing.T) {
	t.Parallel()
	folder, err := os.MkdirTemp("", "rw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	// One left behind by a killed process is in the way.
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(folder, ".s.PGSQL.6432")})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	if err := stale.Close(); err != nil {
		t.Fatal(err)
	}
	postgres := pgtest.Server(t)
	change := func(c *server.Config) {
		c.Listen = folder
		c.Upstream.Host = postgres.SocketDir()
	}
	startProxy(t, refreshing, change)
	conn := connect(t, "postgres://postgres@/postgres?port=6432&sslmode=disable&host="+folder)
	if got := value(t, conn, "select inet_server_addr() is null"); got != "t" {
		t.Error("Postgres was reached over TCP")
	}
	second, err := server.New(server.Config{Listen: folder, Upstream: server.Upstream{Host: postgres.SocketDir(), Port: postgres.Port()}})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); err == nil {
		t.Error("two servers listen on one socket")
		stopServer(t, second)
	}
}

func stopServer(t *testing.T, s *server.Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestEveryWayToLogIn(t *testing.T) {
	t.Parallel()
	postgres := startSecure(t)
	c := postgres.certificate
	for mode, wantTLS := range map[server.SSLMode]bool{
		server.SSLDisable: false, server.SSLPrefer: true, server.SSLRequire: true, server.SSLVerifyCA: true, server.SSLVerifyFull: true,
	} {
		p := startProxy(t, refreshing, func(config *server.Config) {
			config.Upstream.Port = postgres.Port()
			config.Upstream.SSLMode = mode
			config.Upstream.RootCAs = c.pool
		})
		users := map[string]string{"scram_user": "", "trusted": "", "md5_user": "", "clear_user": "", "nobody": "28000"}
		for user, code := range users {
			url := fmt.Sprintf("postgres://%s:secret@%s/postgres?sslmode=disable", user, p.address)
			conn, err := pgx.Connect(t.Context(), url)
			if code != "" {
				if err == nil || !strings.Contains(err.Error(), code) {
					t.Errorf("%s, %s: %v", mode, user, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", mode, user, err)
				continue
			}
			got := value(t, conn, "select current_user || ' ' || ssl from pg_stat_ssl where pid = pg_backend_pid()")
			if want := fmt.Sprintf("%s %v", user, wantTLS); got != want {
				t.Errorf("%s: %s, want %s", mode, got, want)
			}
			conn.Close(t.Context())
		}
		url := fmt.Sprintf("postgres://scram_user:wrong@%s/postgres?sslmode=disable", p.address)
		if _, err := pgx.Connect(t.Context(), url); err == nil || !strings.Contains(err.Error(), "28P01") {
			t.Errorf("%s: a wrong password: %v", mode, err)
		}
	}
	p := startProxy(t, refreshing, func(config *server.Config) {
		config.Upstream.Port = postgres.Port()
		config.Upstream.SSLMode = server.SSLVerifyCA
		config.Upstream.RootCAs = newCertificate(t).pool
	})
	url := fmt.Sprintf("postgres://trusted@%s/postgres?sslmode=disable", p.address)
	if _, err := pgx.Connect(t.Context(), url); err == nil || !strings.Contains(err.Error(), "08006") {
		t.Errorf("an unknown certificate: %v", err)
	}
}
