package flowstate_test

import (
	"fmt"
	"testing"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// step asks rwproxy.request for a step, past this package.
func (s *session) step(step, arguments string) error {
	_, err := s.Query(s.t.Context(), "insert into rwproxy.request (step, arguments) values ($1, $2::jsonb) returning result", step, arguments)
	return err
}

func TestCaptureGivesNobodyARight(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	service := newService(t, d.url)
	d.super.must("create table mine (day date)", "grant trigger on orders to "+d.strangerName)
	tracking, err := service.EnsureCapture(t.Context(), d.super.conn.Config().Database, flowstate.CaptureRequest{
		View: d.owner.lookup("daily").Table.Flow.ViewOID, Author: d.ownerName,
		Sources: []flowstate.CaptureSource{{OID: d.super.oidOf("orders"), Columns: []string{"day"}}},
	})
	ok(t, err)
	if !tracking[0].Tracked {
		t.Fatalf("got %+v", tracking)
	}
	log := d.super.value("select log from rwproxy.capture where relation = 'orders'::regclass")
	function := d.super.value("select 'rwproxy_log.' || proname from pg_proc p join pg_trigger t on t.tgfoid = p.oid and t.tgrelid = 'orders'::regclass limit 1")
	reader := d.super.value("select p.oid::regproc from pg_proc p where proname like 'read_as_%'")
	orders := fmt.Sprint(d.super.oidOf("orders"))

	for _, s := range []*session{d.owner, d.stranger} {
		for _, sql := range []string{
			"table " + log, "delete from " + log, "truncate " + log, "insert into rwproxy_log.own_write values ('1', 1)",
			"table rwproxy_log.own_write", "table rwproxy.capture", "table rwproxy.capture_need", "table rwproxy.proof",
			"create trigger t after insert on daily for each statement execute function " + function + "()",
			"alter function " + reader + " security invoker", "select " + reader + "('select 1', 1)", "create table rwproxy_log.t ()",
			"select rwproxy.current_cursor()", "select rwproxy.ensure_reader(10)",
		} {
			_, err := s.Exec(t.Context(), sql)
			if got := pgdiag.Code(err); got != "42501" {
				t.Errorf("%s as %s: %v, want 42501", sql, s.conn.Config().User, err)
			}
		}
		for step, arguments := range map[string]string{
			"ensure_capture":  `{"relation": ` + orders + `, "view": 1, "author": "postgres", "columns": []}`,
			"store_proof":     `{"view": 1, "fingerprint": "x", "sources": [], "detail": null}`,
			"collect_garbage": `{"action": "relation", "relation": ` + orders + `}`,
		} {
			refused(t, s.withoutWhere(s.step(step, arguments)), "42501", "permission denied for schema rwproxy")
		}
	}
	_, err = flowstate.ReadChanges(t.Context(), d.stranger, d.oid, "")
	refused(t, err, "42501", "permission denied for table daily")
	_, err = flowstate.ReadChanges(t.Context(), d.stranger, d.super.oidOf("mine"), "")
	refused(t, err, "42501", "permission denied for table mine")

	// The refresh of another session, and of another table.
	d.super.must("grant select, insert, delete on daily to " + d.strangerName)
	d.owner.lock(d.oid)
	id := d.owner.start(d.oid, flowstate.KindWindow)
	_, err = flowstate.ReadChanges(t.Context(), d.stranger, d.oid, id)
	refused(t, err, "42501", "permission denied for refresh")
	refused(t, d.owner.withoutWhere(d.owner.step("read_changes", `{"target": `+orders+`, "limit": 1}`)), "42809", "has no flow")
	if _, err = flowstate.ReadChanges(t.Context(), d.owner, d.oid, id); err != nil {
		t.Error(err)
	}

	// A writer needs no right but to write.
	d.super.must("grant insert on orders to " + d.strangerName)
	d.stranger.must("insert into orders values ('2024-01-01', 1)")
	if got := d.super.value("select count(*) from " + log); got != "1" {
		t.Errorf("%s rows are logged", got)
	}
}

// withoutWhere leaves out the context of an error that did not pass this
// package.
func (s *session) withoutWhere(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) { d.Where = "" })
}

func TestNoSettingHidesAWrite(t *testing.T) {
	t.Parallel()
	d := newShared(t)
	d.owner.refresh(d.oid, flowstate.KindWindow, "true")
	d.owner.must("set application_name = 'rwproxy'", "set search_path = pg_temp, public",
		"create temporary table own_write (xid xid8, capture bigint)",
		"insert into pg_temp.own_write select pg_current_xact_id(), n from generate_series(1, 9) n")
	d.owner.must("begin", "insert into public.daily values ('2024-01-01', 1)", "commit")
	changes, err := flowstate.ReadChanges(t.Context(), d.owner, d.oid, "")
	ok(t, err)
	if !changes.TargetTracked || changes.External == "" && !changes.ExternalUnknown {
		t.Errorf("got %+v", changes)
	}
}

func TestAVirtualColumnIsReadThroughItsOthers(t *testing.T) {
	t.Parallel()
	url := installed(t)
	kind := connect(t, url, "").value("select case when current_setting('server_version_num')::int >= 180000 then 'virtual' else 'stored' end")
	c := newCaptured(t, "select day, doubled as amount from source",
		"create table source (day date, amount int, doubled int generated always as (amount * 2) "+kind+")",
		"insert into source values ('2024-01-01', 1)")
	c.capture("source", []string{"doubled", "day"}, []string{"day", "doubled"})
	c.take()
	c.must("insert into source values ('2024-01-02', 1)", "insert into source select '2024-01-03', 1 from generate_series(1, 100)",
		"update source set amount = 1")
	c.take()
	c.must("update source set amount = 2")
	if got := c.changes().Sources[0]; !got.Changed {
		t.Errorf("got %+v", got)
	}

	// A column that flows read, made again as one that cannot be read.
	c.must("drop view rwproxy_flows."+c.value("select relname from pg_class where oid = $1", c.view),
		"alter table source drop column doubled", "alter table source drop column amount",
		"alter table source add column price int, add column amount int generated always as (1) "+kind,
		"insert into source values ('2024-01-03', 1)", "update source set price = 3", "delete from source")
}
