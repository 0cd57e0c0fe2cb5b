package refresh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"go.uber.org/zap"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// errUnprepared ends a transaction that has found, before it wrote anything,
// that changes of the sources are not recorded yet, or that there is no proof
// of what they can reach. Once there is, the refresh begins again: only a
// snapshot that is taken after that is one for the next refresh to start from.
var errUnprepared = errors.New("the sources of the flow are not prepared")

// readChanges reads what has changed since the last refresh. It prepares the
// flow if need be, once.
func (r *run) readChanges(ctx context.Context) (*flowstate.Changes, error) {
	changes, err := flowstate.ReadChanges(ctx, r.client, r.target.OID, r.id)
	switch {
	case err != nil || r.prepared || !unprepared(changes):
		return changes, err
	case r.restartable:
		r.found = changes
		return nil, errUnprepared
	}
	r.found = changes
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	return flowstate.ReadChanges(ctx, r.client, r.target.OID, r.id)
}

// unprepared reports that there is no proof for the flow as it is now, or that
// changes of a table are not recorded although they could be.
func unprepared(changes *flowstate.Changes) bool {
	return changes.Proof == nil || changes.TargetUnrecorded ||
		slices.ContainsFunc(changes.Sources, func(s flowstate.SourceChanges) bool { return s.Unrecorded })
}

// proofAttempts is how often a flow is proved before something that changes
// all the time is left to the next refresh.
const proofAttempts = 3

// prepare has changes of the sources recorded, and proves what they can reach.
// Its transaction has locked the sources. What it does is committed by the
// service connection at once.
func (r *run) prepare(ctx context.Context) error {
	r.prepared = true
	r.progress.enter(stepPrepare)
	var err error
	if r.selecting, err = r.predicateColumns(ctx); err != nil {
		return err
	}
	proved, err := r.prove(ctx)
	if err != nil {
		return err
	}
	for range proofAttempts {
		if err := r.capture(ctx, proved); err != nil {
			return r.withoutPreparation(ctx, err)
		}
		// A proof counts if it is the same after the definitions it is stored
		// with were read.
		changes, err := flowstate.ReadChanges(ctx, r.client, r.target.OID, r.id)
		if err != nil {
			return err
		}
		again, err := r.prove(ctx)
		if err != nil {
			return err
		}
		if bytes.Equal(proved.encoded, again.encoded) {
			stored := flowstate.StoredProof{Sources: proved.stored(), Detail: proved.encoded}
			err := r.engine.service.StoreProof(ctx, r.client.Database(), r.target.Table.Flow.ViewOID, changes.Fingerprint, stored)
			return r.withoutPreparation(ctx, err)
		}
		proved = again
	}
	return nil
}

// capture has the changes of a flow's sources recorded.
func (r *run) capture(ctx context.Context, proved provedFlow) error {
	rows, err := r.client.Query(ctx, "select pg_backend_pid()")
	if err != nil {
		return err
	}
	pid, err := strconv.Atoi(rows[0][0].Text)
	if err != nil {
		return err
	}
	sources := proved.captured()
	if r.found.TargetUnrecorded {
		sources = append(sources, flowstate.CaptureSource{OID: r.target.OID, Columns: r.selecting})
	}
	flow := r.target.Table.Flow
	r.tracking, err = r.engine.service.EnsureCapture(ctx, r.client.Database(), flowstate.CaptureRequest{
		View: flow.ViewOID, Author: flow.ViewOwner, ClientPID: pid, Sources: sources,
	})
	for i := range r.tracking {
		r.seeUncommitted(&r.tracking[i])
	}
	return err
}

// seeUncommitted adds what only the client's transaction knows of a table that
// it has created.
func (r *run) seeUncommitted(t *flowstate.Tracking) {
	if t.Name != "" {
		return
	}
	var obstacle, hint string
	if t.OID == r.target.OID {
		t.Name, obstacle, hint = r.target.Schema+"."+r.target.Name, r.found.TargetObstacle, r.found.TargetHint
	}
	for _, s := range r.found.Sources {
		if s.OID == t.OID {
			t.Name, obstacle, hint = s.Name, s.Obstacle, s.Hint
		}
	}
	if hint != "" { // it is in the way after the commit, too
		t.Obstacle, t.Hint = obstacle, hint
	}
}

// predicateColumns are the columns of the target that the predicate depends on.
func (r *run) predicateColumns(ctx context.Context) ([]string, error) {
	flow, lexical := r.target.Table.Flow, lexicalOf(r.target.Table.Settings)
	p := predicate{
		typed: rewrite.Span{Text: flow.Condition}, statement: flow.Condition, lexical: lexical,
		translation: rewrite.Translation{SQL: flow.Condition},
	}
	facts, err := p.facts(ctx, r.frame, rewrite.Window{Target: r.target.QualifiedName().SQL()})
	return facts.columns, err
}

// noticeUntracked says, to whoever defines a flow, of which sources it cannot
// know the changes.
func (r *run) noticeUntracked(ctx context.Context) error {
	var notices []*pgdiag.Diagnostic
	for _, t := range r.tracking {
		if !t.Tracked {
			notices = append(notices, pgdiag.New("00000", "changes of "+t.Name+" cannot be recorded: "+t.Obstacle).
				WithDetail("Every refresh recomputes the whole window.").
				WithHint(t.Hint))
		}
	}
	return notifyAll(ctx, r.client, notices)
}

// withoutPreparation goes on although the service connection could not do its
// part: the window is recomputed then, now and the next time.
func (r *run) withoutPreparation(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	r.engine.logger.Warn("changes of sources are not recorded", append(r.fields(), zap.Error(err))...)
	return nil
}

// provedFlow is a proof as it is stored.
type provedFlow struct {
	*proof
	encoded json.RawMessage
}

// prove proves the flow as it is now. A column narrows a window only if it is
// stored as the query returns it.
func (r *run) prove(ctx context.Context) (provedFlow, error) {
	flow, name := r.target.Table.Flow, r.target.QualifiedName()
	targetColumns, err := columnsOf(ctx, r.client, name.SQL())
	if err != nil {
		return provedFlow{}, err
	}
	viewColumns, err := columnsOf(ctx, r.client, flow.View)
	if err != nil {
		return provedFlow{}, err
	}
	inTarget := byName(targetColumns)
	// Of a statement that changes very many rows only the first column's values
	// are logged: the window's own tells these rows apart best.
	slices.SortStableFunc(viewColumns, func(a, b column) int {
		switch {
		case slices.Contains(r.selecting, a.name) == slices.Contains(r.selecting, b.name):
			return 0
		case slices.Contains(r.selecting, a.name):
			return -1
		}
		return 1
	})
	var candidates []string
	for _, c := range viewColumns {
		if stored := inTarget[c.name]; stored.typ == c.typ && stored.collation == c.collation {
			candidates = append(candidates, c.name)
		}
	}
	p, err := prove(ctx, r.frame, flow.View, candidates)
	if err != nil {
		return provedFlow{}, viewError(err, flow.View)
	}
	encoded, err := json.Marshal(p)
	return provedFlow{proof: p, encoded: encoded}, err
}
