package server

import (
	"context"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// injectedName names the statement and portal of an injected statement. They
// are named so that the client's unnamed ones survive.
const injectedName = "rwproxy injected"

var flushMessage = []byte{msgFlush, 0, 0, 0, 4}

// injector runs a handler's statements on the session's own connection to
// Postgres. It is used by the client's goroutine only, while nothing else is
// owed by the backend.
type injector struct {
	session *session
	joined  bool
	// dead is the error after which a joined transaction takes nothing more.
	dead error
}

var _ Client = (*injector)(nil)

// Joined implements Client.
func (c *injector) Joined() bool { return c.joined }

// User implements Client.
func (c *injector) User() string { return c.session.user }

// Database implements Client.
func (c *injector) Database() string { return c.session.database }

// Notice implements Client.
func (c *injector) Notice(d *pgdiag.Diagnostic) {
	// A client that is gone is found out by the watcher.
	_ = c.session.sendClient(d.NoticeResponse())
}

// Exec implements pgsession.Session.
func (c *injector) Exec(ctx context.Context, sql string, args ...any) (int64, error) {
	r, err := c.execute(ctx, sql, args)
	if err != nil {
		return 0, err
	}
	return r.count, nil
}

// Query implements pgsession.Session.
func (c *injector) Query(ctx context.Context, sql string, args ...any) ([]pgsession.Row, error) {
	r, err := c.execute(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return r.rows, nil
}

// Describe implements pgsession.Session.
func (c *injector) Describe(ctx context.Context, sql string) (pgsession.Description, error) {
	r, err := c.round(ctx, &pgproto3.Parse{Query: sql}, step{owesDescribe, &pgproto3.Describe{ObjectType: 'S', Name: injectedName}})
	if err != nil {
		return pgsession.Description{}, err
	}
	return pgsession.Description{Parameters: r.parameters, Columns: r.columns}, nil
}

func (c *injector) execute(ctx context.Context, sql string, args []any) (*result, error) {
	parameters, err := encodeArguments(args)
	if err != nil {
		return nil, err
	}
	return c.round(ctx, &pgproto3.Parse{Query: sql}, bindStep(nil, parameters), executeStep, closePortal)
}

func bindStep(formats []int16, parameters [][]byte) step {
	return step{owesBind, &pgproto3.Bind{
		DestinationPortal:    injectedName,
		PreparedStatement:    injectedName,
		ParameterFormatCodes: formats,
		Parameters:           parameters,
	}}
}

// step is a message and what the backend owes for it.
type step struct {
	owes    expectation
	message pgproto3.Message
}

var (
	executeStep    = step{owesExecute, &pgproto3.Execute{Portal: injectedName}}
	closeStatement = step{owesClose, &pgproto3.Close{ObjectType: 'S', Name: injectedName}}
	closePortal    = step{owesClose, &pgproto3.Close{ObjectType: 'P', Name: injectedName}}
)

// round parses a statement, takes the given steps with it, closes it and waits
// for the answers. In a transaction of the client's it ends with Flush, so
// that it joins the implicit transaction of a pipeline instead of ending it.
func (c *injector) round(ctx context.Context, parse *pgproto3.Parse, steps ...step) (*result, error) {
	if ctx.Err() != nil {
		return nil, c.session.loss()
	}
	if c.dead != nil {
		return nil, c.dead
	}
	if strings.IndexByte(parse.Query, 0) >= 0 {
		return nil, pgdiag.New("22021", "invalid byte sequence for encoding: 0x00")
	}
	all := make([]step, 0, len(steps)+5)
	if c.session.leftover {
		all = append(all, closePortal, closeStatement)
	}
	parse.Name = injectedName
	all = append(all, step{owesParse, parse})
	all = append(all, steps...)
	all = append(all, closeStatement)
	if !c.joined {
		all = append(all, step{owesSync, &pgproto3.Sync{}})
	}
	r, err := c.session.inject(all...)
	if err != nil {
		c.dead = c.session.loss()
		if r.failed != nil {
			c.dead = r.failed
		}
		return nil, c.dead
	}
	c.session.leftover = r.failed != nil
	switch {
	case r.failed != nil:
		if c.joined {
			c.dead = r.failed
		}
		return nil, r.failed
	case r.malformed != nil:
		return nil, r.malformed
	}
	return r, nil
}

// loss is why a session has no connection to Postgres any more.
func (s *session) loss() *pgdiag.Diagnostic {
	if s.server.ctx.Err() != nil {
		return pgdiag.New("57P01", adminShutdown)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.vanished {
		return pgdiag.New("08006", "connection to client lost") // Postgres's words
	}
	return pgdiag.New("08006", errBackendLost.Error())
}

// inject sends messages of ours and waits for their answers, which the client
// does not see. An error means that the backend is lost; what Postgres said is
// in the result, which is never nil.
func (s *session) inject(steps ...step) (*result, error) {
	r := &result{}
	n := &note{sink: r}
	s.mu.Lock()
	s.injecting = true
	for _, step := range steps {
		s.ledger.sent(step.owes, n)
	}
	s.mu.Unlock()
	err := s.exchange(steps)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.lost = true
		return r, errBackendLost
	}
	s.injecting = false
	return r, nil
}

// exchange sends messages and waits until nothing is owed.
func (s *session) exchange(steps []step) error {
	for _, step := range steps {
		if err := s.sendBackend(step.message); err != nil {
			return err
		}
	}
	if _, err := s.up.Write(flushMessage); err != nil {
		return err
	}
	if err := s.up.Flush(); err != nil {
		return err
	}
	if err := s.await(func() bool { return s.ledger.settled() || s.ledger.copyIn }); err != nil {
		return err
	}
	if s.isCopyingIn() {
		// A handler has no data to copy, and nothing sent now would be read as
		// what it is.
		s.backend.Close()
		return errBackendLost
	}
	return nil
}

// closeLeftover makes Postgres forget the injected statement and portal that
// failed before their Close was reached.
func (s *session) closeLeftover() error {
	if !s.leftover {
		return nil
	}
	s.leftover = false
	n := &note{sink: &result{}}
	s.owe(owesClose, n)
	s.owe(owesClose, n)
	if err := s.sendBackend(closePortal.message, closeStatement.message); err != nil {
		return err
	}
	_, err := s.up.Write(flushMessage)
	return err
}

// result collects the answers to one injected statement. The backend's
// goroutine writes it, and the client's reads it once the ledger is settled.
type result struct {
	count      int64
	rows       []pgsession.Row
	columns    []pgsession.Column
	parameters []uint32
	failed     *pgdiag.Diagnostic // what Postgres reported
	malformed  error              // what could not be read
}

func (r *result) take(typ byte, content []byte) {
	var err error
	switch typ {
	case msgDataRow:
		var row pgsession.Row
		if row, err = parseRow(content); err == nil {
			r.rows = append(r.rows, row)
		}
	case msgRowDescription:
		r.columns, err = parseColumns(content)
	case msgParameterDescription:
		r.parameters, err = parseParameters(content)
	case msgCommandComplete:
		r.count = parseRowCount(content)
	}
	if err != nil && r.malformed == nil {
		r.malformed = err
	}
}
