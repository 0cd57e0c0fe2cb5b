package flowstate

import (
	"context"
	"encoding/json"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Update is one request for refreshes of several tables.
type Update struct {
	Cause      string // as the client calls it
	Parameters UpdateParameters
	// Refreshes are in an order in which they can run, at least one.
	Refreshes []UpdateRefresh
	// Error is what is wrong with the request, if it only asks for that.
	Error *pgdiag.Diagnostic
}

// UpdateParameters is what was asked for, as it was.
type UpdateParameters struct {
	FullRefresh          bool              `json:"full_refresh"`
	RefreshSelection     []string          `json:"refresh_selection"`
	FullRefreshSelection []string          `json:"full_refresh_selection"`
	ReplaceWhere         []UpdatePredicate `json:"replace_where_overrides"`
	ValidateOnly         bool              `json:"validate_only"`
}

// UpdatePredicate is the predicate that one flow is refreshed with instead of
// its own.
type UpdatePredicate struct {
	FlowName  string `json:"flow_name"`
	Predicate string `json:"predicate_override"`
}

// UpdateRefresh is one refresh of an update.
type UpdateRefresh struct {
	Request
	After    []int // the places of the refreshes that must complete first
	NotReset bool  // a full refresh was asked for, which the table does not allow
}

// StartUpdate records an update for the session's role, queues its refreshes
// unless it is only to be validated, and returns its id, a UUID. Errors: 55006
// while another update of the API is active, and as [Enqueue].
func StartUpdate(ctx context.Context, s pgsession.Session, u Update) (id string, err error) {
	// A JSON document is built of texts that are valid UTF-8: they came in one.
	parameters, err := json.Marshal(u.Parameters.withoutNil())
	if err != nil {
		return "", err
	}
	type refresh struct {
		Target   uint32            `json:"target"`
		Kind     Kind              `json:"kind"`
		Where    *string           `json:"where,omitempty"`
		Settings map[string]string `json:"settings,omitempty"`
		After    []int             `json:"after"`
		NotReset bool              `json:"not_reset"`
	}
	list := make([]refresh, len(u.Refreshes))
	for i, r := range u.Refreshes {
		list[i] = refresh{Target: r.Target, Kind: r.Kind, After: append([]int{}, r.After...), NotReset: r.NotReset}
		if r.Kind == KindOverride {
			list[i].Where, list[i].Settings = &r.Where, r.Settings
		}
	}
	refreshes, err := json.Marshal(list)
	if err != nil {
		return "", err
	}
	q := newRequest("start_update").text("cause", u.Cause).json("parameters", parameters).json("refreshes", refreshes)
	if u.Error != nil {
		q.text("error", u.Error.Message).text("error_code", u.Error.Code)
	}
	row, err := q.send(ctx, s, "id")
	return row["id"].Text, err
}

// withoutNil has empty lists written as such.
func (p UpdateParameters) withoutNil() UpdateParameters {
	p.RefreshSelection = append([]string{}, p.RefreshSelection...)
	p.FullRefreshSelection = append([]string{}, p.FullRefreshSelection...)
	p.ReplaceWhere = append([]UpdatePredicate{}, p.ReplaceWhere...)
	return p
}

// SettleUpdate ends an update of several refreshes if they have all ended. It
// does nothing for another.
func SettleUpdate(ctx context.Context, s pgsession.Session, id string) error {
	_, err := newRequest("settle_update").text("id", id).send(ctx, s)
	return err
}
