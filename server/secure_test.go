package server_test

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// securePostgres is a server with TLS that asks for passwords. Each role is
// named after how it logs in; the password is "secret".
type securePostgres struct {
	*embedded.Postgres
	certificate
}

// startSecure starts a server of the test's own.
func startSecure(t *testing.T) *securePostgres {
	t.Helper()
	postgres, err := embedded.Start(t.Context(), embedded.Config{
		DataDir:  pgtest.TempDir(t),
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		Settings: map[string]string{"fsync": "off", "shared_buffers": "16MB"},
		HBA: []string{
			"local     all scram_user              scram-sha-256",
			"hostssl   all cert_user  127.0.0.1/32 cert",
			"host      all md5_user   127.0.0.1/32 md5",
			"host      all clear_user 127.0.0.1/32 password",
			"host      all nobody     127.0.0.1/32 reject",
			"host      all trusted    127.0.0.1/32 trust",
			"host      all all        127.0.0.1/32 scram-sha-256",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := postgres.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	admin := connect(t, postgres.URL("postgres"))
	exec(t, admin, `create role scram_user login password 'secret'; create role trusted login; create role nobody login;
		create role cert_user login; create role clear_user login password 'secret';
		create role expired login password 'secret' valid until '2000-01-01'; create role without_password login;
		create role without_login password 'secret';
		set password_encryption = md5; create role md5_user login password 'secret';
		create role old_password login password 'secret'; reset password_encryption`)
	c := newCertificate(t)
	for name, content := range map[string][]byte{"server.crt": c.cert, "server.key": c.key} {
		writeOwned(t, value(t, admin, "show data_directory"), name, content)
	}
	exec(t, admin, "alter system set ssl_ca_file = 'server.crt'")
	exec(t, admin, "alter system set ssl = on")
	exec(t, admin, "select pg_reload_conf()")
	eventually(t, "TLS is on", func() bool { return value(t, admin, "show ssl") == "on" })
	return &securePostgres{Postgres: postgres, certificate: c}
}

// verifier reads what Postgres keeps of a role's password.
func (p *securePostgres) verifier(ctx context.Context, role string) (string, error) {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	var text *string
	err = conn.QueryRow(ctx, "select max(rolpassword) from pg_authid where rolname = $1::name", role).Scan(&text)
	if err != nil || text == nil {
		return "", err
	}
	return *text, nil
}

// writeOwned writes a file that only the owner of its folder may read.
func writeOwned(t *testing.T, folder, name string, content []byte) {
	t.Helper()
	info, err := os.Stat(folder)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}
