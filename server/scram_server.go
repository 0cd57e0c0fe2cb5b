package server

import (
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// scramServer is our side of a SCRAM exchange with a client (RFC 5802, 7677).
// Its errors are Postgres's.
type scramServer struct {
	binding []byte // offered to the client, nil for none

	flag        string // the client's first message up to its comma: n, y or p=…
	first       string // the client's first message without its gs2 header
	clientNonce string
	challenge   string // our first message
	nonce       string // both
	authMessage string
}

// start reads the client's first message.
func (s *scramServer) start(mechanism, message string) *pgdiag.Diagnostic {
	if mechanism != scramSHA256 && (mechanism != scramSHA256Plus || s.binding == nil) {
		return pgdiag.New("08P01", "client selected an invalid SASL authentication mechanism")
	}
	if strings.ContainsRune(message, 0) || message == "" {
		return malformed("The message is empty or holds a zero byte.")
	}
	var found bool
	if s.flag, message, found = strings.Cut(message, ","); !found {
		return malformed("The channel-binding flag is not followed by a comma.")
	}
	switch plus := mechanism == scramSHA256Plus; {
	case s.flag == "n" && !plus:
	case s.flag == "y" && !plus:
		if s.binding != nil {
			return negotiationError("The client supports SCRAM channel binding but thinks the server does not.  However, this server does support channel binding.")
		}
	case s.flag == "n" || s.flag == "y":
		return malformed("The client selected SCRAM-SHA-256-PLUS, but the SCRAM message does not include channel binding data.")
	case !strings.HasPrefix(s.flag, "p="):
		return malformed("The channel-binding flag is none of n, y and p.")
	case !plus:
		return malformed("The client selected SCRAM-SHA-256 without channel binding, but the SCRAM message includes channel binding data.")
	case s.flag != "p="+bindingType:
		return pgdiag.New("08P01", `unsupported SCRAM channel-binding type "`+printable(s.flag[len("p="):])+`"`)
	}
	identity, message, found := strings.Cut(message, ",")
	switch {
	case strings.HasPrefix(identity, "a="):
		return pgdiag.New("0A000", "client uses authorization identity, but it is not supported")
	case !found || identity != "":
		return malformed("The authorization identity is not followed by a comma.")
	}
	s.first = message
	attributes := strings.Split(message, ",")
	switch {
	case strings.HasPrefix(message, "m="):
		return pgdiag.New("0A000", "client requires an unsupported SCRAM extension")
	case len(attributes) < 2 || !strings.HasPrefix(attributes[0], "n=") || !strings.HasPrefix(attributes[1], "r="):
		// The name is not looked at: it is the startup packet's that counts.
		return malformed("The message does not begin with a user name and a nonce.")
	}
	s.clientNonce = attributes[1][len("r="):]
	for _, c := range []byte(s.clientNonce) {
		if c <= ' ' || c > '~' {
			return pgdiag.New("08P01", "non-printable characters in SCRAM nonce")
		}
	}
	return nil
}

// ask returns our first message.
func (s *scramServer) ask(salt string, iterations int) string {
	s.nonce = s.clientNonce + newNonce()
	s.challenge = "r=" + s.nonce + ",s=" + salt + ",i=" + strconv.Itoa(iterations)
	return s.challenge
}

// finish reads the client's final message and returns the ClientKey that its
// proof reveals to who has the StoredKey.
func (s *scramServer) finish(message string, storedKey []byte) ([]byte, *pgdiag.Diagnostic) {
	at := strings.LastIndex(message, ",p=")
	if at < 0 {
		return nil, malformed("The client's final message has no proof.")
	}
	proof, err := decodeKey(message[at+len(",p="):])
	if err != nil {
		return nil, malformed("Malformed proof in client-final-message.")
	}
	attributes := strings.SplitN(message[:at], ",", 3)
	if len(attributes) < 2 || !strings.HasPrefix(attributes[0], "c=") || !strings.HasPrefix(attributes[1], "r=") {
		return nil, malformed("The client's final message does not begin with channel binding and nonce.")
	}
	binding := []byte(s.flag + ",,")
	bound := strings.HasPrefix(s.flag, "p=")
	if bound {
		binding = append(binding, s.binding...)
	}
	given := []byte(attributes[0][len("c="):])
	want := []byte(base64.StdEncoding.EncodeToString(binding))
	switch {
	case subtle.ConstantTimeCompare(given, want) == 1:
	case bound:
		return nil, pgdiag.New("28000", "SCRAM channel binding check failed")
	default:
		return nil, pgdiag.New("08P01", "unexpected SCRAM channel-binding attribute in client-final-message")
	}
	if subtle.ConstantTimeCompare([]byte(attributes[1][len("r="):]), []byte(s.nonce)) != 1 {
		return nil, pgdiag.New("08P01", "invalid SCRAM response").WithDetail("Nonce does not match.")
	}
	s.authMessage = s.first + "," + s.challenge + "," + message[:at]
	return xor(proof, sign(storedKey, s.authMessage)), nil
}

// answer returns our final message, which proves to the client that we know
// its verifier.
func (s *scramServer) answer(serverKey []byte) string {
	return "v=" + base64.StdEncoding.EncodeToString(sign(serverKey, s.authMessage))
}

// printable is a client's text as an error message may show it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text[:min(len(text), 30)])
}

func malformed(detail string) *pgdiag.Diagnostic {
	return pgdiag.New("08P01", "malformed SCRAM message").WithDetail(detail)
}

func negotiationError(detail string) *pgdiag.Diagnostic {
	return pgdiag.New("28000", "SCRAM channel binding negotiation error").WithDetail(detail)
}
