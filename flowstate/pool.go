package flowstate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

const (
	// poolSize is how many service connections one database gets.
	poolSize = 2
	// idleTimeout is how long a connection is kept for the next use. It is
	// short: an idle connection keeps its database from being dropped.
	idleTimeout = 5 * time.Second
	// closeTimeout bounds a polite goodbye to the server.
	closeTimeout = time.Second
)

// pool is the service connections to one database.
type pool struct {
	config *pgx.ConnConfig
	slots  chan struct{} // one token for each connection in use

	mu     sync.Mutex
	closed bool
	idle   []*idleConn
}

type idleConn struct {
	conn  *pgx.Conn
	timer *time.Timer // closes conn
}

func newPool(config *pgx.ConnConfig) *pool {
	return &pool{config: config, slots: make(chan struct{}, poolSize)}
}

func (p *pool) do(ctx context.Context, do func(*pgx.Conn) error) error {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.slots }()
	conn, err := p.connection(ctx)
	if err != nil {
		return p.unreachable(err)
	}
	reusable := false
	defer func() {
		if !reusable || !p.putIdle(conn) {
			closeConn(conn)
		}
	}()
	err = do(conn)
	const idle = 'I' // no transaction is open
	reusable = err == nil && !conn.IsClosed() && conn.PgConn().TxStatus() == idle
	return err
}

// unreachable tells a client that it is not its own connection that failed.
func (p *pool) unreachable(err error) error {
	if err = pgsession.FromPgxError(err); pgdiag.Code(err) == "3D000" {
		return err // it has been dropped, or has another name
	}
	d := pgdiag.New("08001", fmt.Sprintf("rwproxy's service role %q could not connect to database %q", p.config.User, p.config.Database)).
		WithHint("Check the user and password of --upstream, and that this role may connect to the database.")
	var refused *pgdiag.Diagnostic
	if errors.As(err, &refused) {
		return d.WithDetail(refused.Message + ".")
	}
	return d
}

// connection returns an idle connection that still works, or a new one.
func (p *pool) connection(ctx context.Context) (*pgx.Conn, error) {
	for {
		conn := p.takeIdle()
		if conn == nil {
			return pgx.ConnectConfig(ctx, p.config)
		}
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		closeConn(conn)
	}
}

// takeIdle returns nil if there is no idle connection.
func (p *pool) takeIdle() *pgx.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		last := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if last.timer.Stop() {
			return last.conn
		} // else its timer is closing it
	}
	return nil
}

// putIdle reports whether it keeps the connection.
func (p *pool) putIdle(conn *pgx.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	c := &idleConn{conn: conn}
	c.timer = time.AfterFunc(idleTimeout, func() { p.expire(c) })
	p.idle = append(p.idle, c)
	return true
}

// connections returns how many connections are in use, and how many are kept.
func (p *pool) connections() (busy, idle int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.slots), len(p.idle)
}

func (p *pool) expire(c *idleConn) {
	p.mu.Lock()
	for i := range p.idle {
		if p.idle[i] == c {
			p.idle = append(p.idle[:i], p.idle[i+1:]...)
			break
		}
	}
	p.mu.Unlock()
	closeConn(c.conn)
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		if c.timer.Stop() {
			closeConn(c.conn)
		}
	}
	p.idle = nil
}

func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	_ = conn.Close(ctx) // it is gone either way
}
