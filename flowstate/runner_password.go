package flowstate

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
)

// runnerPassword derives the password of a runner from the service's own, so
// that every rwproxy of a cluster knows it and none has to be kept. A service
// without a password is let in by other means, and so must its runners be.
func (s *Service) runnerPassword(cluster, runner string) string {
	if s.config.Password == "" {
		return ""
	}
	mac := hmac.New(sha256.New, []byte(s.config.Password))
	mac.Write([]byte(cluster + " " + runner))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// scramIterations is PostgreSQL's default.
const scramIterations = 4096

// scramVerifier returns what PostgreSQL stores of a password for SCRAM-SHA-256
// (RFC 5803). The password is ASCII.
func scramVerifier(password string) (string, error) {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails
	salted, err := pbkdf2.Key(sha256.New, password, salt, scramIterations, sha256.Size)
	if err != nil {
		return "", err
	}
	client := sha256.Sum256(keyed(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s",
		scramIterations, encode(salt), encode(client[:]), encode(keyed(salted, "Server Key"))), nil
}

func keyed(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}
