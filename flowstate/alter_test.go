package flowstate_test

import (
	"maps"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
)

func TestASchedule(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	ctx := t.Context()
	refused(t, flowstate.DropSchedule(ctx, s, oid), "42704", `streaming table "daily" has no schedule`)
	refused(t, flowstate.AlterSchedule(ctx, s, oid, "EVERY 1 DAYS"), "42704", `streaming table "daily" has no schedule`)
	ok(t, flowstate.AddSchedule(ctx, s, oid, "EVERY 1 DAYS"))
	refused(t, flowstate.AddSchedule(ctx, s, oid, "EVERY 2 DAYS"), "42710", `streaming table "daily" already has a schedule`)
	ok(t, flowstate.AlterSchedule(ctx, s, oid, "EVERY 3 DAYS"))
	if got := s.describe().Schedule; got != "EVERY 3 DAYS" {
		t.Errorf("got %q", got)
	}
	ok(t, flowstate.DropSchedule(ctx, s, oid))
	if got := s.describe().Schedule; got != "" {
		t.Errorf("got %q", got)
	}
}

// Whoever asks for a step without the proxy must not spoil the schedules of others.
func TestAScheduleIsChecked(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	ctx := t.Context()
	for _, text := range []string{
		"", "x", "EVERY 281474976710656 WEEKS", "EVERY -1 DAYS", "EVERY 0 DAYS", "EVERY 100 DAYS", "CRON '0 0 0 * * ?'",
		"TRIGGER ON UPDATE AT MOST EVERY INTERVAL x", "TRIGGER ON UPDATE AT MOST EVERY INTERVAL 1000000 YEARS",
		"TRIGGER ON UPDATE AT MOST EVERY INTERVAL 9999999999 SECOND", "TRIGGER", "x\nEVERY 1 DAYS\nx",
	} {
		refused(t, flowstate.AddSchedule(ctx, s, oid, text), "23514", "violates check constraint")
	}
	for _, text := range []string{
		"EVERY 72 HOURS", "EVERY 8 WEEKS", "CRON '0 0 0 * * ?' AT TIME ZONE '<+02>-02'", "TRIGGER ON UPDATE",
		"TRIGGER ON UPDATE AT MOST EVERY INTERVAL 316224000 SECOND",
	} {
		ok(t, flowstate.AddSchedule(ctx, s, oid, text))
		ok(t, flowstate.DropSchedule(ctx, s, oid))
	}
}

func TestPropertiesAreSetAndUnsetOneByOne(t *testing.T) {
	t.Parallel()
	s := connect(t, installed(t), "")
	oid := s.dailyTable()
	ctx := t.Context()
	ok(t, flowstate.UnsetProperties(ctx, s, oid, []string{"quality"}, false)) // what dailyTable has
	want := func(properties map[string]string) {
		t.Helper()
		if got := s.describe().Properties; !maps.Equal(got, properties) {
			t.Errorf("got %v, want %v", got, properties)
		}
	}
	ok(t, flowstate.SetProperties(ctx, s, oid, map[string]string{"a": "1", "b": "2"}))
	ok(t, flowstate.SetProperties(ctx, s, oid, map[string]string{"b": "3", "it's": `"quoted"`}))
	want(map[string]string{"a": "1", "b": "3", "it's": `"quoted"`})
	refused(t, flowstate.UnsetProperties(ctx, s, oid, []string{"a", "c", "d'"}, false), "42K0J", "has no table property 'c', 'd''")
	want(map[string]string{"a": "1", "b": "3", "it's": `"quoted"`})
	ok(t, flowstate.UnsetProperties(ctx, s, oid, []string{"a", "c"}, true))
	ok(t, flowstate.UnsetProperties(ctx, s, oid, []string{"it's"}, false))
	want(map[string]string{"b": "3"})
}

func TestOnlyTheOwnerAlters(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	ctx := t.Context()
	d.owner.must("grant all on daily to " + d.strangerName)
	refused(t, flowstate.AddSchedule(ctx, d.stranger, d.oid, "EVERY 1 DAYS"), "42501", "must be owner of table daily")
	refused(t, flowstate.SetProperties(ctx, d.stranger, d.oid, nil), "42501", "must be owner of table daily")
	refused(t, flowstate.UnsetProperties(ctx, d.stranger, d.oid, []string{"quality"}, true), "42501", "must be owner of table daily")
	if d := d.owner.describe(); d.Schedule != "" || d.Properties["quality"] == "" {
		t.Errorf("got %+v", d)
	}
}
