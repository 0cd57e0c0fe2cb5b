package refresh

import (
	"context"
	_ "embed" // verify.sql
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// The outcomes of [Verify].
const (
	VerifiedExact     = "exact"           // the window is what a recompute writes
	VerifiedBehind    = "behind"          // it is not, and the sources or the flow have changed since
	VerifiedDiffers   = "differs"         // it is not, and nothing that the flow reads has changed
	VerifiedUnknown   = "unknown"         // whether it should be cannot be told
	VerifiedNever     = "never refreshed" // there is nothing to compare
	VerifiedViewGone  = "view gone"       // the flow's query was dropped with a source
	VerifiedIsFailing = "failed"          // the comparison failed
)

// Verification is what the window of a flow, as its last refresh resolved it,
// holds beside what a recompute would write.
type Verification struct {
	Table   string `json:"table"` // with its schema, as SQL
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"` // for outcomes that have one, as a clause
	Window  string `json:"window,omitempty"`
	// Missing are rows that the query returns and the table lacks, Extra those
	// that the table has alone: how many, and the first of each.
	Missing     int64    `json:"missing"`
	Extra       int64    `json:"extra"`
	MissingRows []string `json:"missing_rows,omitempty"`
	ExtraRows   []string `json:"extra_rows,omitempty"`
}

// Good reports that nothing is wrong with the window.
func (v Verification) Good() bool {
	return v.Outcome == VerifiedExact || v.Outcome == VerifiedBehind || v.Outcome == VerifiedNever
}

// shownRows is how many rows of each side are shown.
const shownRows = 3

// Verify compares the windows of the flows of the tables that are named, of all
// without names, with a recompute. It writes nothing: each flow is read in a
// read-only transaction of its own, with one snapshot.
//
// The session is that of the role that owns schema rwproxy. The flow's query and
// predicate, which are its author's text, run with the author's rights alone.
// Errors: 42704 for a name that no flow's table has, 22023 for one that is no
// name in SQL.
func Verify(ctx context.Context, s pgsession.Session, names []string) ([]Verification, error) {
	for _, name := range names {
		found, err := flowstate.RefreshedFlows(ctx, s, []string{name})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, pgdiag.New("42704", fmt.Sprintf("there is no streaming table %q with a flow", name)).
				WithHint("rwproxy.flows lists those there are.")
		}
	}
	flows, err := flowstate.RefreshedFlows(ctx, s, names)
	if err != nil {
		return nil, err
	}
	verifications := make([]Verification, 0, len(flows))
	for _, flow := range flows {
		v, err := verify(ctx, s, flow)
		if err != nil {
			return nil, err
		}
		verifications = append(verifications, v)
	}
	return verifications, nil
}

// verify verifies one flow. What fails because of the flow is its outcome.
func verify(ctx context.Context, s pgsession.Session, flow flowstate.Refreshed) (v Verification, err error) {
	v = Verification{Table: flow.Name.SQL(), Outcome: VerifiedViewGone}
	if flow.View == "" {
		return v, nil
	}
	err = asAuthor(ctx, s, flow.ViewOwner, func() error {
		// LOCK TABLE takes no snapshot, what comes next does.
		if _, err := s.Exec(ctx, "lock table "+flow.View+" in access share mode"); err != nil {
			return err
		}
		now, err := flowstate.RefreshedFlow(ctx, s, flow.Target)
		if err != nil || now == nil || now.View != flow.View {
			return err // dropped or replaced meanwhile
		}
		return v.compare(ctx, s, *now)
	})
	if pgdiag.Code(err) != "" {
		v.Outcome, v.Reason = VerifiedIsFailing, err.Error()
		return v, nil
	}
	return v, err
}

//go:embed verify.sql
var verifySQL string

// asAuthor runs do in a read-only transaction, in which the function
// pg_temp.rwproxy_verify runs a query with the rights of a role and no others.
// SET ROLE would not do: a function in the query could set it back, which
// Postgres refuses inside a SECURITY DEFINER function.
func asAuthor(ctx context.Context, s pgsession.Session, role string, do func() error) error {
	err := transaction(ctx, s, "begin", func() error {
		if _, err := s.Exec(ctx, verifySQL); err != nil {
			return err
		}
		_, err := s.Exec(ctx, "alter function pg_temp.rwproxy_verify owner to "+rewrite.QuoteIdentifier(role))
		return err
	})
	if err != nil {
		return err
	}
	err = transaction(ctx, s, "begin isolation level repeatable read, read only", do)
	if _, dropped := s.Exec(ctx, "drop function pg_temp.rwproxy_verify"); err == nil {
		err = dropped
	}
	return err
}

// compare compares both sides of the window. Its transaction has locked the
// sources and has one snapshot.
func (v *Verification) compare(ctx context.Context, s pgsession.Session, flow flowstate.Refreshed) error {
	if flow.Never {
		v.Outcome = VerifiedNever
		return nil
	}
	v.Window, v.Outcome = flow.Window, VerifiedUnknown
	facts, err := readTargetFacts(ctx, s, flow.Target)
	if err != nil {
		return err
	}
	if v.Reason, err = incomparable(flow, facts); err != nil || v.Reason != "" {
		return err
	}
	f, err := enter(ctx, s, pinnedOf(flow.Settings), time.Now())
	if err != nil {
		return err
	}
	w, err := storedWindow(ctx, s, flow)
	if err != nil {
		return err
	}
	var rows []pgsession.Row
	err = f.asFlow(ctx, func() (err error) {
		rows, err = s.Query(ctx, "select * from pg_temp.rwproxy_verify($1)", w.Compare(shownRows, facts.sendable))
		return withoutContext(err)
	})
	if err != nil {
		return err
	}
	if err := v.count(rows); err != nil {
		return err
	}
	v.judge(flow)
	return f.leave(ctx)
}

// incomparable says why two runs of a refresh need not write the same rows, ""
// if they do.
func incomparable(flow flowstate.Refreshed, facts targetFacts) (string, error) {
	if facts.beforeInsert {
		return "a trigger of the table may change the rows that are stored", nil
	}
	if flow.Proof == nil {
		return "", nil
	}
	var proved proof
	if err := json.Unmarshal(flow.Proof, &proved); err != nil {
		return "", fmt.Errorf("stored proof: %w", err)
	}
	if !proved.Deterministic {
		return "the query does not return the same rows each time", nil
	}
	return "", nil
}

// pinnedOf leaves of a flow's settings those that refreshes pin. Its author
// wrote them; the session here is that of a role with more rights.
func pinnedOf(stored map[string]string) map[string]string {
	settings := maps.Clone(stored)
	maps.DeleteFunc(settings, func(name, _ string) bool { return !slices.Contains(pinned, name) })
	return settings
}

// storedWindow is the window of the last refresh, with values as they are once
// they are stored: a character or bit value has its column's length then.
func storedWindow(ctx context.Context, s pgsession.Session, flow flowstate.Refreshed) (rewrite.Window, error) {
	w := rewrite.Window{Target: flow.Name.SQL(), View: flow.View, Predicate: flow.Window}
	targetColumns, err := columnsOf(ctx, s, w.Target)
	if err != nil {
		return w, err
	}
	viewColumns, err := columnsOf(ctx, s, w.View)
	if err != nil {
		return w, err
	}
	for i := range targetColumns {
		targetColumns[i].castType = targetColumns[i].typ
	}
	w.Columns, err = windowColumns(targetColumns, viewColumns, lexicalOf(flow.Settings).Dialect)
	return w, err
}

// count reads the result of [rewrite.Window.Compare].
func (v *Verification) count(rows []pgsession.Row) error {
	for _, r := range rows {
		total, err := strconv.ParseInt(r[1].Text, 10, 64)
		if err != nil {
			return err
		}
		if r[0].Text == "t" {
			v.Missing, v.MissingRows = total, append(v.MissingRows, r[2].Text)
		} else {
			v.Extra, v.ExtraRows = total, append(v.ExtraRows, r[2].Text)
		}
	}
	return nil
}

// judge says whether a difference is to be expected.
func (v *Verification) judge(flow flowstate.Refreshed) {
	switch {
	case v.Missing == 0 && v.Extra == 0:
		v.Outcome = VerifiedExact
	case flow.Moved:
		v.Outcome, v.Reason = VerifiedUnknown, "the database was restored from a dump, or upgraded, since the last refresh"
	case flow.Redefined:
		v.Outcome, v.Reason = VerifiedBehind, "the flow, or what it reads, was redefined since the last refresh"
	case len(flow.Changed) > 0:
		v.Outcome, v.Reason = VerifiedBehind, "changed since the last refresh: "+strings.Join(flow.Changed, ", ")
	case len(flow.Untracked) > 0:
		v.Outcome, v.Reason = VerifiedUnknown, "not known whether it has changed: "+strings.Join(flow.Untracked, ", ")
	default:
		v.Outcome, v.Reason = VerifiedDiffers, "nothing that the flow reads has changed since the last refresh"
	}
}
