package refresh

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Client is the client that a statement runs for: its own session on Postgres,
// with its own rights. server.Client has its methods.
type Client interface {
	pgsession.Session
	// Joined reports that the statement runs inside a transaction of the
	// client's, which the engine must neither begin nor end.
	Joined() bool
	// Notice sends d to the client at once. It may be called while a statement
	// of the session runs.
	Notice(d *pgdiag.Diagnostic)
	// User and Database are those of the client's startup message.
	User() string
	Database() string
}

// Metrics counts finished refreshes.
type Metrics interface {
	// Refreshed is called once for each refresh that has ended.
	Refreshed(flowstate.Ended)
}

// Engine runs rwproxy's statements. It keeps no state of its own: any number
// of engines may serve one database.
type Engine struct {
	// StatusURL is where the state of an update can be read, "" if nowhere. It is
	// set before the engine is used, or nil.
	StatusURL func(database, updateID string) string

	service *flowstate.Service
	logger  *zap.Logger
	metrics Metrics
}

// New returns an engine that installs schemas and records failures through
// service.
func New(service *flowstate.Service, logger *zap.Logger, metrics Metrics) *Engine {
	return &Engine{service: service, logger: logger, metrics: metrics}
}

// Result is what a client gets for its statement.
type Result struct {
	// Forward says that Postgres is to run the statement's Shadow next; its
	// answer is then the client's.
	Forward bool
	Tag     string             // the command tag
	Columns []pgsession.Column // nil for a statement that returns no rows
	Rows    []pgsession.Row
}

// Run runs one statement for a client.
func (e *Engine) Run(ctx context.Context, c Client, statement rewrite.Statement) (Result, error) {
	result := Result{Tag: statement.Tag()}
	var err error
	switch st := statement.(type) {
	case *rewrite.CreateStreamingTable:
		err = e.createStreamingTable(ctx, c, st)
	case *rewrite.CreateFlow:
		err = e.createFlow(ctx, c, st)
	case *rewrite.Refresh:
		if st.Async {
			err = e.enqueue(ctx, c, st, &result)
		} else {
			err = e.refresh(ctx, c, st)
		}
		err = readOnly(err)
	case *rewrite.ExplainRefresh:
		err = e.explainRefresh(ctx, c, st, &result)
	case *rewrite.Insert:
		result.Tag, err = e.insert(ctx, c, st)
	case *rewrite.AlterStreamingTable:
		err = e.alterStreamingTable(ctx, c, st)
	case *rewrite.Describe:
		err = e.describe(ctx, c, st, &result)
	case *rewrite.ShowCreateTable:
		err = e.showCreateTable(ctx, c, st, &result)
	case *rewrite.ShowProperties:
		err = e.showProperties(ctx, c, st, &result)
	case *rewrite.DescribeHistory:
		result.Forward = true
		err = e.describeHistory(ctx, c, st)
	case *rewrite.EventLog:
		result.Forward = true
		_, err = e.eventLog(ctx, c, st, nil)
	case *rewrite.Refused:
		return result, st.Err
	case *rewrite.Drop:
		result.Forward = true
		err = e.drop(ctx, c, st)
	default:
		err = fmt.Errorf("no such statement: %T", statement)
	}
	return result, err
}

// collectGarbage has what no flow needs any more removed, in a while.
func (e *Engine) collectGarbage(database string) {
	e.service.CollectGarbageSoon(database, func(err error) {
		e.logger.Warn("garbage not collected", zap.String(keyDatabase, database), zap.Error(err))
	})
}

// inTransaction runs do in a transaction: the client's if it is in one, else
// one of its own.
func inTransaction(ctx context.Context, c Client, do func() error) error {
	if c.Joined() {
		return do()
	}
	return transaction(ctx, c, "begin isolation level read committed", do)
}

// transaction runs do in a transaction of its own, which commits when do
// succeeds.
func transaction(ctx context.Context, s pgsession.Session, begin string, do func() error) error {
	if _, err := s.Exec(ctx, begin); err != nil {
		return err
	}
	if err := do(); err != nil {
		// The connection may be what failed; Postgres then rolls back by itself.
		_, _ = s.Exec(ctx, "rollback")
		return err
	}
	_, err := s.Exec(ctx, "commit") // one that fails has rolled back
	return err
}
