package server_test

import (
	"context"
	"errors"

	"github.com/rwproxy/rwproxy/rewrite"
	"github.com/rwproxy/rwproxy/server"
)

// unreachable is the handler of tests in which no statement is ours.
type unreachable struct{}

func (unreachable) Run(context.Context, server.Client, rewrite.Statement) (server.Outcome, error) {
	return server.Outcome{}, errors.New("not a statement of ours")
}

// handlerFunc is a handler that is a function.
type handlerFunc func(context.Context, server.Client, rewrite.Statement) (server.Outcome, error)

func (f handlerFunc) Run(ctx context.Context, c server.Client, s rewrite.Statement) (server.Outcome, error) {
	return f(ctx, c, s)
}
