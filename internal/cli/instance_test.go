package cli

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/internal/config"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// settings returns settings with free ports.
func settings(t *testing.T, variables map[string]string) *config.Settings {
	t.Helper()
	listen, off := "127.0.0.1:0", "off"
	s, err := config.Load(config.Flags{Listen: &listen, HTTP: &off}, func(name string) (string, bool) {
		value, found := variables[name]
		return value, found
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// launch starts an instance that is stopped when the test ends.
func launch(t *testing.T, s *config.Settings) *instance {
	t.Helper()
	i, err := start(testContext(t), s, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		i.stop(ctx)
	})
	return i
}

func TestTheEndOfTheEmbeddedServerIsAFailure(t *testing.T) {
	t.Parallel()
	i := launch(t, settings(t, map[string]string{"RWPROXY_DATA_DIR": pgtest.TempDir(t)}))
	if err := i.postgres.Kill(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-i.failed:
		if !strings.HasPrefix(err.Error(), "the embedded PostgreSQL ended") {
			t.Errorf("error = %v", err)
		}
	case <-testContext(t).Done():
		t.Error("nobody noticed")
	}
}

// writeCertificate writes a certificate with this serial number, and its key.
func writeCertificate(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: certificate},
		keyFile:  {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// serial connects with TLS and returns the serial number of the certificate
// that it is shown.
func serial(t *testing.T, i *instance) int64 {
	t.Helper()
	c, err := pgx.ParseConfig(i.url("postgres").String() + "?sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	connection, err := pgx.ConnectConfig(testContext(t), c)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close(t.Context())
	return connection.PgConn().Conn().(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestAReloadShowsTheNewCertificateAndKeepsTheOldOneWhenThatIsBroken(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	certFile, keyFile := filepath.Join(directory, "cert.pem"), filepath.Join(directory, "key.pem")
	writeCertificate(t, certFile, keyFile, 1)
	i := launch(t, settings(t, map[string]string{
		"RWPROXY_UPSTREAM": pgtest.Database(t),
		"RWPROXY_TLS_CERT": certFile,
		"RWPROXY_TLS_KEY":  keyFile,
	}))
	if got := serial(t, i); got != 1 {
		t.Errorf("serial number %d at first", got)
	}
	writeCertificate(t, certFile, keyFile, 2)
	i.reload()
	if got := serial(t, i); got != 2 {
		t.Errorf("serial number %d after a reload", got)
	}
	if err := os.WriteFile(certFile, []byte("half a fi"), 0o600); err != nil {
		t.Fatal(err)
	}
	i.reload()
	if got := serial(t, i); got != 2 {
		t.Errorf("serial number %d after a reload of a broken file", got)
	}
}

func TestAPostgresThatIsDownIsReportedToClientsNotAtTheStart(t *testing.T) {
	t.Parallel()
	i := launch(t, settings(t, map[string]string{"RWPROXY_UPSTREAM": "postgres://u:hunter2@127.0.0.1:1/db?sslmode=disable"}))
	_, err := ask(testContext(t), i.url("db").String(), "select 1")
	if err == nil || !strings.Contains(err.Error(), "SQLSTATE 08006") {
		t.Errorf("a client gets %v", err)
	}
	if err := i.ping(testContext(t)); err == nil {
		t.Error("ping succeeded")
	}
}

func TestAnInstanceThatStopsIsNotReadyWhileASessionFinishes(t *testing.T) {
	t.Parallel()
	s := settings(t, map[string]string{"RWPROXY_UPSTREAM": pgtest.Database(t)})
	s.HTTP = "127.0.0.1:0"
	i, err := start(testContext(t), s, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	readyz := func() int {
		response, err := http.Get("http://" + i.console.Address() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := readyz(); status != http.StatusOK {
		t.Errorf("status %d while running", status)
	}
	session, err := pgx.Connect(testContext(t), i.url("postgres").String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := session.Exec(testContext(t), "begin"); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		i.stop(testContext(t))
	}()
	<-i.closed
	if status := readyz(); status != http.StatusServiceUnavailable {
		t.Errorf("status %d while stopping", status)
	}
	if _, err := session.Exec(testContext(t), "commit"); err != nil {
		t.Errorf("commit: %v", err)
	}
	<-stopped
}

func TestTheDemoRunsInATemporaryDirectoryAndEndsOnce(t *testing.T) {
	t.Parallel()
	var directory string
	p := &program{
		stdout: io.Discard, stderr: io.Discard,
		lookup: func(string) (string, bool) { return "", false },
		demonstrate: func(ctx context.Context, i *instance, _ io.Writer) error {
			value, err := ask(ctx, i.url("postgres").String(), "show data_directory")
			directory = value
			return err
		},
	}
	if err := p.run(testContext(t), []string{"demo", "--once", "--listen=127.0.0.1:0", "--http=off"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(directory, "rwproxy-demo-") {
		t.Errorf("data directory %s", directory)
	}
	if _, err := os.Stat(filepath.Dir(directory)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data is still there: %v", err)
	}
}

func TestADemoThatFailsIsAnError(t *testing.T) {
	t.Parallel()
	failure := errors.New("no such table")
	var log bytes.Buffer
	p := &program{
		stdout: io.Discard, stderr: &log,
		lookup:      func(string) (string, bool) { return "", false },
		demonstrate: func(context.Context, *instance, io.Writer) error { return failure },
	}
	err := p.run(testContext(t), []string{"demo", "--listen=127.0.0.1:0", "--http=off", "--upstream", pgtest.Database(t)})
	if !errors.Is(err, failure) {
		t.Errorf("error = %v, log %s", err, log.String())
	}
}

// Not parallel: the signals reach every listener of this process.
func TestTheFirstSignalDrainsAndTheSecondCuts(t *testing.T) {
	s := notify(t.Context())
	defer s.release()
	self := os.Getpid()
	receive := func(done <-chan struct{}, signal syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(self, signal); err != nil {
			t.Fatal(err)
		}
		select {
		case <-done:
		case <-testContext(t).Done():
			t.Fatalf("%v was not seen", signal)
		}
	}
	receive(s.hangup, syscall.SIGHUP)
	if s.first.Err() != nil {
		t.Error("SIGHUP stops")
	}
	receive(s.first.Done(), syscall.SIGTERM)
	if s.second.Err() != nil {
		t.Error("the first signal cuts")
	}
	receive(s.second.Done(), syscall.SIGINT)
}

func TestADemoThatStaysSaysHowToConnect(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(testContext(t))
	defer stop()
	out := &stoppingWriter{at: "psql", stop: stop}
	p := &program{
		stdout: out, stderr: io.Discard,
		lookup:      func(string) (string, bool) { return "", false },
		demonstrate: func(context.Context, *instance, io.Writer) error { return nil },
	}
	if err := p.run(ctx, []string{"demo", "--listen=127.0.0.1:0", "--http=off"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `psql "postgres://`) {
		t.Errorf("got %q", out.String())
	}
}

// stoppingWriter ends a program that would run for ever when it has printed a
// text.
type stoppingWriter struct {
	strings.Builder
	at   string
	stop func()
}

func (w *stoppingWriter) Write(p []byte) (int, error) {
	n, err := w.Builder.Write(p)
	if strings.Contains(w.String(), w.at) {
		w.stop()
	}
	return n, err
}
