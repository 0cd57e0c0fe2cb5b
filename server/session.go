package server

import (
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
	// errParked ends a goroutine that leaves its work to the loop.
	errParked = errors.New("the session is at rest")
)

// session is one client and its own connection to Postgres. Two goroutines
// serve it: the client's reads the client and is the only one that writes to
// the backend; the backend's reads the backend at all times and writes to the
// client. When a statement of ours runs, the client's goroutine runs it.
//
// Where there is a loop, it does the work of both while nothing has to be
// waited for. What is said of either goroutine's fields is then true of it.
//
// Locks are taken in the order out, mu, and none is held while waiting for the
// backend's next message.
type session struct {
	server  *Server
	log     *zap.Logger
	client  net.Conn        // nil in the loop; set under mu
	backend net.Conn        // likewise
	polled  [2]polled       // the same connections in the loop
	inLoop  bool            // set before the loop or the goroutines start
	ctx     context.Context // ends with either connection
	cancel  context.CancelFunc

	user, database string
	unscanned      bool // a replication connection: frames are all that is looked at

	// Of the client's goroutine (and of the watcher that it starts and joins).
	in       *frameReader
	up       *sender // to the backend
	batch    batch
	swallow  bool // a statement of ours failed: skip to the client's next Sync
	doubtful bool // a Sync was sent among the data of a COPY
	leftover bool // the backend may still know the injected statement and portal

	// Of the backend's goroutine.
	from    *frameReader
	inFrame bool // out is held

	// out is the client's connection. It is held for a whole message.
	out struct {
		sync.Mutex
		w    *sender
		held []byte // a CommandComplete to be sent with the next ReadyForQuery
	}

	mu          sync.Mutex // guards what follows
	changed     *sync.Cond // the ledger or the fields below changed
	ledger      ledger
	status      byte
	unsure      bool   // the block that status tells of may be a pipeline's, or have ended
	pipelining  bool   // the open transaction holds what an Execute has done
	planFailed  bool   // the last error was one of a Bind
	cancelKey   []byte // of BackendKeyData: process ID and secret
	backslashes bool   // standard_conforming_strings is off
	unsafeText  bool   // client_encoding has characters that end in an ASCII byte
	prepared    map[string]*prepared
	portals     map[string]*portal
	lost        bool     // the backend is gone
	vanished    bool     // the client went first, while it waited for an answer
	farewell    bool     // the client was told why by a FATAL
	running     bool     // a handler runs: the client's goroutine ends the session
	pumping     bool     // the client's goroutine passes COPY data on
	injecting   bool     // answers go to an injected statement
	inScript    bool     // a Query runs statement by statement
	extraReady  int      // ReadyForQuery of Syncs in it, for its end
	recounting  *recount // after a COPY that failed with a Sync among its data
	settings    settings // what the client knows of those that Postgres reports
	ready       bool     // ReadyForQuery has come since the goroutines began
	reading     bool     // the client's goroutine waits for the client's next message
	parked      bool     // the backend's goroutine has ended, the client's is to do so
}

// batch is what the client has sent since its last Sync or Query.
type batch struct {
	open     bool // anything in the extended protocol
	executed bool // an Execute
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
		up:        &sender{conn: backend},
		ledger:    newLedger(),
		prepared:  map[string]*prepared{},
		portals:   map[string]*portal{},
	}
	s.ctx, s.cancel = context.WithCancel(server.ctx)
	s.changed = sync.NewCond(&s.mu)
	s.countIn(server.shards.pick())
	s.out.w = &sender{conn: client}
	s.in.beforeRead, s.in.afterRead = s.beforeClientRead, s.afterClientRead
	s.from.beforeRead = s.beforeBackendRead
	return s
}

// countIn has what the session reads counted.
func (s *session) countIn(t *traffic) {
	s.in.count, s.from.count = &t.clients, &t.backends
}

// serve starts the session, and returns when it has ended or moved to the
// loop.
func (s *session) serve(first startup) {
	s.ledger.sent(owesStartup, nil)
	_, _ = s.up.Write(first.raw) // which is not sent yet
	// A backend that is gone already is found out by who relays.
	if s.up.Flush() == nil && s.server.mayPoll(s) && s.moveToLoop() {
		return
	}
	s.relay()
}

// relay relays until both sides are gone or the loop has taken the session.
func (s *session) relay() {
	ended := true
	defer func() {
		if ended {
			s.end()
		}
	}()
	for s.relayInGoroutines() {
		if s.moveToLoop() {
			ended = false
			return
		}
	}
}

// relayInGoroutines relays until both sides are gone, or until the session is
// at rest.
func (s *session) relayInGoroutines() (resting bool) {
	stopCut := context.AfterFunc(s.server.ctx, s.cutOff)
	defer stopCut()
	var backend sync.WaitGroup
	backend.Go(func() {
		parked := false
		defer func() {
			if !parked {
				s.backendGone()
			}
		}()
		defer recoverTo(s.log)
		parked = s.relayBackend() == errParked
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
	err := s.relayClient()
	panicked = false
	if err == errParked {
		s.mu.Lock()
		// If it cannot move it stays until the next ReadyForQuery.
		s.parked, s.ready = false, false
		s.mu.Unlock()
		if stopCut() {
			return true
		}
		err = errDraining
	}
	s.clientGone(err)
	return false
}

// park reports that the loop may have the session: no answer is owed, and the
// client's goroutine, which is told to leave, waits for the next message.
func (s *session) park() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.reading || !s.ready || !s.ledger.settled() || s.ledger.skipping || s.lost || !s.server.mayPoll(s) {
		return false
	}
	s.parked = true
	s.tapClient()
	return true
}

// end forgets a session of which both sides are gone.
func (s *session) end() {
	s.cancel()
	for _, conn := range [...]net.Conn{s.client, s.backend} {
		if conn != nil {
			conn.Close()
		}
	}
	s.server.leave(s)
}

// tapClient makes the client's goroutine look again at what has changed; the
// caller holds mu.
func (s *session) tapClient() {
	if s.client != nil {
		interrupt(s.client)
	}
}

// clientGone ends the client's half of the session.
func (s *session) clientGone(err error) {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		// Postgres is told, and decides about what still runs. A message that
		// is only half there is never completed.
		halfClose(s.backend)
		return
	}
	if s.up.failed && !s.isAtWork() {
		// Postgres has closed the connection. What it said last has yet to be
		// read; its end is that of the session.
		return
	}
	switch {
	case errors.Is(err, errMessageLength):
		s.sayFatal("08P01", "invalid message length")
	case errors.Is(err, errDraining):
		s.sayFatal("57P01", adminShutdown)
		s.sendTerminate()
	case errors.Is(err, errBackendLost) && s.isAtWork():
		s.sayFatal("08006", errBackendLost.Error())
	}
	s.client.Close()
	s.backend.Close()
}

// isAtWork reports that a statement of ours runs, or others for its sake: the
// client does not see what Postgres says to that.
func (s *session) isAtWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running || s.inScript
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
	message, err := encode(nil, fatal(code, text))
	if err != nil {
		return
	}
	// The session ends whether or not the client can be told.
	_ = s.client.SetWriteDeadline(time.Now().Add(lastWord))
	s.out.Lock() // so that nothing of Postgres's comes between
	defer s.out.Unlock()
	s.mu.Lock()
	told := s.farewell
	s.farewell = true
	s.mu.Unlock()
	if !told {
		_, _ = s.out.w.Write(message)
		_ = s.out.w.Flush()
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
