package server

import (
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"
)

// scramClient is our side of a SCRAM exchange with Postgres. It has no
// password: the ClientKey is the client's.
type scramClient struct {
	binding []byte // of Postgres's certificate, nil for none
	// downgrade says that Postgres offers no channel binding on a connection
	// that has one: it must confirm that, or somebody in between has hidden it.
	downgrade bool

	nonce       string
	first       string // without the gs2 header
	challenge   string
	authMessage string
}

func (c *scramClient) mechanism() string {
	if c.binding != nil {
		return scramSHA256Plus
	}
	return scramSHA256
}

// header is the gs2 header.
func (c *scramClient) header() string {
	switch {
	case c.binding != nil:
		return "p=" + bindingType + ",,"
	case c.downgrade:
		return "y,,"
	}
	return "n,,"
}

// start returns our first message.
func (c *scramClient) start() string {
	c.nonce = newNonce()
	c.first = "n=,r=" + c.nonce
	return c.header() + c.first
}

// read reads Postgres's challenge.
func (c *scramClient) read(message string) (salt string, iterations int, err error) {
	attributes := strings.Split(message, ",")
	if len(attributes) < 3 || !strings.HasPrefix(attributes[0], "r="+c.nonce) ||
		!strings.HasPrefix(attributes[1], "s=") || !strings.HasPrefix(attributes[2], "i=") {
		return "", 0, errMalformed
	}
	c.challenge, c.nonce = message, attributes[0][len("r="):]
	iterations, err = strconv.Atoi(attributes[2][len("i="):])
	return attributes[1][len("s="):], iterations, err
}

// prove returns our final message.
func (c *scramClient) prove(clientKey, storedKey []byte) string {
	binding := append([]byte(c.header()), c.binding...)
	final := "c=" + base64.StdEncoding.EncodeToString(binding) + ",r=" + c.nonce
	c.authMessage = c.first + "," + c.challenge + "," + final
	proof := xor(clientKey, sign(storedKey, c.authMessage))
	return final + ",p=" + base64.StdEncoding.EncodeToString(proof)
}

// trusts reports whether Postgres's final message proves that it knows the
// verifier too.
func (c *scramClient) trusts(message string, serverKey []byte) bool {
	text, _ := strings.CutPrefix(message, "v=")
	signature, err := decodeKey(text)
	return err == nil && subtle.ConstantTimeCompare(signature, sign(serverKey, c.authMessage)) == 1
}
