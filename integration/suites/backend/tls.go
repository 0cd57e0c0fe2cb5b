package backend

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Certificate is a new certificate for localhost, signed by itself, which
// clients can trust.
type Certificate struct {
	File, Key string // PEM files
}

// newCertificate puts a certificate into dir, for the user who owns dir.
func newCertificate(dir string) (Certificate, error) {
	c := Certificate{File: filepath.Join(dir, "server.crt"), Key: filepath.Join(dir, "server.key")}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return c, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "localhost"},
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return c, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return c, err
	}
	if err := write(c.File, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}); err != nil {
		return c, err
	}
	return c, write(c.Key, &pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// write writes a file that only the owner of its folder may read.
func write(path string, block *pem.Block) error {
	folder, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return err
	}
	owner := folder.Sys().(*syscall.Stat_t)
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}

// offerTLS has a running server offer TLS with a certificate, and returns when
// it does.
func offerTLS(ctx context.Context, url string, c Certificate) error {
	ctx, cancel := context.WithTimeout(ctx, starting)
	defer cancel()
	for _, statement := range []string{
		"alter system set ssl_cert_file = '" + c.File + "'",
		"alter system set ssl_key_file = '" + c.Key + "'",
		"alter system set ssl = on",
		"select pg_reload_conf()",
	} {
		if err := execute(ctx, url, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	for {
		err := execute(ctx, url+"?sslmode=require", "select")
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// execute runs a statement in a session of its own.
func execute(ctx context.Context, url, statement string) error {
	c, err := pgconn.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(context.WithoutCancel(ctx))
	_, err = c.Exec(ctx, statement).ReadAll()
	return err
}
