package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgproto3/v2"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// Authentication requests that are SASL's, by the code in the message.
const (
	authenticationSASL         = 10
	authenticationSASLContinue = 11
	authenticationSASLFinal    = 12
)

// msgPassword is the type of all of a client's answers to an authentication
// request.
const msgPassword = 'p'

// The bounds that Postgres puts on a client's SASL message, and libpq on a
// server's message before it is authenticated.
const maxSASLMessage, maxLoginMessage = 1024, 30000

// errRefused ends a login of which the client has been told everything.
var errRefused = errors.New("refused by Postgres")

// login is the authentication of a client with TLS, up to where it can be
// relayed like everything else.
//
// SCRAM knows of TLS. A client that could bind its login to the server's
// certificate says so, and Postgres refuses it if it could have done so too:
// then somebody sits in between, and that is us. So the proxy runs two
// exchanges at a time. To the client it is the server, and knows the role's
// verifier. To Postgres it is the client: the proof that answers the proxy's
// challenge reveals the ClientKey to who has the verifier, and the ClientKey is
// all that a login takes. Postgres's own challenge gives the salt, so that
// roles that do not exist look as they do there, and Postgres decides: a wrong
// proof becomes a wrong proof.
type login struct {
	client  clientTLS
	backend net.Conn
	log     *zap.Logger
}

// login sends the startup packet and authenticates the client as far as the
// relay cannot. It reports whether the session may go on.
func (s *Server) login(client clientTLS, backend net.Conn, first *startup, log *zap.Logger) bool {
	if !s.wait(backend) {
		return false
	}
	defer s.forget(backend)
	l := &login{client: client, backend: backend, log: log}
	err := backend.SetDeadline(time.Now().Add(s.config.AuthenticationTimeout))
	if err == nil {
		err = l.run(s, *first)
	}
	first.raw = nil // it has been sent
	switch {
	case err == nil:
		return backend.SetDeadline(time.Time{}) == nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = pgdiag.New("57014", "canceling authentication due to timeout")
		// The client is about to be closed anyway.
		_ = client.SetDeadline(time.Now().Add(lastWord))
	}
	log.Debug("login failed", zap.Error(err))
	refuse(client, err)
	return false
}

func (l *login) run(s *Server, first startup) error {
	if _, err := l.backend.Write(first.raw); err != nil {
		return err
	}
	code, request, err := l.request()
	if err != nil {
		return err
	}
	if code != authenticationSASL || !slices.Contains(mechanisms(request[headerSize:]), scramSHA256) {
		_, err = l.client.Write(request)
		return err
	}
	v, err := s.verifier(first.user)
	if err != nil {
		l.explainRelay(s, err)
		return l.relay(request)
	}
	return l.exchange(v, slices.Contains(mechanisms(request[headerSize:]), scramSHA256Plus))
}

var errNoVerifiers = errors.New("no access to verifiers is configured")

// verifier returns a role's verifier, or one that nothing fits.
func (s *Server) verifier(role string) (verifier, error) {
	if s.config.Verifier == nil {
		return verifier{}, errNoVerifiers
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.config.ConnectTimeout)
	defer cancel()
	text, err := s.config.Verifier(ctx, role)
	if err != nil {
		return verifier{}, err
	}
	v, err := parseVerifier(text)
	if err != nil {
		return mockVerifier(), nil
	}
	return v, nil
}

// explainRelay says once why clients may not be able to log in.
func (l *login) explainRelay(s *Server, reason error) {
	if l.upstreamTLS() == nil {
		l.log.Debug("SCRAM is relayed", zap.Error(reason))
		return
	}
	s.relaying.Do(func() {
		l.log.Warn("SCRAM is relayed: TLS clients that support channel binding cannot log in", zap.Error(reason))
	})
}

// upstreamTLS is the TLS connection to Postgres, nil if there is none.
func (l *login) upstreamTLS() *tls.Conn {
	secured, _ := l.backend.(*tls.Conn)
	return secured
}

// relay passes Postgres's offer of SCRAM on. Over TLS it is known to fail for
// clients that support channel binding, unless they keep quiet about it; they
// are told why.
func (l *login) relay(request []byte) error {
	if l.upstreamTLS() == nil {
		_, err := l.client.Write(request)
		return err
	}
	if _, err := l.client.Write(withoutChannelBinding(request)); err != nil {
		return err
	}
	answer, err := l.answer()
	if err != nil {
		return err
	}
	if _, data, err := initialResponse(answer[headerSize:]); err == nil && strings.HasPrefix(data, "y") {
		return negotiationError("The connection to Postgres is protected by TLS too, and rwproxy cannot read the role's SCRAM verifier, which it needs to log in for a client that supports channel binding.").
			WithHint("Let the service role read rolname and rolpassword of pg_authid, or connect with channel_binding=disable.")
	}
	_, err = l.backend.Write(answer)
	return err
}

// exchange runs both exchanges, up to the client's part of AuthenticationOk.
func (l *login) exchange(v verifier, offersPlus bool) error {
	server := &scramServer{binding: l.client.binding}
	client := &scramClient{}
	if secured := l.upstreamTLS(); secured != nil {
		end := endPoint(secured.ConnectionState().PeerCertificates[0].Raw)
		if offersPlus {
			client.binding = end
		}
		client.downgrade = end != nil && !offersPlus
	}
	mechanism, message, err := l.offer(server.binding != nil)
	if err != nil {
		return err
	}
	if d := server.start(mechanism, message); d != nil {
		return d
	}
	challenge, err := l.ask(authenticationSASLContinue, &pgproto3.SASLInitialResponse{
		AuthMechanism: client.mechanism(), Data: []byte(client.start()),
	})
	if err != nil {
		return err
	}
	salt, iterations, err := client.read(challenge)
	if err != nil {
		return protocolViolation(err)
	}
	if salt != v.salt || iterations != v.iterations {
		v = mockVerifier() // a role that may not log in by password, or an old verifier
	}
	if err := l.tell(&pgproto3.AuthenticationSASLContinue{Data: []byte(server.ask(salt, iterations))}); err != nil {
		return err
	}
	answer, err := l.answer()
	if err != nil {
		return err
	}
	clientKey, d := server.finish(string(answer[headerSize:]), v.storedKey)
	if d != nil {
		return d
	}
	final, err := l.ask(authenticationSASLFinal, &pgproto3.SASLResponse{Data: []byte(client.prove(clientKey, v.storedKey))})
	if err != nil {
		return err
	}
	if !v.owns(clientKey) || !client.trusts(final, v.serverKey) {
		return protocolViolation(errors.New("incorrect server signature"))
	}
	return l.tell(&pgproto3.AuthenticationSASLFinal{Data: []byte(server.answer(v.serverKey))})
}

func protocolViolation(err error) *pgdiag.Diagnostic {
	return pgdiag.New("08P01", "SCRAM authentication with Postgres failed").WithDetail(err.Error())
}

// offer asks the client for SCRAM and returns its choice with its first
// message.
func (l *login) offer(plus bool) (mechanism, message string, err error) {
	offered := []string{scramSHA256}
	if plus {
		offered = []string{scramSHA256Plus, scramSHA256}
	}
	if err := l.tell(&pgproto3.AuthenticationSASL{AuthMechanisms: offered}); err != nil {
		return "", "", err
	}
	answer, err := l.answer()
	if err != nil {
		return "", "", err
	}
	mechanism, message, err = initialResponse(answer[headerSize:])
	if err == nil && message == "" {
		// The client wants to be asked for its first message.
		if err := l.tell(&pgproto3.AuthenticationSASLContinue{}); err != nil {
			return "", "", err
		}
		answer, err = l.answer()
		if err == nil {
			message = string(answer[headerSize:])
		}
	}
	return mechanism, message, err
}

// initialResponse reads the body of a SASLInitialResponse.
func initialResponse(content []byte) (mechanism, data string, err error) {
	b := body{rest: content}
	mechanism = b.text()
	if n := b.int32(); n != -1 {
		data = string(b.take(n))
	}
	if b.bad || len(b.rest) > 0 {
		return "", "", pgdiag.New("08P01", "invalid SASL initial response")
	}
	return mechanism, data, nil
}

// tell sends the client a message.
func (l *login) tell(m pgproto3.Message) error {
	encoded, err := encode(nil, m)
	if err != nil {
		return err
	}
	_, err = l.client.Write(encoded)
	return err
}

// ask sends Postgres an answer and returns the data of the next request, which
// must have the given code.
func (l *login) ask(code int, m pgproto3.Message) (string, error) {
	encoded, err := encode(nil, m)
	if err != nil {
		return "", err
	}
	if _, err := l.backend.Write(encoded); err != nil {
		return "", err
	}
	got, request, err := l.request()
	if err != nil {
		return "", err
	}
	if got != code {
		return "", protocolViolation(fmt.Errorf("authentication request %d instead of %d", got, code))
	}
	return string(request[headerSize+4:]), nil
}

// request reads Postgres's next authentication request. Other messages pass to
// the client; an error among them is the end.
func (l *login) request() (code int, message []byte, err error) {
	for {
		message, err = readMessage(l.backend, maxLoginMessage)
		if err != nil {
			return 0, nil, err
		}
		if message[0] == msgAuthentication {
			b := body{rest: message[headerSize:]}
			code = b.int32()
			if b.bad {
				return 0, nil, protocolViolation(errMalformed)
			}
			return code, message, nil
		}
		if _, err := l.client.Write(message); err != nil {
			return 0, nil, err
		}
		if message[0] == msgErrorResponse {
			return 0, nil, errRefused
		}
	}
}

// answer reads the client's answer to an authentication request.
func (l *login) answer() ([]byte, error) {
	message, err := readMessage(l.client, maxSASLMessage)
	if err == nil && message[0] != msgPassword {
		err = pgdiag.New("08P01", fmt.Sprintf("expected SASL response, got message type %d", message[0]))
	}
	return message, err
}

// readMessage reads a message of at most the given body, and not a byte more.
func readMessage(r io.Reader, limit int) ([]byte, error) {
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, err
	}
	b := body{rest: head[1:]}
	length := b.int32()
	if length < 4 || length > 4+limit {
		return nil, errMessageLength
	}
	message := make([]byte, 1+length)
	copy(message, head)
	_, err := io.ReadFull(r, message[headerSize:])
	return message, err
}
