package backend

import (
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestAClientCanVerifyTheServerAndTheProxyInFrontOfIt(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "rwproxy")
	if out, err := exec.Command("go", "build", "-o", program, "github.com/rwproxy/rwproxy/cmd/rwproxy").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	check := func(port int, c Certificate) error {
		conn, err := pgconn.Connect(t.Context(), "host=localhost port="+strconv.Itoa(port)+
			" user=postgres dbname=postgres sslmode=verify-full sslrootcert="+c.File)
		if err != nil {
			return err
		}
		defer conn.Close(t.Context())
		_, err = conn.Exec(t.Context(), "select").ReadAll()
		return err
	}
	var proxied int
	err := Postgres(t.Context(), Config{TLS: true}, func(server Server) error {
		if err := check(server.Port, server.Certificate); err != nil {
			t.Errorf("directly: %v", err)
		}
		return Rwproxy(t.Context(), program, server, func(port int) error {
			proxied = port
			return check(port, server.Certificate)
		})
	})
	if err != nil {
		t.Error(err)
	}
	if conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(proxied))); err == nil {
		conn.Close()
		t.Error("the proxy still accepts")
	}
}
