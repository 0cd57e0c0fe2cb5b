package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgproto3/v2"
	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// lastWord is how long a client has to take the message that ends its session.
const lastWord = time.Second

// adminShutdown is what Postgres says when it is stopped.
const adminShutdown = "terminating connection due to administrator command"

var (
	errDraining    = errors.New("the server is stopping")
	errBackendLost = errors.New("the connection to Postgres was lost")
)

// session is one client and its own connection to Postgres. Two goroutines
// serve it: the client's reads the client and is the only one that writes to
// the backend; the backend's reads the backend at all times and writes to the
// client. When a statement of ours runs, the client's goroutine runs it.
//
// Locks are taken in the order out, mu, and none is held while waiting for the
// backend's next message.
type session struct {
	server  *Server
	log     *zap.Logger
	client  net.Conn
	backend net.Conn
	ctx     context.Context // ends with either connection
	cancel  context.CancelFunc

	user, database string
	unscanned      bool // a replication connection: frames are all that is looked at

	// Of the client's goroutine (and of the watcher that it starts and joins).
	in       *frameReader
	up       *bufio.Writer // to the backend
	batch    batch
	swallow  bool // a statement of ours failed: skip to the client's next Sync
	leftover bool // the backend may still know the injected statement and portal

	// Of the backend's goroutine.
	from    *frameReader
	inFrame bool // out is held

	// out is the client's connection. It is held for a whole message.
	out struct {
		sync.Mutex
		w    *bufio.Writer
		held []byte // a CommandComplete to be sent with the next ReadyForQuery
	}

	mu          sync.Mutex // guards what follows
	changed     *sync.Cond // the ledger or the fields below changed
	ledger      ledger
	status      byte
	cancelKey   []byte // of BackendKeyData: process ID and secret
	backslashes bool   // standard_conforming_strings is off
	unsafeText  bool   // client_encoding has characters that end in an ASCII byte
	prepared    map[string]*prepared
	portals     map[string]*portal
	lost        bool     // the backend is gone
	farewell    bool     // the client was told why by a FATAL
	running     bool     // a handler runs: the client's goroutine ends the session
	pumping     bool     // the client's goroutine passes COPY data on
	injecting   bool     // answers go to an injected statement
	changes     [][]byte // ParameterStatus messages that arrived while a handler runs
}

// batch is what the client has sent since its last Sync or Query.
type batch struct {
	open     bool // anything in the extended protocol
	executed bool // an Execute
	portals  int  // named portals bound
}

func newSession(server *Server, client, backend net.Conn, first startup, log *zap.Logger) *session {
	s := &session{
		server:    server,
		log:       log,
		client:    client,
		backend:   backend,
		user:      first.user,
		database:  first.database,
		unscanned: first.replication,
		in:        newFrameReader(client),
		from:      newFrameReader(backend),
		up:        bufio.NewWriterSize(backend, bufferSize),
		ledger:    newLedger(),
		prepared:  map[string]*prepared{},
		portals:   map[string]*portal{},
	}
	s.ctx, s.cancel = context.WithCancel(server.ctx)
	s.changed = sync.NewCond(&s.mu)
	s.out.w = bufio.NewWriterSize(client, bufferSize)
	s.in.beforeRead = s.beforeClientRead
	s.from.beforeRead = s.flushClient
	return s
}

// serve relays until both sides are gone.
func (s *session) serve(first startup) {
	defer s.cancel()
	defer s.client.Close()
	stop := context.AfterFunc(s.server.ctx, s.cutOff)
	defer stop()

	s.ledger.sent(owesStartup, nil)
	var backend sync.WaitGroup
	backend.Go(func() {
		defer s.backendGone()
		defer recoverTo(s.log)
		s.relayBackend()
	})
	defer backend.Wait()
	// A panic in the client's goroutine must not leave the other one waiting.
	panicked := true
	defer func() {
		if panicked {
			s.client.Close()
			s.backend.Close()
		}
	}()
	_, err := s.up.Write(first.raw)
	if err == nil {
		err = s.relayClient()
	}
	s.clientGone(err)
	panicked = false
}

// clientGone ends the client's half of the session.
func (s *session) clientGone(err error) {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		// Postgres is told, and decides about what still runs. A message that
		// is only half there is never completed.
		halfClose(s.backend)
		return
	}
	switch {
	case errors.Is(err, errMessageLength):
		s.sayFatal("08P01", "invalid message length")
	case errors.Is(err, errDraining):
		s.sayFatal("57P01", adminShutdown)
		s.sendTerminate()
	case errors.Is(err, errBackendLost):
		s.sayFatal("08006", "the connection to Postgres was lost")
	}
	s.client.Close()
	s.backend.Close()
}

// backendGone ends the backend's half of the session. The client has seen
// whatever Postgres said; nothing is added, unless a handler is at work: then
// the client's goroutine says what became of its statement.
func (s *session) backendGone() {
	s.mu.Lock()
	s.lost = true
	running := s.running
	s.changed.Broadcast()
	s.mu.Unlock()
	s.cancel()
	s.backend.Close()
	if !running {
		s.client.Close()
	}
}

// cutOff ends the session at once, with a word to the client if no message is
// half sent.
func (s *session) cutOff() {
	if s.out.TryLock() {
		if message, err := encode(nil, fatal("57P01", adminShutdown)); err == nil {
			// Closed next, whether or not the client takes it.
			_ = s.client.SetWriteDeadline(time.Now().Add(lastWord))
			_, _ = s.out.w.Write(message)
			_ = s.out.w.Flush()
		}
		s.out.Unlock()
	}
	s.client.Close()
	s.backend.Close()
}

// sayFatal ends the conversation with the client, unless Postgres has done it.
func (s *session) sayFatal(code, text string) {
	s.mu.Lock()
	told := s.farewell
	s.farewell = true
	s.mu.Unlock()
	if !told {
		// The session ends whether or not the client can be told.
		_ = s.client.SetWriteDeadline(time.Now().Add(lastWord))
		_ = s.sendClient(fatal(code, text))
	}
}

func fatal(code, text string) *pgproto3.ErrorResponse {
	d := pgdiag.New(code, text)
	d.Severity = "FATAL"
	return d.ErrorResponse()
}

// sendClient sends messages of ours to the client at once.
func (s *session) sendClient(messages ...pgproto3.Message) error {
	encoded, err := encode(nil, messages...)
	if err != nil {
		return err
	}
	return s.sendClientRaw(encoded)
}

func (s *session) sendClientRaw(encoded []byte) error {
	s.out.Lock()
	defer s.out.Unlock()
	if _, err := s.out.w.Write(encoded); err != nil {
		return err
	}
	return s.out.w.Flush()
}

// sendBackend queues messages of ours for the backend.
func (s *session) sendBackend(messages ...pgproto3.Message) error {
	encoded, err := encode(nil, messages...)
	if err != nil {
		return err
	}
	_, err = s.up.Write(encoded)
	return err
}

func (s *session) sendTerminate() {
	// The connection is closed next either way.
	if err := s.sendBackend(&pgproto3.Terminate{}); err == nil {
		_ = s.up.Flush()
	}
}

// owe records what the backend will answer to a message that is sent now.
func (s *session) owe(kind expectation, n *note) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger.sent(kind, n)
}

// upstreamIsTLS reports that Postgres sees a TLS connection.
func (s *session) upstreamIsTLS() bool {
	_, ok := s.backend.(*tls.Conn)
	return ok
}
