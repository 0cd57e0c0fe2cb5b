package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// defaultSocketPort names the Unix socket when Config.Listen is a folder.
const defaultSocketPort = 6432

// defaultConnectTimeout is used when Config.ConnectTimeout is 0.
const defaultConnectTimeout = 10 * time.Second

// Log keys.
const (
	keyDatabase = "database"
	keyDuration = "duration"
	keyMessage  = "message"
	keyRemote   = "remote"
	keySQLState = "sqlstate"
	keyTag      = "tag"
	keyUser     = "user"
)

// defaultAuthenticationTimeout is Postgres's authentication_timeout.
const defaultAuthenticationTimeout = time.Minute

// Config is what a Server needs to know. Only Listen and Upstream have no
// default.
type Config struct {
	// Listen is a TCP address, or a folder for a Unix socket named
	// .s.PGSQL.6432, or the path of a socket so named with another port.
	Listen string
	// Upstream is the Postgres that sessions go to.
	Upstream Upstream
	// TLS is offered to clients; without it they are told that there is none.
	TLS *tls.Config
	// ConnectTimeout bounds connecting to Postgres for one session.
	ConnectTimeout time.Duration
	// AuthenticationTimeout bounds what a client may take to send its startup
	// packet, TLS included, and to prove its password when the proxy asks for
	// it. Where Postgres asks, its authentication_timeout counts.
	AuthenticationTimeout time.Duration
	// MaxConnections is how many sessions there may be at a time, 0 for any
	// number. One more gets a FATAL 53300.
	MaxConnections int
	// ProxyProtocol says that a PROXY protocol header comes first on every
	// connection. The address in it is what the log shows, and nothing else.
	ProxyProtocol bool
	// Verifier returns what Postgres keeps of a role's password, "" if there is
	// no such role or it has none. Clients with TLS need it to log in by SCRAM
	// to a Postgres that is reached over TLS too, and to bind that login to the
	// proxy's certificate; without it, or after an error, SCRAM is relayed.
	Verifier func(ctx context.Context, role string) (string, error)
	// Handler runs the statements that Postgres does not know; without it
	// everything passes through.
	Handler Handler
	Logger  *zap.Logger
	Metrics Metrics

	goroutinesOnly bool // for tests: what other systems than Linux have
}

// Server accepts clients and keeps one connection to Postgres for each. It is
// started once and may be stopped any number of times.
type Server struct {
	config   Config
	listener net.Listener

	// ctx ends when the sessions that are left are to be cut.
	ctx      context.Context
	cut      context.CancelFunc
	draining atomic.Bool
	relaying sync.Once      // guards the warning that SCRAM has to be relayed
	admitted atomic.Int64   // sessions and those that are to become one
	running  sync.WaitGroup // the accept loop, every connection and session
	loops    *loops         // nil where there are none
	shards   shards         // of the sessions that are in none

	maxSilent int // connections that have not said what they want

	mu       sync.Mutex // guards what follows
	sessions map[*session]struct{}
	silent   map[net.Conn]struct{} // connections that have not said what they want
	waiting  map[net.Conn]struct{} // connections in front of their session
	closed   bool
}

// New returns a server that is not yet listening.
func New(config Config) (*Server, error) {
	if err := config.Upstream.validate(); err != nil {
		return nil, err
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = defaultConnectTimeout
	}
	if config.AuthenticationTimeout == 0 {
		config.AuthenticationTimeout = defaultAuthenticationTimeout
	}
	if config.Logger == nil {
		config.Logger = zap.NewNop()
	}
	if config.Metrics == nil {
		config.Metrics = noMetrics{}
	}
	if config.TLS != nil {
		config.TLS = clientConfig(config.TLS)
	}
	s := &Server{
		config:   config,
		sessions: map[*session]struct{}{},
		silent:   map[net.Conn]struct{}{},
		waiting:  map[net.Conn]struct{}{},

		maxSilent: maxSilent(),
	}
	s.ctx, s.cut = context.WithCancel(context.Background())
	return s, nil
}

// Start listens and returns; ctx bounds only that. Connections are served
// until Stop.
func (s *Server) Start(ctx context.Context) error {
	listener, err := listen(ctx, s.config.Listen)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		listener.Close()
		return net.ErrClosed
	}
	if !s.config.goroutinesOnly {
		if s.loops, err = startLoops(s.config.Logger); err != nil {
			// Sessions cost more without, but are the same.
			s.config.Logger.Warn("no event loop", zap.Error(err))
		}
	}
	s.listener = listener
	s.running.Go(s.accept)
	return nil
}

// Addr is the address that the server listens on, nil before Start.
func (s *Server) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Stop ends the server: no connection is accepted any more, idle sessions end
// with 57P01 at once, the others when they become idle. When ctx ends, those
// that are left are cut and ctx's error is returned. Nothing of the server is
// left running when Stop returns.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.draining.Store(true)
	s.closed = true
	if s.listener != nil {
		s.listener.Close()
	}
	for conn := range s.silent {
		conn.Close()
	}
	for conn := range s.waiting {
		conn.Close()
	}
	s.mu.Unlock()
	s.loops.stop()
	s.mu.Lock()
	for session := range s.sessions {
		session.mu.Lock()
		session.tapClient()
		session.mu.Unlock()
	}
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		s.cut()
		<-done
	}
	s.cut()
	return err
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors or a connection reset in the queue: both pass.
			s.config.Logger.Warn("could not accept a connection", zap.Error(err))
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.ctx.Done():
				return
			}
			continue
		}
		s.running.Go(func() { s.serve(conn) })
	}
}

// serve takes one connection from its first byte to its last. Whatever a
// client does, it ends its own session and no other.
func (s *Server) serve(conn net.Conn) {
	defer conn.Close()
	defer recoverTo(s.config.Logger)
	if !s.welcome(conn) {
		return
	}
	defer s.forget(conn)
	if err := conn.SetDeadline(time.Now().Add(s.config.AuthenticationTimeout)); err != nil {
		return
	}
	remote, err := s.remote(conn)
	if err != nil {
		s.config.Logger.Debug("connection refused", zap.Stringer(keyRemote, conn.RemoteAddr()), zap.Error(err))
		return
	}
	s.serveClient(conn, s.config.Logger.WithLazy(zap.String(keyRemote, remote)))
}

// serveClient takes a connection from the first byte of its client.
func (s *Server) serveClient(conn net.Conn, log *zap.Logger) {
	defer recoverTo(log)
	client, first, err := negotiate(conn, s.config.TLS)
	switch {
	case err != nil:
		log.Debug("connection refused", zap.Error(err))
	case !s.wait(conn):
	case first.cancel:
		ctx, cancel := context.WithTimeout(s.ctx, s.config.ConnectTimeout)
		defer cancel()
		if err := s.config.Upstream.forwardCancel(ctx, first.raw); err != nil {
			log.Warn("could not forward a cancel request", zap.Error(err))
		}
	default:
		s.serveSession(conn, client, first, log)
	}
}

func (s *Server) serveSession(conn, client net.Conn, first startup, log *zap.Logger) {
	log = log.WithLazy(zap.String(keyUser, first.user), zap.String(keyDatabase, first.database))
	n := s.admitted.Add(1)
	admitted := false
	defer func() {
		if !admitted {
			s.admitted.Add(-1)
		}
	}()
	if s.config.MaxConnections > 0 && n > int64(s.config.MaxConnections) {
		log.Warn("connection refused: too many")
		refuse(client, pgdiag.New("53300", "sorry, too many clients already"))
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.config.ConnectTimeout)
	backend, err := s.config.Upstream.dial(ctx)
	cancel()
	if err != nil {
		log.Error("could not connect to Postgres", zap.Error(err))
		refuse(client, err)
		return
	}
	if secured, ok := client.(clientTLS); ok {
		if !s.login(secured, backend, &first, log) {
			backend.Close()
			return
		}
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		backend.Close()
		return
	}
	session := newSession(s, client, backend, first, log)
	if !s.admit(conn, session) {
		backend.Close()
		return
	}
	admitted = true
	session.serve(first)
}

// refuse tells a client why it gets no session.
func refuse(client net.Conn, err error) {
	var d *pgdiag.Diagnostic
	if !errors.As(err, &d) {
		return
	}
	d.Severity = "FATAL"
	message, err := encode(nil, d.ErrorResponse())
	if err != nil {
		return
	}
	// The connection is closed next, whether or not the client still listens.
	_, _ = client.Write(message)
}

// remote returns the address of a connection's client, for the log.
func (s *Server) remote(conn net.Conn) (string, error) {
	if s.config.ProxyProtocol {
		source, err := readProxyHeader(conn)
		if err != nil || source.IsValid() {
			return source.String(), err
		}
	}
	return conn.RemoteAddr().String(), nil
}

// welcome registers a connection that has not said anything yet. When there
// are too many of those, any of them has to go: clients that stay silent must
// not keep out the others.
func (s *Server) welcome(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	if len(s.silent) >= s.maxSilent {
		for other := range s.silent {
			other.Close()
			delete(s.silent, other)
			break
		}
	}
	s.silent[conn] = struct{}{}
	return true
}

// wait registers a connection that is in front of its session.
func (s *Server) wait(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.silent, conn)
	if s.closed {
		return false
	}
	s.waiting[conn] = struct{}{}
	return true
}

func (s *Server) forget(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.silent, conn)
	delete(s.waiting, conn)
}

// admit ends the wait of a connection and registers its session. It reports
// whether the session may go on.
func (s *Server) admit(conn net.Conn, session *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, conn)
	if s.closed {
		return false
	}
	s.sessions[session] = struct{}{}
	s.running.Add(1)
	s.config.Metrics.SessionStarted()
	session.log.Debug("session started")
	return true
}

// leave forgets a session that was admitted.
func (s *Server) leave(session *session) {
	s.mu.Lock()
	delete(s.sessions, session)
	s.mu.Unlock()
	session.log.Debug("session ended")
	s.config.Metrics.SessionEnded()
	s.admitted.Add(-1)
	s.running.Done()
}

// recoverTo ends the panic of one session's goroutine.
func recoverTo(log *zap.Logger) {
	if cause := recover(); cause != nil {
		logPanic(log, cause)
	}
}

func logPanic(log *zap.Logger, cause any) {
	log.Error("session ended by a panic", zap.Any("panic", cause), zap.ByteString("stack", debug.Stack()))
}
