package cli

import (
	"context"

	"github.com/rwproxy/rwproxy/internal/refresh"
	"github.com/rwproxy/rwproxy/rewrite"
	"github.com/rwproxy/rwproxy/server"
)

// handler is the refresh engine as the server sees it. It is what keeps the
// two from knowing each other.
type handler struct{ engine *refresh.Engine }

// Run implements server.Handler.
func (h handler) Run(ctx context.Context, client server.Client, statement rewrite.Statement) (server.Outcome, error) {
	result, err := h.engine.Run(ctx, client, statement)
	return server.Outcome(result), err
}

// Prepare implements server.Handler.
func (h handler) Prepare(ctx context.Context, client server.Client, statement rewrite.Statement, declared []string) ([]uint32, error) {
	return h.engine.Prepare(ctx, client, statement, declared)
}
