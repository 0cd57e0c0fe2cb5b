package server

import (
	"context"
	"time"

	"github.com/jackc/pgproto3/v2"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// failingText is what Postgres is given so that its transaction fails where a
// statement of ours did. It names its sender in the server's log.
const failingText = "refused_by_rwproxy"

// run runs one statement of ours. The second result is what the client is to
// be told, nil on success; the third is the end of the session.
func (s *session) run(statement rewrite.Statement, joined bool) (Outcome, *pgdiag.Diagnostic, error) {
	started := time.Now()
	var outcome Outcome
	refusal, err := s.handle(joined, func(c *injector) (err error) {
		outcome, err = s.server.config.Handler.Run(s.ctx, c, statement)
		return err
	})
	s.report(statement, time.Since(started), refusal)
	return outcome, refusal, err
}

// handle has the handler work on the session's connection. The first result is
// what the client is to be told, nil on success; the second is the end of the
// session.
func (s *session) handle(joined bool, work func(*injector) error) (*pgdiag.Diagnostic, error) {
	s.mu.Lock()
	s.running = true
	s.mu.Unlock()
	c := &injector{session: s, joined: joined}
	stop := s.watch()
	err := work(c)
	if !joined && s.hasOpenTransaction() {
		if rollbackErr := s.rollBack(); err == nil {
			err = rollbackErr
		}
	}
	stop()

	s.mu.Lock()
	lost := s.lost || s.farewell
	s.mu.Unlock()
	var refusal *pgdiag.Diagnostic
	if err != nil {
		refusal = diagnose(err)
	}
	if lost || s.ctx.Err() != nil {
		return refusal, errBackendLost
	}
	s.mu.Lock()
	s.running = false
	s.mu.Unlock()
	return refusal, nil
}

// hasOpenTransaction reports that a handler which failed left its transaction
// open.
func (s *session) hasOpenTransaction() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status != statusIdle && !s.lost
}

// rollBack ends a transaction block of ours, whether or not it has failed.
func (s *session) rollBack() error {
	c := &injector{session: s}
	if _, err := s.inject(step{owesSync, &pgproto3.Sync{}}); err != nil {
		return err
	}
	if _, err := c.Exec(context.Background(), "rollback"); err != nil {
		return err
	}
	return nil
}

// report writes the one log record and metric of a statement of ours.
func (s *session) report(statement rewrite.Statement, took time.Duration, refusal *pgdiag.Diagnostic) {
	level, code := zapcore.InfoLevel, ""
	if refusal != nil {
		level, code = zapcore.ErrorLevel, refusal.Code
	}
	s.server.config.Metrics.StatementRun(statement.Tag(), took, code)
	fields := []zap.Field{zap.String(keyTag, statement.Tag()), zap.Duration(keyDuration, took)}
	if refusal != nil {
		fields = append(fields, zap.String(keySQLState, code), zap.String(keyMessage, refusal.Message))
	}
	s.log.Log(level, "statement run", fields...)
}

// fail makes Postgres's transaction or pipeline fail here, with d as its
// error: Postgres is given a syntax error, and its report is replaced.
func (s *session) fail(d *pgdiag.Diagnostic) error {
	s.owe(owesParse, &note{replace: d})
	// A name, so that the client's unnamed statement is left alone; a failed
	// Parse leaves none behind.
	if err := s.sendBackend(&pgproto3.Parse{Name: injectedName, Query: failingText}); err != nil {
		return err
	}
	return s.settle()
}

// failJoined reports that a statement failed inside the client's transaction.
func (s *session) failJoined(d *pgdiag.Diagnostic) error {
	s.mu.Lock()
	skipping := s.ledger.skipping
	s.mu.Unlock()
	if skipping {
		// Postgres has failed already; its own report was the handler's.
		return s.sendClient(d.ErrorResponse())
	}
	return s.fail(d)
}
