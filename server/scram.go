package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// The mechanisms of SASL authentication, and the channel binding that the
// second one uses.
const (
	scramSHA256     = "SCRAM-SHA-256"
	scramSHA256Plus = "SCRAM-SHA-256-PLUS"
	bindingType     = "tls-server-end-point"
)

// nonceSize is the random part of a nonce, in bytes, as Postgres's.
const nonceSize = 18

var errVerifier = errors.New("not a SCRAM-SHA-256 verifier")

// verifier is what Postgres keeps of a password, column rolpassword of
// pg_authid: it proves a password, and cannot be used to log in.
type verifier struct {
	salt       string // base64
	iterations int
	storedKey  []byte
	serverKey  []byte
}

// parseVerifier reads SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey.
func parseVerifier(text string) (verifier, error) {
	rest, found := strings.CutPrefix(text, scramSHA256+"$")
	if !found {
		return verifier{}, errVerifier
	}
	parameters, keys, _ := strings.Cut(rest, "$")
	iterations, salt, _ := strings.Cut(parameters, ":")
	stored, server, _ := strings.Cut(keys, ":")
	v := verifier{salt: salt}
	var err error
	if v.iterations, err = strconv.Atoi(iterations); err != nil {
		return verifier{}, errVerifier
	}
	v.storedKey, err = decodeKey(stored)
	if err != nil {
		return verifier{}, errVerifier
	}
	if v.serverKey, err = decodeKey(server); err != nil {
		return verifier{}, errVerifier
	}
	return v, nil
}

// mockVerifier is one that no password fits.
func mockVerifier() verifier {
	return verifier{storedKey: randomBytes(sha256.Size), serverKey: randomBytes(sha256.Size)}
}

// decodeKey decodes a key, signature or proof.
func decodeKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err == nil && len(key) != sha256.Size {
		err = errVerifier
	}
	return key, err
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}

func newNonce() string { return base64.StdEncoding.EncodeToString(randomBytes(nonceSize)) }

func sign(key []byte, message string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(message))
	return h.Sum(nil)
}

func xor(a, b []byte) []byte {
	c := make([]byte, len(a))
	subtle.XORBytes(c, a, b)
	return c
}

// owns reports whether a ClientKey is the one that belongs to the verifier.
func (v verifier) owns(clientKey []byte) bool {
	stored := sha256.Sum256(clientKey)
	return subtle.ConstantTimeCompare(stored[:], v.storedKey) == 1
}

// mechanisms reads the body of AuthenticationSASL.
func mechanisms(content []byte) []string {
	var names []string
	b := body{rest: content}
	b.int32()
	for {
		name := b.text()
		if b.bad || name == "" {
			return names
		}
		names = append(names, name)
	}
}
