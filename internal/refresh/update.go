package refresh

import (
	"context"
	"fmt"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// Update is a request for refreshes of several tables, as the pipelines API
// has it. A flow is named by its own name or its table's, with or without the
// schema; without any selection an update is of all flows that the client may
// refresh.
type Update struct {
	Cause                string // as the client calls it
	FullRefresh          bool   // of all tables that allow it
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

// StartUpdate checks an update as REFRESH … ASYNC checks a refresh, queues its
// refreshes so that a flow comes after those it reads, and returns its id. One
// that only validates plans each of them instead, and has ended when this
// returns: what is wrong is then the update's error. Errors: 55006 while another
// update of the database is active, 42P01 for a flow that the client does not
// see, 42501 for one that it may not refresh, 42000 for a selected table that
// does not allow a full refresh, 22023 if the parts of u do not go together.
func (e *Engine) StartUpdate(ctx context.Context, c Client, u Update) (id string, err error) {
	installed, err := e.service.Installed(ctx, c, c.Database())
	if err != nil {
		return "", err
	}
	if !installed {
		if err := e.service.Unusable(ctx, c, c.Database()); err != nil {
			return "", err
		}
		return "", noFlows()
	}
	if err := e.checkRunner(ctx, c); err != nil {
		return "", err
	}
	if err := flowstate.Sweep(ctx, c); err != nil {
		return "", err
	}
	selected, err := selectFlows(ctx, c, u)
	if err != nil {
		return "", err
	}
	record := flowstate.Update{Cause: u.Cause, Parameters: u.parameters()}
	lexical, err := sessionLexical(ctx, c)
	if err != nil {
		return "", err
	}
	for _, s := range selected {
		r, err := e.checkSelected(ctx, c, s, lexical, u.ValidateOnly)
		err = pgdiag.Edited(withoutPosition(err), func(d *pgdiag.Diagnostic) {
			d.Message = fmt.Sprintf("flow %q: %s", s.flow, d.Message)
		})
		switch {
		case err == nil:
			record.Refreshes = append(record.Refreshes, r)
		case !u.ValidateOnly || s.target == nil:
			return "", err
		case record.Error == nil:
			record.Error = diagnostic(err)
		}
		if err != nil {
			record.Refreshes = append(record.Refreshes, flowstate.UpdateRefresh{Request: flowstate.Request{Target: s.target.OID}})
		}
	}
	err = inTransaction(ctx, c, func() (err error) {
		id, err = flowstate.StartUpdate(ctx, c, record)
		return err
	})
	return id, err
}

func (u Update) parameters() flowstate.UpdateParameters {
	p := flowstate.UpdateParameters{
		FullRefresh: u.FullRefresh, RefreshSelection: u.RefreshSelection, FullRefreshSelection: u.FullRefreshSelection,
		ValidateOnly: u.ValidateOnly,
	}
	for _, o := range u.Overrides {
		p.ReplaceWhere = append(p.ReplaceWhere, flowstate.UpdatePredicate(o))
	}
	return p
}

// sessionLexical is how the session reads a text.
func sessionLexical(ctx context.Context, c Client) (rewrite.Lexical, error) {
	rows, err := c.Query(ctx, "select pg_catalog.current_setting('standard_conforming_strings')")
	if err != nil {
		return rewrite.Lexical{}, err
	}
	return lexicalOf(map[string]string{settingStandardStrings: rows[0][0].Text}), nil
}

// checkSelected checks one refresh of an update, with planOnly as far as its
// plan.
func (e *Engine) checkSelected(ctx context.Context, c Client, s *selectedFlow, lexical rewrite.Lexical, planOnly bool) (flowstate.UpdateRefresh, error) {
	refresh := flowstate.UpdateRefresh{After: s.after}
	name := rewrite.Name{Schema: s.schema, Table: s.table}
	var err error
	if s.target, err = e.lookup(ctx, c, "", name); err != nil {
		return refresh, err
	}
	st := &rewrite.Refresh{Target: name, Full: s.full}
	if s.override != nil {
		if st, err = refreshWhere(name, *s.override, lexical); err != nil {
			return refresh, err
		}
	}
	if s.mayKeep && s.target != nil && s.target.Table != nil && !s.target.Table.ResetAllowed() {
		st.Full, refresh.NotReset = false, true
	}
	run, err := e.newRefresh(ctx, c, st)
	if err != nil {
		return refresh, err
	}
	if run.target.Table.Flow.View == "" {
		return refresh, viewGone(st.Text, name)
	}
	err = inTransaction(ctx, c, func() error {
		refresh.Request, err = run.request(ctx)
		return err
	})
	if err != nil || !planOnly {
		return refresh, err
	}
	_, err = run.planned(ctx)
	return refresh, err
}
