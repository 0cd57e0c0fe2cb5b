package refresh

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// explanation is what EXPLAIN REFRESH says, in JSON as in text.
type explanation struct {
	Target    string              `json:"Target"`
	Technique string              `json:"Technique"`
	Reason    string              `json:"Reason,omitempty"`
	Issues    []string            `json:"Reason Is About,omitempty"`
	Window    string              `json:"Window"`
	Applied   string              `json:"Applied Predicate"`
	Apply     string              `json:"Apply,omitempty"`
	Rows      *float64            `json:"Estimated Rows,omitempty"`
	WindowOf  *float64            `json:"Estimated Rows Of Window,omitempty"`
	Untracked string              `json:"Target Not Tracked,omitempty"`
	Sources   []sourceExplanation `json:"Sources"`
	SQL       []string            `json:"SQL"`
}

type sourceExplanation struct {
	Table       string              `json:"Table"`
	Changed     bool                `json:"Changed"`
	NotTracked  string              `json:"Not Tracked,omitempty"`
	ChangedKeys map[string][]string `json:"Changed Keys,omitempty"`
}

// explainRefresh is EXPLAIN REFRESH: a refresh that stops before it writes.
func (e *Engine) explainRefresh(ctx context.Context, c Client, st *rewrite.ExplainRefresh, result *Result) error {
	run, err := e.newRefresh(ctx, c, &st.Refresh)
	if err != nil {
		return err
	}
	if run.target.Table.Flow.View == "" {
		return viewGone(st.Text, st.Target)
	}
	explained, err := run.planned(ctx)
	if err != nil {
		return err
	}
	return explained.result(st.JSON, result)
}

// planned plans the refresh in a transaction, the client's if it is in one, and
// writes nothing.
func (r *run) planned(ctx context.Context) (explained *explanation, err error) {
	r.prepared = true // what is not prepared stays so
	plan := func() error {
		return r.inFrame(ctx, func() error {
			explained, err = r.explanation(ctx)
			return err
		})
	}
	if r.client.Joined() {
		err = plan()
		return explained, err
	}
	err = transaction(ctx, r.client, "begin isolation level repeatable read", plan)
	return explained, err
}

// explanation plans the refresh.
func (r *run) explanation(ctx context.Context) (*explanation, error) {
	w, err := r.window(ctx)
	if err != nil {
		return nil, err
	}
	if r.plan, err = r.makePlan(ctx, w); err != nil {
		return nil, err
	}
	p := r.plan
	e := &explanation{
		Target: r.target.Schema + "." + r.target.Name, Technique: p.technique, Reason: p.reason, Issues: p.about(),
		Window: p.window, Applied: p.applied(), Untracked: p.changes.TargetObstacle, SQL: []string{},
	}
	for _, s := range p.changes.Sources {
		e.Sources = append(e.Sources, r.sourceExplanation(s))
	}
	if p.technique == flowstate.TechniqueNoOp {
		return e, nil
	}
	if p.whole == (cost{}) {
		if p.whole, err = r.costOf(ctx, w); err != nil {
			return nil, err
		}
	}
	e.Rows, e.WindowOf = &p.whole.rows, &p.whole.rows
	if p.narrowed != "" {
		e.Rows = &p.part.rows
	}
	w.Predicate = p.applied()
	stored := r.stored(w)
	if e.Apply = rewrite.ApplyDeleteInsert; p.diff {
		e.Apply = rewrite.ApplyDiff
		e.SQL = []string{w.Diff(stored)}
	} else {
		e.SQL = []string{stored.Delete(), w.Insert()}
	}
	return e, nil
}

func (r *run) sourceExplanation(s flowstate.SourceChanges) sourceExplanation {
	e := sourceExplanation{Table: s.Name, Changed: s.Changed, NotTracked: s.Obstacle}
	proved := r.plan.proved.source(s.OID)
	if proved == nil || s.Route < 0 || len(s.Keys) == 0 {
		return e
	}
	e.ChangedKeys = map[string][]string{}
	for i, key := range proved.Routes[s.Route].Keys {
		e.ChangedKeys[key.Column] = distinctTexts(s.Keys, i)
	}
	return e
}

// distinctTexts are the values of a column of rows, each once.
func distinctTexts(rows [][]pgsession.Value, column int) (values []string) {
	seen := map[string]bool{}
	for _, row := range rows {
		text := row[column].Text
		if row[column].Null {
			text = "NULL"
		}
		if !seen[text] {
			seen[text] = true
			values = append(values, text)
		}
	}
	return values
}

func (e sourceExplanation) line() string {
	switch {
	case e.NotTracked != "":
		return "not tracked: " + e.NotTracked
	case !e.Changed:
		return "no changes"
	case e.ChangedKeys == nil:
		return "changed"
	}
	var keys []string
	for _, column := range slices.Sorted(maps.Keys(e.ChangedKeys)) {
		values := e.ChangedKeys[column]
		shown := strings.Join(values[:min(len(values), shownKeys)], ", ")
		if len(values) > shownKeys {
			shown += fmt.Sprintf(", ... (%d values)", len(values))
		}
		keys = append(keys, column+" = "+shown)
	}
	return "changed: " + strings.Join(keys, "; ")
}

// shownKeys is how many values of a column the text names; JSON has all.
const shownKeys = 10

// result is the explanation as rows of text, or one value of JSON.
func (e *explanation) result(asJSON bool, result *Result) error {
	result.Columns = textColumns([]string{"QUERY PLAN"})
	if asJSON {
		encoded, err := json.MarshalIndent([]*explanation{e}, "", "  ")
		if err != nil {
			return err
		}
		result.Columns[0].TypeOID = oidJSON
		result.Rows = []pgsession.Row{row(string(encoded))}
		return nil
	}
	for _, line := range e.lines() {
		result.Rows = append(result.Rows, row(line))
	}
	return nil
}

func (e *explanation) lines() []string {
	lines := []string{"Refresh of " + e.Target + ": " + decision{technique: e.Technique, reason: e.Reason}.String()}
	add := func(name, value string) {
		if value != "" {
			lines = append(lines, "  "+name+": "+strings.ReplaceAll(value, "\n", "\n    "))
		}
	}
	add("Reason Is About", strings.Join(e.Issues, ", "))
	add("Window", e.Window)
	if e.Applied != e.Window {
		add("Applied Predicate", e.Applied)
	}
	add("Apply", e.Apply)
	if e.Rows != nil {
		add("Estimated Rows", fmt.Sprintf("%.0f of %.0f", *e.Rows, *e.WindowOf))
	}
	if e.Untracked != "" {
		add("Target "+e.Target, "not tracked: "+e.Untracked)
	}
	for _, s := range e.Sources {
		add("Source "+s.Table, s.line())
	}
	for _, sql := range e.SQL {
		add("SQL", sql)
	}
	return strings.Split(strings.Join(lines, "\n"), "\n")
}
