package integration

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"database/sql"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

// writeCertificate writes a self-signed certificate for 127.0.0.1 and its key,
// readable to the owner of the folder only.
func writeCertificate(t *testing.T, folder string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "rwproxy test"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	certFile, keyFile = filepath.Join(folder, "server.crt"), filepath.Join(folder, "server.key")
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: certificate},
		keyFile:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(name, int(owner.Uid), int(owner.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	return certFile, keyFile
}

// secure is a Postgres with TLS and SCRAM passwords, and a proxy with TLS in
// front of it.
type secure struct {
	*proxy
	admin             *session
	certFile, keyFile string // of the proxy
}

func startSecure(t *testing.T) *secure {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	postgres, err := embedded.Start(ctx, embedded.Config{
		DataDir:  filepath.Join(scratchDir, strings.ReplaceAll(t.Name(), "/", "_")),
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		Settings: map[string]string{"fsync": "off", "shared_buffers": "16MB"},
		HBA:      []string{"hostssl all all 127.0.0.1/32 scram-sha-256"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopServer(postgres); err != nil {
			t.Error(err)
		}
	})
	s := &secure{admin: connect(t, postgres.URL("postgres"))}
	root, _ := writeCertificate(t, s.admin.value("show data_directory"))
	s.admin.exec("alter system set ssl = on", "select pg_reload_conf()",
		"create role alice login password 'secret'", "create role rwproxy login password 'service'",
		"grant select (rolname, rolpassword) on pg_authid to rwproxy")
	for deadline := time.Now().Add(patience); s.admin.value("show ssl") != "on"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("TLS does not come on")
		}
	}
	s.certFile, s.keyFile = writeCertificate(t, t.TempDir())
	upstream := url.URL{
		Scheme: "postgres", User: url.UserPassword("rwproxy", "service"), Path: "/postgres",
		Host:     fmt.Sprintf("127.0.0.1:%d", postgres.Port()),
		RawQuery: url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root}}.Encode(),
	}
	s.proxy = ownProxy(t, upstream.String(), "--tls-cert", s.certFile, "--tls-key", s.keyFile)
	return s
}

// environment is that of a libpq client which logs in as alice.
func (s *secure) environment(t *testing.T, settings ...string) []string {
	t.Helper()
	return append(libpqEnvironment(t, database{url: "postgres://alice@" + s.addr + "/postgres"}),
		append([]string{"PGPASSWORD=secret", "PGSSLROOTCERT=" + s.certFile}, settings...)...)
}

// psql runs a command and returns what it prints, errors included.
func (s *secure) psql(t *testing.T, command string, settings ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "psql", "--no-psqlrc", "--tuples-only", "--no-align", "--command", command)
	cmd.Env = s.environment(t, settings...)
	out, err := cmd.CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("psql: error:")) {
		missing(t, "psql", err, out)
	}
	return strings.TrimSpace(string(out))
}

const whoAmI = "select current_user || ' ' || ssl from pg_stat_ssl where pid = pg_backend_pid()"

func TestEveryClientLogsInWithTLSOnBothSides(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	for _, binding := range []string{"disable", "prefer", "require"} {
		for _, mode := range []string{"disable", "prefer", "require", "verify-full"} {
			if mode == "disable" && binding == "require" {
				continue // libpq refuses
			}
			got := s.psql(t, whoAmI, "PGSSLMODE="+mode, "PGCHANNELBINDING="+binding)
			if got != "alice true" {
				t.Errorf("psql, sslmode %s, channel_binding %s: %s", mode, binding, got)
			}
			got = s.psql(t, whoAmI, "PGSSLMODE="+mode, "PGCHANNELBINDING="+binding, "PGPASSWORD=wrong")
			if !strings.Contains(got, `FATAL:  password authentication failed for user "alice"`) {
				t.Errorf("psql with a wrong password, sslmode %s, channel_binding %s: %s", mode, binding, got)
			}
		}
	}

	d := database{url: "postgres://alice@" + s.addr + "/postgres", zone: "UTC"}
	for name, program := range map[string]struct {
		command  func(*testing.T, database) []string
		settings []string
	}{
		"psycopg":       {pythonCommand, []string{"PGSSLMODE=verify-full", "PGCHANNELBINDING=require"}},
		"node-postgres": {nodeCommand, []string{"PGSSLMODE=no-verify"}},
		"pgjdbc":        {javaCommand, []string{"PGSSLMODE=verify-ca"}},
	} {
		arguments := append(program.command(t, d), "simple")
		cmd := exec.CommandContext(t.Context(), arguments[0], arguments[1:]...)
		cmd.Env = s.environment(t, program.settings...)
		cmd.Stdin = strings.NewReader(whoAmI + " -- as text\x00")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "row\talice true") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}

	for _, options := range []string{"", "&channel_binding=require", "&sslnegotiation=direct"} {
		conn := connect(t, fmt.Sprintf("postgres://alice:secret@%s/postgres?sslmode=verify-full&sslrootcert=%s%s", s.addr, s.certFile, options))
		if got := conn.value(whoAmI); got != "alice true" {
			t.Errorf("pgx, %q: %s", options, got)
		}
	}
	db, err := sql.Open("postgres", fmt.Sprintf("postgres://alice:secret@%s/postgres?sslmode=verify-full&sslrootcert=%s", s.addr, s.certFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var got string
	if err := db.QueryRowContext(t.Context(), whoAmI).Scan(&got); err != nil || got != "alice true" {
		t.Errorf("lib/pq: %s, %v", got, err)
	}
}

func TestARoleThatMayNotReadVerifiersIsExplained(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	s.admin.exec("revoke select (rolname, rolpassword) on pg_authid from rwproxy")
	got := s.psql(t, whoAmI, "PGSSLMODE=require")
	if !strings.Contains(got, "FATAL:  SCRAM channel binding negotiation error") || !strings.Contains(got, "HINT:  Let the service role read") {
		t.Errorf("got %s", got)
	}
	if got := s.psql(t, whoAmI, "PGSSLMODE=require", "PGCHANNELBINDING=disable"); got != "alice true" {
		t.Errorf("without channel binding: %s", got)
	}
	if got := s.psql(t, whoAmI, "PGSSLMODE=disable"); got != "alice true" {
		t.Errorf("without TLS: %s", got)
	}
	if log := s.log.String(); strings.Count(log, "SCRAM is relayed") != 1 || !strings.Contains(log, "permission denied for table pg_authid") {
		t.Errorf("log: %s", log)
	}
}

func TestSIGHUPShowsNewSessionsTheNewCertificate(t *testing.T) {
	t.Parallel()
	s := startSecure(t)
	old := connect(t, fmt.Sprintf("postgres://alice:secret@%s/postgres?sslmode=verify-full&sslrootcert=%s", s.addr, s.certFile))
	shown := func() string {
		config, err := pgconn.ParseConfig(fmt.Sprintf("postgres://alice:secret@%s/postgres?sslmode=require&channel_binding=require", s.addr))
		if err != nil {
			t.Fatal(err)
		}
		conn, err := pgconn.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		return conn.Conn().(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := shown()
	writeCertificate(t, filepath.Dir(s.certFile))
	if shown() != first {
		t.Error("the files were read before the signal")
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); shown() == first; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not shown")
		}
	}
	// The new file is what psql verifies now, and binds its login to.
	if got := s.psql(t, whoAmI, "PGSSLMODE=verify-full", "PGCHANNELBINDING=require"); got != "alice true" {
		t.Errorf("psql: %s", got)
	}
	if got := old.value("select 'still here'"); got != "still here" {
		t.Errorf("the old session: %s", got)
	}
}

func TestTheConnectionLimitIsASetting(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	p := ownProxy(t, d.direct, "--max-connections", "1")
	s := connect(t, p.url(d.direct))
	_, err := pgconn.Connect(t.Context(), p.url(d.direct))
	if err == nil || !strings.Contains(err.Error(), "FATAL: sorry, too many clients already (SQLSTATE 53300)") {
		t.Errorf("the second client: %v", err)
	}
	if got := s.value("select 1"); got != "1" {
		t.Errorf("the first client: %s", got)
	}
}

func TestTheProxyProtocolIsASetting(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	p := ownProxy(t, d.direct, "--proxy-protocol", "on", "--log-level", "debug")
	config, err := pgconn.ParseConfig(p.url(d.direct))
	if err != nil {
		t.Fatal(err)
	}
	if conn, err := pgconn.ConnectConfig(t.Context(), config); err == nil {
		_ = conn.Close(t.Context())
		t.Error("a client without a header was let in")
	}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			_, err = io.WriteString(conn, "PROXY TCP4 192.0.2.77 192.0.2.1 4711 5432\r\n")
		}
		return conn, err
	}
	conn, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if log := p.log.String(); !strings.Contains(log, `"remote":"192.0.2.77:4711"`) {
		t.Errorf("log: %s", log)
	}
}
