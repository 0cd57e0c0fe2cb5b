package flowstate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// prove stores a proof with one route for each query, which needs the named
// columns of source.
func (c *captured) prove(fingerprint string, columns []string, queries ...string) {
	c.t.Helper()
	source := flowstate.ProvedSource{Relation: c.oidOf("source")}
	for _, query := range queries {
		source.Routes = append(source.Routes, flowstate.ProvedRoute{
			Needs: []flowstate.LogColumns{{Relation: source.Relation, Columns: columns}},
			SQL:   strings.ReplaceAll(query, "{source}", fmt.Sprintf("{log:%d}", source.Relation)),
		})
	}
	ok(c.t, c.service.StoreProof(c.t.Context(), c.conn.Config().Database, c.view, fingerprint, flowstate.StoredProof{
		Sources: []flowstate.ProvedSource{source}, Detail: json.RawMessage(`{"proved": true}`),
	}))
}

// keys returns what the changes of the only source lead to.
func keys(c *flowstate.Changes) string {
	var tuples []string
	for _, tuple := range c.Sources[0].Keys {
		var values []string
		for _, v := range tuple {
			if v.Null {
				values = append(values, "null")
			} else {
				values = append(values, v.Text)
			}
		}
		tuples = append(tuples, strings.Join(values, "|"))
	}
	return fmt.Sprint(tuples)
}

func TestChangesLeadToKeys(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int, note text)")
	c.capture("source", []string{"day", "amount"}, nil)
	if got := c.changes(); got.HasCursor || got.CursorFingerprint != "" || len(got.Sources) != 1 || !got.Sources[0].Tracked {
		t.Errorf("before the first refresh: %+v", got)
	}
	c.take()
	c.prove(c.changes().Fingerprint, []string{"day"}, "select distinct c1 from {source} as l order by c1")
	got := c.changes()
	want := &flowstate.Changes{
		HasCursor: true, Fingerprint: got.Fingerprint, CursorFingerprint: got.Fingerprint, Proof: json.RawMessage(`{"proved": true}`),
		TargetTracked: true,
		Sources:       []flowstate.SourceChanges{{OID: c.oidOf("source"), Name: "public.source", Tracked: true, Route: -1, Keys: [][]pgsession.Value{}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	c.must("insert into source values ('2024-01-02', 1), ('2024-01-01', 1), ('2024-01-02', 3), (null, 4)")
	got = c.changes()
	if s := got.Sources[0]; s.Rows != 4 || !s.Changed || s.Route != 0 || keys(got) != "[2024-01-01 2024-01-02 null]" {
		t.Errorf("got %+v", s)
	}
	c.take()
	if got := c.changes(); got.Sources[0].Changed {
		t.Errorf("after a refresh: %+v", got)
	}
	c.must("truncate source")
	if got := c.changes(); !got.Sources[0].Changed || got.Sources[0].Route != -1 {
		t.Errorf("after TRUNCATE: %+v", got)
	}
}
