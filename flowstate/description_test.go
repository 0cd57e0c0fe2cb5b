package flowstate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// describe returns the description of the table called daily.
func (s *session) describe() *flowstate.Description {
	s.t.Helper()
	d, err := flowstate.Describe(s.t.Context(), s, dailyName)
	if err != nil || d == nil {
		s.t.Fatalf("got %v, %v", d, err)
	}
	return d
}

func TestADescriptionHoldsWhatWasStored(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.must("create table orders (day date, amount int)", "create table daily (day date, amount bigint)",
		"comment on table daily is 'as Postgres has it'")
	stored := flowstate.StreamingTable{
		Target: dailyName, Properties: map[string]string{"quality": "gold"}, PartitionBy: []string{"day"},
		ClusterBy: "CLUSTER BY AUTO", Schedule: "EVERY 1 DAYS", Settings: settings, Flow: s.flow("daily"),
	}
	ok(t, flowstate.Create(t.Context(), s, stored))
	d := s.describe()
	if d.Comment == nil || *d.Comment != "as Postgres has it" {
		t.Errorf("comment %v", d.Comment)
	}
	got := flowstate.StreamingTable{
		Target: d.Target, Properties: d.Properties, PartitionBy: d.PartitionBy,
		ClusterBy: d.ClusterBy, Schedule: d.Schedule, Settings: d.Settings,
	}
	stored.Flow = nil
	if diff := cmp.Diff(stored, got); diff != "" {
		t.Errorf("-stored +described\n%s", diff)
	}
	if d.Flow == nil || d.Flow.Name != "daily" || d.Owner != s.conn.Config().User || d.CreatedAt == "" {
		t.Errorf("got %+v", d)
	}
	if d.LatestRefresh != "" || d.LastRefreshed != "" {
		t.Errorf("a table that was never refreshed says %+v", d)
	}
	s.refresh(d.OID, flowstate.KindWindow, "true")
	if d = s.describe(); d.LatestState != flowstate.StateCompleted || d.LastTechnique != flowstate.TechniqueFullRecompute || d.LastRefreshed == "" {
		t.Errorf("after a refresh it says %+v", d)
	}
}

func TestOnlyAStreamingTableHasADescription(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	s.dailyTable()
	for _, name := range []rewrite.Name{{Table: "orders"}, {Table: "nowhere"}, {Schema: "nowhere", Table: "daily"}} {
		if d, err := flowstate.Describe(t.Context(), s, name); d != nil || err != nil {
			t.Errorf("%v: got %v, %v", name, d, err)
		}
	}
}

func TestReadersDescribeAndStrangersDoNot(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	_, err := flowstate.Describe(t.Context(), d.stranger, dailyName)
	refused(t, err, "42501", "permission denied for table daily")
	d.owner.must("grant select on daily to " + d.strangerName)
	d.stranger.describe()
	if d.stranger.describe().OwnedByCaller || !d.owner.describe().OwnedByCaller {
		t.Error("the owner is taken for the stranger")
	}
	_, err = d.stranger.Query(t.Context(), "select * from rwproxy.event_log('daily')")
	if got := pgdiag.Code(err); got != "42501" {
		t.Errorf("a reader reads the event log: %v", err)
	}
	if got := d.stranger.value("select count(*) from rwproxy.table_history('daily')"); got != "0" {
		t.Errorf("%s versions of a table that was never refreshed", got)
	}
	if got := d.owner.value("select count(*) > 0 from rwproxy.event_log('daily')"); got != "t" {
		t.Error("the owner's event log is empty")
	}
	_, err = d.owner.Query(t.Context(), "select * from rwproxy.event_log('orders')")
	if got := pgdiag.Code(err); got != "42809" {
		t.Errorf("the event log of an ordinary table: %v", err)
	}
}

func TestReadingWritesNothing(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.refresh(oid, flowstate.KindWindow, "true")
	s.must("begin read only")
	s.describe()
	if got := s.value("select count(*) from rwproxy.table_history('daily')"); got != "1" {
		t.Errorf("%s versions", got)
	}
	s.value("select count(*) from rwproxy.event_log('daily')")
	s.must("commit")
}

func TestTheHistoryOfADroppedNamesakeIsNotShown(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	s.refresh(oid, flowstate.KindWindow, "true")
	ok(t, flowstate.Drop(t.Context(), s, oid, false))
	s.must("drop table daily", "drop table orders")
	oid = s.dailyTable()
	if d := s.describe(); d.LatestRefresh != "" {
		t.Errorf("got %+v", d)
	}
	s.refresh(oid, flowstate.KindWindow, "true")
	s.refresh(oid, flowstate.KindWindow, "true")
	if got := s.rows("select version, \"readVersion\" from rwproxy.table_history('daily')"); cmp.Diff([]string{"1|0", "0|null"}, got) != "" {
		t.Errorf("got %v", got)
	}
}
