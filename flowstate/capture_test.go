package flowstate_test

import (
	"fmt"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
)

// captured is a database with a flow from table source into daily, whose
// changes are recorded.
type captured struct {
	*session
	url     string
	service *flowstate.Service
	oid     uint32 // of daily
	view    uint32
}

// newCaptured runs the statements, which create table source, and makes a flow
// of query with columns day and amount.
func newCaptured(t *testing.T, query string, statements ...string) *captured {
	t.Helper()
	url := installed(t)
	c := &captured{session: connect(t, url, ""), url: url, service: newService(t, url)}
	c.must(statements...)
	c.must("create table daily (day date, amount bigint)")
	ok(t, flowstate.Create(t.Context(), c, flowstate.StreamingTable{
		Target:    dailyName,
		Statement: "CREATE STREAMING TABLE daily FLOW …",
		Settings:  settings,
		Flow: &flowstate.Flow{
			Name: "daily", View: c.newView(query), Predicate: "day > '2024-01-01'", Condition: "day > '2024-01-01'",
			Query: query, PredicateColumns: []string{"day"},
		},
	}))
	target := c.lookup("daily")
	c.oid, c.view = target.OID, target.Table.Flow.ViewOID
	return c
}

// oidOf returns the OID of a relation.
func (s *session) oidOf(relation string) uint32 {
	s.t.Helper()
	var oid uint32
	_, err := fmt.Sscan(s.value("select $1::regclass::oid", relation), &oid)
	ok(s.t, err)
	return oid
}

// capture has the changes of a table recorded for the flow.
func (c *captured) capture(table string, columns, reads []string) flowstate.Tracking {
	c.t.Helper()
	tracking, err := c.service.EnsureCapture(c.t.Context(), c.conn.Config().Database, flowstate.CaptureRequest{
		View: c.view, Author: "postgres", ClientPID: int(c.conn.PgConn().PID()),
		Sources: []flowstate.CaptureSource{{OID: c.oidOf(table), Columns: columns, Reads: reads}},
	})
	ok(c.t, err)
	return tracking[0]
}

// take refreshes the flow, so that later changes are told.
func (c *captured) take() {
	c.t.Helper()
	c.refresh(c.oid, flowstate.KindWindow, "true")
}

func (c *captured) changes() *flowstate.Changes {
	c.t.Helper()
	changes, err := flowstate.ReadChanges(c.t.Context(), c, c.oid, "")
	ok(c.t, err)
	return changes
}

// logged returns the log of a table since the cursor: how many columns are
// known, and their values.
func (c *captured) logged(table string) []string {
	c.t.Helper()
	log := c.value("select log from rwproxy.capture where relation = rwproxy.capture_root($1::regclass)", table)
	columns := c.value("select coalesce(string_agg(', c' || u, '' order by position), '') from rwproxy.capture, unnest(columns) with ordinality as u (u, position) where log = $1::regclass", log)
	return c.rows("select known" + columns + " from " + log +
		" where not pg_visible_in_snapshot(xid, (select cursor from rwproxy.streaming_table)) order by 1, 2, 3")
}

const sumOfSource = "select day, sum(amount) as amount from source group by day"

func TestStatementsAreLogged(t *testing.T) {
	t.Parallel()
	c := newCaptured(t, sumOfSource, "create table source (day date, amount int, note text)")
	if got := c.capture("source", []string{"day", "amount"}, []string{"day", "amount"}); !got.Tracked {
		t.Fatalf("got %+v", got)
	}
	c.must("insert into source values ('2024-01-01', 1, 'a'), ('2024-01-02', 2, 'b')")
	c.take()
	for _, step := range []struct{ sql, want string }{
		{"insert into source values ('2024-01-03', 3)", "[2|2024-01-03|3]"},
		{"update source set amount = 20 where day = '2024-01-02'", "[2|2024-01-02|2 2|2024-01-02|20]"},
		{"update source set note = 'c'", "[]"},
		{"update source set amount = amount", "[]"},
		{"delete from source where day = '2024-01-03'", "[2|2024-01-03|3]"},
		{"delete from source where false", "[]"},
		{"update source set day = null where amount = 1", "[2|2024-01-01|1 2|null|1]"},
		{"truncate source", "[0|null|null]"},
	} {
		c.must(step.sql)
		if got := fmt.Sprint(c.logged("source")); got != step.want {
			t.Errorf("%s\ngot  %s\nwant %s", step.sql, got, step.want)
		}
		c.take()
	}
}
