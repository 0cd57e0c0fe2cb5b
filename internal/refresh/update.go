package refresh

import (
	"context"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// Update is a request for refreshes of several tables, as the pipelines API
// has it.
type Update struct {
	Cause                string // as the client calls it
	FullRefresh          bool   // of all tables
	RefreshSelection     []string
	FullRefreshSelection []string
	Overrides            []Override
	ValidateOnly         bool
}

// Override is the predicate that one flow is refreshed with instead of its own.
type Override struct {
	FlowName  string
	Predicate string
}

// StartUpdate starts an update for a client, and returns its id.
func (e *Engine) StartUpdate(_ context.Context, _ Client, _ Update) (id string, err error) {
	return "", pgdiag.New("0A000", "updates are not supported")
}
