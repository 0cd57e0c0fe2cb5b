package flowstate

import (
	"context"
	_ "embed" // verify.sql
	"encoding/json"
	"fmt"

	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Refreshed is a flow as its last refresh left it, and what has happened since.
type Refreshed struct {
	Target    uint32
	Name      rewrite.Name // of the target, with its schema
	View      string       // the view with the query, as SQL; "" when it was dropped
	ViewOwner string
	Settings  map[string]string // the session settings that the flow's text was written under
	Never     bool              // there was no refresh of the flow's own window
	Window    string            // the predicate, as the last refresh resolved it

	Redefined bool            // the flow, or what it reads, has another definition since
	Moved     bool            // the database was restored from a dump since the last refresh, or upgraded
	Proof     json.RawMessage // [StoredProof].Detail, nil if there is none for the definitions of now
	Changed   []string        // the sources that have changed since, with their schemas
	Untracked []string        // the sources of which that is not known, each with the reason why
}

//go:embed verify.sql
var refreshedSQL string

// RefreshedFlows returns the flows of the tables that are named as SQL names
// them, or all. A name without a schema is that of every table so called. The
// session is that of the role that owns schema rwproxy; nothing is written. A
// name that is not SQL's gets 22023.
func RefreshedFlows(ctx context.Context, s pgsession.Session, names []string) ([]Refreshed, error) {
	return refreshed(ctx, s, names, nil)
}

// RefreshedFlow is RefreshedFlows for the flow of one table, nil if there is
// none.
func RefreshedFlow(ctx context.Context, s pgsession.Session, target uint32) (*Refreshed, error) {
	flows, err := refreshed(ctx, s, nil, target)
	if err != nil || len(flows) == 0 {
		return nil, err
	}
	return &flows[0], nil
}

func refreshed(ctx context.Context, s pgsession.Session, names []string, target any) ([]Refreshed, error) {
	rows, err := s.Query(ctx, refreshedSQL, names, target)
	if err != nil {
		return nil, err
	}
	flows := make([]Refreshed, len(rows))
	for i, r := range rows {
		f := Refreshed{
			Target:    uint32(integer(r[0])),
			Name:      rewrite.Name{Schema: r[1].Text, Table: r[2].Text},
			View:      r[3].Text,
			ViewOwner: r[4].Text,
			Never:     r[6].Text != "t",
			Window:    r[7].Text,
			Redefined: r[8].Text == "t",
			Moved:     r[9].Text == "t",
		}
		if !r[10].Null {
			f.Proof = json.RawMessage(r[10].Text)
		}
		for i, into := range map[int]any{5: &f.Settings, 11: &f.Changed, 12: &f.Untracked} {
			if err := json.Unmarshal([]byte(r[i].Text), into); err != nil {
				return nil, fmt.Errorf("what is stored of a flow: %w", err)
			}
		}
		flows[i] = f
	}
	return flows, nil
}
