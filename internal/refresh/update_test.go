package refresh_test

import (
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/refresh"
)

// layers creates table src and the streaming tables gold, which reads silver,
// which reads bronze, which reads it. Their names are not in that order.
func layers(s *session) {
	s.t.Helper()
	s.must("create table src (a int)", "insert into src values (1)",
		"create streaming table z_bronze flow replace where a > 0 by name select a from src",
		"create streaming table m_silver flow replace where a > 0 by name select a from z_bronze",
		"create streaming table a_gold flow replace where a > 0 by name select a from m_silver",
		"insert into src values (2)")
}

func (s *session) startUpdate(u refresh.Update) (string, error) {
	u.Cause = "API_CALL"
	return s.engine.StartUpdate(s.t.Context(), s, u)
}

func (s *session) mustUpdate(u refresh.Update) string {
	s.t.Helper()
	id, err := s.startUpdate(u)
	if err != nil {
		s.t.Fatalf("%+v\n%v", u, err)
	}
	return id
}

func refreshesOf(id string) string {
	return "select target_table, kind, state from rwproxy.refreshes where update_id = '" + id + "' order by requested_at"
}

func TestAnUpdateOfAllFlowsIsInTheOrderTheyRead(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	layers(s)
	id := s.mustUpdate(refresh.Update{})
	s.expect(refreshesOf(id), "z_bronze window QUEUED", "m_silver window QUEUED", "a_gold window QUEUED")
	d.mustRunQueue()
	d.queue()
	s.expect("select state, cause from rwproxy.updates where update_id = '"+id+"'", "COMPLETED API_CALL")
	s.expect("select a from a_gold order by 1", "1", "2")
}

func TestAnUpdateOfASelection(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	layers(s)
	s.must(`create schema other`, `create streaming table other."A_Gold" flow replace where a > 0 by name select a from src`)
	for _, c := range []struct {
		u    refresh.Update
		want []string
	}{
		{refresh.Update{RefreshSelection: []string{"a_gold", "public.z_bronze"}}, []string{"a_gold window COMPLETED", "z_bronze window COMPLETED"}},
		{refresh.Update{RefreshSelection: []string{d.name() + ".public.M_Silver"}}, []string{"m_silver window COMPLETED"}},
		{refresh.Update{RefreshSelection: []string{"A_Gold"}}, []string{"A_Gold window COMPLETED"}},
		{refresh.Update{RefreshSelection: []string{`other."A_Gold"`, "`public`.`a_gold`"}}, []string{"A_Gold window COMPLETED", "a_gold window COMPLETED"}},
		{
			refresh.Update{RefreshSelection: []string{"z_bronze"}, FullRefreshSelection: []string{"m_silver"}},
			[]string{"m_silver full COMPLETED", "z_bronze window COMPLETED"},
		},
		{
			refresh.Update{RefreshSelection: []string{"m_silver"}, Overrides: []refresh.Override{{"m_silver", "a = 2 -- only"}}},
			[]string{"m_silver override COMPLETED"},
		},
	} {
		id := s.mustUpdate(c.u)
		d.mustRunQueue()
		d.queue()
		s.expect("select target_table, kind, state from rwproxy.refreshes where update_id = '"+id+"' order by target_table", c.want...)
	}
	s.expect("select window_predicate from rwproxy.refreshes where kind = 'override'", "a = 2")
}

func TestAResetThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	layers(s)
	s.must("alter streaming table m_silver set tblproperties ('pipelines.reset.allowed' = 'false')")
	if _, err := s.startUpdate(refresh.Update{FullRefreshSelection: []string{"m_silver"}}); pgdiag.Code(err) != "42000" {
		t.Errorf("a selected reset: %v", err)
	}
	id := s.mustUpdate(refresh.Update{FullRefresh: true})
	s.expect(refreshesOf(id), "z_bronze full QUEUED", "m_silver window QUEUED", "a_gold full QUEUED")
	s.expect("select message from rwproxy.event_log where level = 'WARN'",
		"Table 'public.m_silver' is not reset: its table property pipelines.reset.allowed is false.")
	d.mustRunQueue()
	s.expect("select state, full_refresh from rwproxy.updates where update_id = '"+id+"'", "COMPLETED t")
}

func TestAnUpdateThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	if _, err := s.startUpdate(refresh.Update{}); pgdiag.Code(err) != "42704" {
		t.Errorf("where nothing is installed: %v", err)
	}
	layers(s)
	s.must("create schema other", "create streaming table other.a_gold flow replace where a > 0 by name select a from src")
	_, stranger := d.role(s)
	_, reader := d.role(s, "select on a_gold")
	for _, c := range []struct {
		who  *session
		code string
		u    refresh.Update
	}{
		{s, "42P01", refresh.Update{RefreshSelection: []string{"nope"}}},
		{s, "42702", refresh.Update{RefreshSelection: []string{"a_gold"}}},
		{s, "22023", refresh.Update{FullRefresh: true, RefreshSelection: []string{"z_bronze"}}},
		{s, "22023", refresh.Update{RefreshSelection: []string{"z_bronze"}, Overrides: []refresh.Override{{"m_silver", "a = 1"}}}},
		{s, "22023", refresh.Update{Overrides: []refresh.Override{{"m_silver", "a = 1"}, {"m_silver", "a = 2"}}}},
		{s, "0A000", refresh.Update{FullRefreshSelection: []string{"m_silver"}, Overrides: []refresh.Override{{"m_silver", "a = 1"}}}},
		{s, "42703", refresh.Update{Overrides: []refresh.Override{{"m_silver", "nope = 1"}}}},
		{s, "42601", refresh.Update{Overrides: []refresh.Override{{"m_silver", "a = 1) or (true"}}}},
		{s, "42601", refresh.Update{Overrides: []refresh.Override{{"m_silver", "a = 1; drop table src"}}}},
		{s, "42601", refresh.Update{Overrides: []refresh.Override{{"m_silver", ""}}}},
		{s, "42601", refresh.Update{Overrides: []refresh.Override{{"m_silver", "a = 1 async"}}}},
		{stranger, "42P01", refresh.Update{RefreshSelection: []string{"public.a_gold"}}},
		{stranger, "42704", refresh.Update{}},
		{reader, "42501", refresh.Update{RefreshSelection: []string{"public.a_gold"}}},
	} {
		if _, err := c.who.startUpdate(c.u); pgdiag.Code(err) != c.code {
			t.Errorf("%+v: got %v, want %s", c.u, err, c.code)
		}
	}
	s.expect("select count(*) from rwproxy.updates where cause = 'API_CALL'", "0")
	s.mustUpdate(refresh.Update{})
	if _, err := s.startUpdate(refresh.Update{}); pgdiag.Code(err) != "55006" {
		t.Errorf("a second update: %v", err)
	}
}

func TestAnUpdateThatOnlyValidatesWritesNothing(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	layers(s)
	before := s.rows("select xmin, * from z_bronze union all select xmin, * from a_gold")
	for u, want := range map[string]refresh.Update{
		"COMPLETED null": {ValidateOnly: true, FullRefresh: true},
		`FAILED flow "m_silver": column "nope" does not exist`: {ValidateOnly: true, Overrides: []refresh.Override{{"m_silver", "nope = 1"}}},
	} {
		id := s.mustUpdate(want)
		s.expect("select state, error from rwproxy.updates where validate_only and update_id = '"+id+"'", u)
		s.expect("select count(*) from rwproxy.refreshes where update_id = '"+id+"'", "0")
	}
	if len(d.queue()) > 0 {
		t.Error("something is queued")
	}
	s.expect("select xmin, * from z_bronze union all select xmin, * from a_gold", before...)
	s.must("drop table src cascade")
	id := s.mustUpdate(refresh.Update{ValidateOnly: true, RefreshSelection: []string{"z_bronze"}})
	s.expect("select state from rwproxy.updates where update_id = '"+id+"'", "FAILED")
}

func TestAStatementTimeoutIsAFailure(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	s.must(`create function slow() returns trigger language plpgsql as $$ begin perform pg_sleep(60); return new; end $$`,
		"create trigger slow before insert on by_day for each row execute function slow()",
		"insert into sales values ('2024-07-07', 'EU', 1)", "set statement_timeout = '300ms'")
	s.fails("57014", "refresh streaming table by_day")
	s.expect("select state from rwproxy.refreshes order by requested_at desc limit 1", "FAILED")
	s.must("set statement_timeout = 0")
	watcher := d.connect()
	ended := make(chan error, 1)
	go func() { ended <- s.run("refresh streaming table by_day") }()
	deadline := time.Now().Add(time.Minute)
	for watcher.rows("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")[0] == "0" {
		if time.Now().After(deadline) {
			t.Fatal("the refresh does not come to its trigger")
		}
		time.Sleep(5 * time.Millisecond)
	}
	watcher.expect("select rwproxy.cancel_refresh(refresh_id) from rwproxy.refreshes where state = 'RUNNING'", "t")
	err := <-ended
	if pgdiag.Code(err) != "57014" {
		t.Errorf("the canceled one: %v", err)
	}
	s.expect("select state, error from rwproxy.refreshes order by requested_at desc limit 1", "CANCELED canceled by postgres")
	s.expect("select count(*) from rwproxy.refresh_lock", "0")
}
