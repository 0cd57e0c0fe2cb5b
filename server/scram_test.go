package server

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"strings"
	"testing"
)

// newVerifier computes what Postgres keeps of a password.
func newVerifier(t testing.TB, password, salt string, iterations int) (v verifier, clientKey []byte, text string) {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(salt)
	if err != nil {
		t.Fatal(err)
	}
	salted, err := pbkdf2.Key(sha256.New, password, raw, iterations, sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	clientKey = sign(salted, "Client Key")
	stored := sha256.Sum256(clientKey)
	server := sign(salted, "Server Key")
	v = verifier{salt: salt, iterations: iterations, storedKey: stored[:], serverKey: server}
	encode := base64.StdEncoding.EncodeToString
	return v, clientKey, fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, salt, encode(stored[:]), encode(server))
}

// The exchange of RFC 7677, section 3: user "user", password "pencil".
func TestTheExchangeOfTheRFC(t *testing.T) {
	t.Parallel()
	const salt = "W22ZaJ0SNY7soEsUEjb6gQ=="
	const challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=" + salt + ",i=4096"
	const final = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	const answer = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
	v, clientKey, text := newVerifier(t, "pencil", salt, 4096)
	if parsed, err := parseVerifier(text); err != nil || fmt.Sprint(parsed) != fmt.Sprint(v) {
		t.Fatalf("parsed %v, %v", parsed, err)
	}

	s := &scramServer{}
	if d := s.start(scramSHA256, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO"); d != nil {
		t.Fatal(d)
	}
	s.ask(salt, 4096)
	s.challenge, s.nonce = challenge, strings.TrimPrefix(strings.Split(challenge, ",")[0], "r=")
	revealed, d := s.finish(final, v.storedKey)
	if d != nil || !bytes.Equal(revealed, clientKey) || !v.owns(revealed) {
		t.Errorf("the ClientKey is %x, %v", revealed, d)
	}
	if got := s.answer(v.serverKey); got != answer {
		t.Errorf("answer %s", got)
	}

	c := &scramClient{}
	c.start()
	c.first, c.nonce = "n=user,r=rOprNGfwEbeRWgbNEkqO", "rOprNGfwEbeRWgbNEkqO"
	gotSalt, iterations, err := c.read(challenge)
	if err != nil || gotSalt != salt || iterations != 4096 {
		t.Errorf("read %s, %d, %v", gotSalt, iterations, err)
	}
	if got := c.prove(clientKey, v.storedKey); got != final {
		t.Errorf("proof %s", got)
	}
	if !c.trusts(answer, v.serverKey) || c.trusts("v="+base64.StdEncoding.EncodeToString(make([]byte, 32)), v.serverKey) {
		t.Error("the server's signature is not checked")
	}
}

func TestAWrongPasswordRevealsNothingThatFits(t *testing.T) {
	t.Parallel()
	v, _, _ := newVerifier(t, "right", "c2FsdHNhbHRzYWx0", 4096)
	w, key, _ := newVerifier(t, "wrong", "c2FsdHNhbHRzYWx0", 4096)
	s, c := &scramServer{binding: []byte("end")}, &scramClient{binding: []byte("end")}
	if d := s.start(c.mechanism(), c.start()); d != nil {
		t.Fatal(d)
	}
	if _, _, err := c.read(s.ask(v.salt, v.iterations)); err != nil {
		t.Fatal(err)
	}
	revealed, d := s.finish(c.prove(key, w.storedKey), v.storedKey)
	if d != nil || v.owns(revealed) || bytes.Equal(revealed, key) {
		t.Errorf("revealed %x, %v", revealed, d)
	}
}

// A server that binds logins refuses one that says "you do not seem to".
func TestAHiddenOfferOfChannelBindingIsNoticed(t *testing.T) {
	t.Parallel()
	v, key, _ := newVerifier(t, "secret", "c2FsdA==", 4096)
	for _, binds := range []bool{false, true} {
		s, c := &scramServer{}, &scramClient{downgrade: true}
		if binds {
			s.binding = []byte("end")
		}
		d := s.start(c.mechanism(), c.start())
		if binds {
			if d == nil || d.Code != "28000" {
				t.Errorf("got %v", d)
			}
			continue
		}
		if d != nil {
			t.Fatal(d)
		}
		if _, _, err := c.read(s.ask(v.salt, v.iterations)); err != nil {
			t.Fatal(err)
		}
		if revealed, d := s.finish(c.prove(key, v.storedKey), v.storedKey); d != nil || !v.owns(revealed) {
			t.Errorf("revealed %x, %v", revealed, d)
		}
	}
}

func TestOnlySCRAMVerifiersAreRead(t *testing.T) {
	t.Parallel()
	_, _, good := newVerifier(t, "secret", "c2FsdA==", 4096)
	for _, text := range []string{
		"", "secret", "md5" + strings.Repeat("0", 32), "SCRAM-SHA-256", "SCRAM-SHA-256$", "SCRAM-SHA-256$4096:c2FsdA==$",
		strings.Replace(good, "4096", "many", 1), good[:len(good)-4], good + "A", strings.Replace(good, "256$", "512$", 1),
	} {
		if v, err := parseVerifier(text); err == nil {
			t.Errorf("%q became %v", text, v)
		}
	}
	mock := mockVerifier()
	if other := mockVerifier(); bytes.Equal(mock.storedKey, other.storedKey) || mock.salt != "" {
		t.Error("mock verifiers are not random")
	}
}

func TestTheHashOfACertificateIsItsSignatures(t *testing.T) {
	t.Parallel()
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	_, edKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sum256 := func(b []byte) []byte { h := sha256.Sum256(b); return h[:] }
	sum384 := func(b []byte) []byte { h := sha512.Sum384(b); return h[:] }
	sum512 := func(b []byte) []byte { h := sha512.Sum512(b); return h[:] }
	none := func([]byte) []byte { return nil }
	for _, test := range []struct {
		algorithm x509.SignatureAlgorithm
		key       crypto.Signer
		want      func([]byte) []byte
	}{
		{x509.SHA256WithRSA, rsaKey, sum256},
		{x509.SHA384WithRSA, rsaKey, sum384},
		{x509.SHA512WithRSA, rsaKey, sum512},
		{x509.SHA256WithRSAPSS, rsaKey, none},
		{x509.ECDSAWithSHA256, ecdsaKey, sum256},
		{x509.ECDSAWithSHA384, ecdsaKey, sum384},
		{x509.ECDSAWithSHA512, ecdsaKey, sum512},
		{x509.PureEd25519, edKey, none},
	} {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), SignatureAlgorithm: test.algorithm}
		der, err := x509.CreateCertificate(rand.Reader, template, template, test.key.Public(), test.key)
		if err != nil {
			t.Fatal(err)
		}
		if got := endPoint(der); !bytes.Equal(got, test.want(der)) {
			t.Errorf("%v: %x", test.algorithm, got)
		}
	}
	if endPoint([]byte("nonsense")) != nil {
		t.Error("nonsense has a hash")
	}
}
