package refresh_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/flowstate"
	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/refresh"
	"github.com/rwproxy/rwproxy/rewrite"
)

// async runs a REFRESH … ASYNC and returns the id of its update.
func (s *session) async(sql string) string {
	s.t.Helper()
	rows := s.shown(sql)
	if len(rows) != 1 {
		s.t.Fatalf("%s\nreturned %v", sql, rows)
	}
	id, _, _ := strings.Cut(rows[0], "|")
	return id
}

func never(string, int) (time.Duration, bool) { return 0, false }

// queue is what may begin now.
func (d *database) queue() []flowstate.Job {
	d.t.Helper()
	var q flowstate.Queue
	err := d.service.Do(d.t.Context(), d.name(), func(s pgsession.Session) (err error) {
		q, err = flowstate.ReadQueue(d.t.Context(), s, 100)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return q.Ready
}

func (d *database) name() string {
	config, err := pgx.ParseConfig(d.url)
	if err != nil {
		d.t.Fatal(err)
	}
	return config.Database
}

// runner is a session that runs jobs of a role.
func (d *database) runner(role string) *session {
	d.t.Helper()
	conn, err := d.service.ConnectRunner(d.t.Context(), d.name(), role)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close(context.Background()) })
	return &session{Session: pgsession.FromPgx(conn), t: d.t, engine: d.engine, conn: conn}
}

// runQueue runs what is queued until nothing is, and returns the errors.
func (d *database) runQueue() error {
	d.t.Helper()
	var failures []error
	for jobs := d.queue(); len(jobs) > 0; jobs = d.queue() {
		for _, job := range jobs {
			s := d.runner(job.RequestedBy)
			failures = append(failures, d.engine.RunQueued(d.t.Context(), s, job, never))
			s.conn.Close(d.t.Context())
		}
	}
	return errors.Join(failures...)
}

func (d *database) mustRunQueue() {
	d.t.Helper()
	if err := d.runQueue(); err != nil {
		d.t.Fatal(err)
	}
}

var roles atomic.Int64

// role creates a role that may refresh by_day, and returns a session of it.
func (d *database) role(super *session, may ...string) (string, *session) {
	d.t.Helper()
	name := fmt.Sprintf("async_%d", roles.Add(1))
	super.must("create role " + name + " login")
	d.t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), d.url)
		if err != nil {
			d.t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		if _, err := conn.Exec(context.Background(), "drop owned by "+name+" cascade; drop role "+name); err != nil {
			d.t.Error(err)
		}
	})
	for _, right := range may {
		super.must("grant " + right + " to " + name)
	}
	s := d.connect()
	s.must("set role " + name)
	return name, s
}

func TestAnAsyncRefreshIsRunLater(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.engine.StatusURL = func(database, updateID string) string { return "https://proxy/" + database + "/" + updateID }
	s := d.connect()
	sales(s)
	s.must("insert into sales values ('2024-01-02', 'EU', 7)")
	rows := s.shown("refresh streaming table by_day async")
	id, url, _ := strings.Cut(rows[0], "|")
	if url != "https://proxy/"+d.name()+"/"+id {
		t.Errorf("it returned %v", rows)
	}
	s.expect("select state, requested_by, window_predicate from rwproxy.refreshes where refresh_id = '"+id+"'", "QUEUED postgres null")
	s.expect("select count(*) from by_day where day = '2024-01-02'", "0")
	d.mustRunQueue()
	s.expect("select state, kind, cause from rwproxy.refreshes where refresh_id = '"+id+"'", "COMPLETED window statement")
	s.expect("select amount from by_day where day = '2024-01-02'", "7.00")
	if len(d.queue()) > 0 {
		t.Error("there is something left")
	}
}

func TestAnAsyncRefreshOfATransactionIsRunIfThatCommits(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	for _, end := range []string{"rollback", "commit"} {
		s.must("begin")
		s.joined = true
		s.async("refresh streaming table by_day async")
		s.expect("select current_setting('search_path')", `"$user", public`)
		s.joined = false
		s.must(end)
		if got, want := len(d.queue()), map[string]int{"rollback": 0, "commit": 1}[end]; got != want {
			t.Errorf("after %s %d refreshes are queued", end, got)
		}
	}
}

func TestTwoAsyncRefreshesAreRunTwice(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	s.async("refresh streaming table by_day async")
	s.async("refresh streaming table by_day full async")
	s.must("refresh streaming table by_day")
	s.expect("select state, kind from rwproxy.refreshes order by requested_at offset 1", "QUEUED window", "QUEUED full", "COMPLETED window")
	d.mustRunQueue()
	s.expect("select state, kind from rwproxy.refreshes order by requested_at offset 1", "COMPLETED window", "COMPLETED full", "COMPLETED window")
}

func TestAnOverrideIsReadAsItWasTyped(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	s.must("create table src (a text)", `insert into src values ('x\y'), ('z')`,
		"create streaming table dst flow replace where true by name select a from src",
		"truncate dst", "set standard_conforming_strings = off")
	statement, err := rewrite.Parse(`refresh streaming table dst where a = 'x\\y' -- all
		async`, rewrite.Lexical{BackslashEscapes: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.engine.Run(t.Context(), s, statement); err != nil {
		t.Fatal(err)
	}
	s.expect("select window_predicate from rwproxy.refreshes where state = 'QUEUED'", `a = 'x\\y'`)
	d.mustRunQueue()
	s.expect("select a from dst", `x\y`)
}

func TestABadAsyncRefreshFailsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	s.must("alter table by_day owner to current_user", "create table plain (a int)")
	_, reader := d.role(s, "select on by_day")
	_, writer := d.role(s, "select, insert, delete on by_day")
	before := s.rows("select * from rwproxy.refreshes")
	for _, c := range []struct {
		who       *session
		code, sql string
	}{
		{s, "42P01", "refresh streaming table nowhere async"},
		{s, "42601", "refresh streaming table plain async"},
		{s, "42703", "refresh streaming table by_day where nope = 1 async"},
		{s, "42903", "refresh streaming table by_day where sum(amount) > 1 async"},
		{s, "22007", "refresh streaming table by_day where day > 'x' async"},
		{reader, "42501", "refresh streaming table by_day async"},
		{writer, "42501", "refresh streaming table by_day async"}, // not the flow's view
	} {
		if got := c.who.fails(c.code, c.sql); got == nil {
			t.Errorf("%s: no error", c.sql)
		}
	}
	s.must("alter streaming table by_day set tblproperties ('pipelines.reset.allowed' = 'false')")
	s.fails("42000", "refresh streaming table by_day full async")
	s.expect("select count(*) from rwproxy.refreshes", fmt.Sprint(len(before)))
}

func TestAQueuedRefreshRunsTheDefinitionOfItsTime(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	s.async("refresh streaming table by_day async")
	s.must("alter table by_day rename to per_day",
		"create or refresh streaming table per_day flow replace where day >= '2024-01-01' by name select day, 2 * sum(amount) as amount from sales group by day",
		"insert into sales values ('2024-03-01', 'EU', 1)")
	d.mustRunQueue()
	s.expect("select amount from per_day where day = '2024-03-01'", "2.00")
	id := s.async("refresh streaming table per_day full async")
	s.must("alter streaming table per_day set tblproperties ('pipelines.reset.allowed' = 'false')")
	if code := pgdiag.Code(errors.Unwrap(first(d.runQueue()))); code != "42000" {
		t.Errorf("a reset that is not allowed any more: %s", code)
	}
	s.expect("select state, error, error_hint is not null from rwproxy.refreshes where refresh_id = '"+id+"'",
		`FAILED table "per_day" cannot be fully refreshed t`)
}

// first is the first of joined errors, wrapped.
func first(err error) error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return fmt.Errorf("first: %w", joined.Unwrap()[0])
	}
	return err
}

func TestARoleThatMayNotRefreshIsToldWhatItNeeds(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	view := s.rows("select view::regclass from rwproxy.streaming_table")[0]
	name, writer := d.role(s, "select on "+view)
	for _, granted := range []string{"", "select, insert on by_day"} {
		if granted != "" {
			s.must("grant " + granted + " to " + name)
		}
		for _, statement := range []string{"refresh streaming table by_day", "refresh streaming table by_day async"} {
			err := writer.fails("42501", statement)
			if err.Message != "permission denied for table by_day" || !strings.HasPrefix(err.Hint, "A role that refreshes needs SELECT, INSERT and DELETE on the table") {
				t.Errorf("%s with %q: %s. %s", statement, granted, err.Message, err.Hint)
			}
		}
	}
}

func TestARequesterWithoutRightsFails(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	view := s.rows("select view::regclass from rwproxy.streaming_table")[0]
	name, writer := d.role(s, "select, insert, delete on by_day", "select on "+view)
	for right, want := range map[string]string{
		"delete on by_day": "permission denied for table by_day",
		"select on by_day": "permission denied for table by_day",
	} {
		id := writer.async("refresh streaming table by_day async")
		s.must("revoke " + right + " from " + name)
		if err := d.runQueue(); pgdiag.Code(errors.Unwrap(first(err))) != "42501" {
			t.Errorf("without %s: %v", right, err)
		}
		s.expect("select state, requested_by, error from rwproxy.refreshes where refresh_id = '"+id+"'", "FAILED "+name+" "+want)
		s.must("grant " + right + " to " + name)
	}
}

func TestAnOverrideRunsAsItsAuthor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	view := s.rows("select view::regclass from rwproxy.streaming_table")[0]
	name, writer := d.role(s, "select, insert, delete on by_day", "select on "+view)
	s.must("create table seen (who text)", "grant insert on seen to public",
		`create function spy(boolean) returns boolean language plpgsql as $$ begin
		    insert into seen values (current_user); reset role; insert into seen values (current_user); return $1; end $$`)
	writer.async("refresh streaming table by_day where spy(day > '2020-01-01') async")
	d.mustRunQueue()
	s.expect("select distinct who from seen", name)
}

func TestAQueuedRefreshIsTriedAgainIfItsRunnerSaysSo(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	id := s.async("refresh streaming table by_day async")
	s.must("alter table sales rename column amount to value", "insert into sales values ('2024-05-05', 'EU', 0)",
		"create function fails() returns trigger language plpgsql as $$ begin raise exception 'busy' using errcode = '40001'; end $$",
		"create trigger fails before insert on by_day execute function fails()")
	asked := ""
	again := func(code string, attempt int) (time.Duration, bool) {
		asked = fmt.Sprint(code, " ", attempt)
		return 4 * time.Minute, true
	}
	runner := d.runner("postgres")
	if err := d.engine.RunQueued(t.Context(), runner, d.queue()[0], again); pgdiag.Code(err) != "40001" {
		t.Fatalf("got %v", err)
	}
	if asked != "40001 0" {
		t.Errorf("asked %s", asked)
	}
	s.expect("select state, attempt, error, due_at > now() + interval '3 minutes' from rwproxy.refreshes where refresh_id = '"+id+"'",
		"QUEUED 1 busy t")
	s.must("drop trigger fails on by_day", "update rwproxy.refresh set due_at = now()")
	d.mustRunQueue()
	s.expect("select state, attempt, error from rwproxy.refreshes where refresh_id = '"+id+"'", "COMPLETED 1 null")
}

func TestAJobOfABusyTableIsLeft(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := d.connect()
	sales(s)
	s.async("refresh streaming table by_day async")
	job, runner, holder := d.queue()[0], d.runner("postgres"), d.connect()
	class, object := flowstate.LockKeys(job.Target)
	holder.must(fmt.Sprintf("select pg_advisory_lock(%d, %d)", class, object))
	if err := d.engine.RunQueued(t.Context(), runner, job, never); err != nil {
		t.Fatal(err)
	}
	s.expect("select state from rwproxy.refreshes order by requested_at desc limit 1", "QUEUED")
	holder.must("select pg_advisory_unlock_all()")
	d.mustRunQueue()
	if err := d.engine.RunQueued(t.Context(), runner, job, never); err != nil {
		t.Errorf("a job that was done: %v", err)
	}
	s.expect("select count(*) from rwproxy.refreshes where update_id = '"+job.UpdateID+"' and state = 'COMPLETED'", "1")
	s.expect("select count(*) from rwproxy.refresh_lock", "0")
}

var _ refresh.Client = (*session)(nil)
