package integration

import (
	"fmt"
	"strings"
	"testing"
)

// ended waits until a refresh has ended, and returns how.
func (s *session) ended(id string) string {
	s.t.Helper()
	state := ""
	eventually(s.t, "refresh "+id+" ends", func() bool {
		state = s.value(`select state || coalesce(': ' || error, '') from rwproxy.refreshes where refresh_id = '` + id + `'`)
		return !strings.HasPrefix(state, "QUEUED") && !strings.HasPrefix(state, "RUNNING")
	})
	return state
}

// holdTotals keeps refreshes of totals from beginning until the function that it
// returns is called.
func holdTotals(t *testing.T, d database) (release func()) {
	t.Helper()
	holder := connect(t, d.direct)
	holder.exec(`select pg_advisory_lock(1920430194, 'totals'::regclass::oid::integer)`)
	return func() { holder.exec(`select pg_advisory_unlock_all()`) }
}

func TestTheRefreshOfAnotherIsNotSeenCanceledOrRun(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.createTotals()
		s.exec(`insert into orders values (4, current_date, 1)`)
		stranger, reader, writer, owner := s.role(d, "stranger"), s.role(d, "reader"), s.role(d, "writer"), s.role(d, "owner")
		s.exec(`alter table totals owner to `+owner, `grant select on totals to `+reader, `grant all on totals to `+writer)
		release := holdTotals(t, d)
		id := s.async(refreshAsync)
		seen := `select (select count(*) from rwproxy.refreshes where refresh_id = '` + id + `')
			+ (select count(*) from rwproxy.updates where update_id = '` + id + `')
			+ (select count(*) from rwproxy.event_log where origin ->> 'update_id' = '` + id + `')`
		s.as(d, stranger).want(seen, "0")
		s.as(d, reader).want(`select state from rwproxy.refreshes where refresh_id = '`+id+`'`, "QUEUED")
		for _, role := range []string{stranger, reader, writer} {
			other := s.as(d, role)
			refusal := other.fails("42501", `select rwproxy.cancel_refresh('`+id+`')`)
			if refusal.Hint == "" || strings.Contains(refusal.Where, "rwproxy.request") {
				t.Errorf("the refusal: %v, hint %q, where %q", refusal, refusal.Hint, refusal.Where)
			}
			other.want(`select proname from pg_proc where pronamespace = 'rwproxy'::regnamespace and prosecdef
				and prorettype <> 'trigger'::regtype and has_function_privilege(oid, 'execute')`, "is_streaming_table")
			for _, step := range []string{"read_queue", "requeue_lost"} {
				other.fails("42501", `insert into rwproxy.request (step, arguments) values ('`+step+`', '{"limit": 9}') returning result`)
			}
			for _, step := range []string{"start_refresh", "plan_refresh", "finish_refresh", "fail_refresh", "cancel_refresh"} {
				if _, err := other.run(fmt.Sprintf(`insert into rwproxy.request (step, arguments) select '%s', jsonb_build_object(
					'id', '%s', 'refresh_id', '%[2]s', 'update_id', '%[2]s', 'target', c.oid::bigint, 'oid', c.oid::bigint, 'schema', 'public',
					'name', 'totals', 'kind', 'window', 'cause', 'statement', 'error', 'x', 'code', 'XX000')
					from pg_class c where relname = 'totals' returning result`, step, id)); err == nil {
					t.Errorf("%s may %s", role, step)
				}
			}
			other.fails("42501", `select rwproxy.enqueue((select id from rwproxy.streaming_table), 'api', 'postgres', 'window', '{}')`)
		}
		s.want(`select state from rwproxy.refreshes where refresh_id = '`+id+`'`, "QUEUED")
		s.as(d, owner).want(`select rwproxy.cancel_refresh('`+id+`')`, "t")
		s.as(d, owner).want(`select rwproxy.cancel_refresh('`+id+`')`, "f")
		release()
		if state := s.ended(id); !strings.HasPrefix(state, "CANCELED: canceled by "+owner) {
			t.Errorf("it ended as %s", state)
		}
		s.want(readTotals, afterCreate...)
	})
}

// What a function can do to become somebody else, at once and when the refresh
// commits. Each way notes who it has become.
var escapes = []string{
	`reset role`, `set role none`, `set role postgres`, `reset session authorization`, `set session authorization default`, `set session authorization postgres`,
	`select set_config('role', 'none', false)`, `select set_config('role', 'postgres', false)`, `select set_config('session_authorization', 'postgres', false)`,
}

// createEscapes makes a function `escape()` that tries all of that, a deferred
// trigger that does, and a held cursor. All of it notes whose rights it had.
func (s *session) createEscapes() {
	s.t.Helper()
	s.exec(`create table seen (at text, who name, login name, power boolean)`,
		`create function note(at text) returns void language sql as $$
			insert into public.seen select at, current_user, session_user, rolsuper or rolcreaterole or pg_has_role(rolname, 'postgres', 'member')
				from pg_catalog.pg_roles where rolname = current_user $$`,
		`create function try_all(at text) returns void language plpgsql as $$
			declare
				way text;
			begin
				perform public.note(at);
				foreach way in array array[$way$`+strings.Join(escapes, `$way$, $way$`)+`$way$] loop
					begin
						execute way;
						perform public.note(at || ': ' || way);
						perform pg_catalog.count(*) from pg_catalog.pg_authid;
						perform public.note(at || ' reads pg_authid: ' || way);
					exception when others then
						null;
					end;
				end loop;
			end $$`,
		`create table later (a integer)`,
		`create function at_commit() returns trigger language plpgsql as $$
			begin
				perform public.try_all('a deferred trigger');
				return null;
			end $$`,
		`create constraint trigger later after insert on later deferrable initially deferred for each row execute function at_commit()`,
		`create function held() returns integer language plpgsql volatile as $$
			begin
				perform public.try_all('a held cursor');
				return 1;
			end $$`,
		`create function escape() returns boolean language plpgsql as $$
			begin
				perform public.try_all('a predicate');
				insert into public.later values (1);
				begin
					execute 'declare kept cursor with hold for select public.held()';
				exception when duplicate_cursor then
					null;
				end;
				return true;
			end $$`)
}

func TestWhatRunsLaterNeverHasMoreRightsThanItsAuthor(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	s.createTotals()
	author := s.role(d, "author")
	s.exec(`grant select, insert, delete, trigger on totals to `+author, `grant select on orders to `+author,
		`grant create on schema public to `+author, `grant select on `+s.view("totals")+` to `+author)
	limited := s.as(d, author)
	limited.createEscapes()
	id := limited.async(`refresh streaming table totals where public.escape() and day = current_date - 2 async`)
	if state := limited.ended(id); state != "COMPLETED" {
		t.Errorf("it ended as %s", state)
	}
	s.want(readTotals, "-2|1|10.00", "-1|1|20.00", "0|1|30.00")
	for _, at := range []string{"a predicate", "a deferred trigger", "a held cursor"} {
		s.want(`select count(*) > 0 from seen where at = '`+at+`'`, "t")
	}
	s.want(`select distinct who from seen where at not like '%: %'`, author)
	s.want(`select distinct at, who, login from seen where power or who = 'postgres' or login = 'postgres' or at like '% reads pg_authid: %'`)

	// The query of a flow of its own, which its schedule runs.
	s.exec(`truncate seen`)
	limited.exec(`create streaming table mine flow replace where true by name select 1 as a, public.escape() as b`, `truncate seen`,
		`alter streaming table mine add schedule cron '* * * * * ?'`)
	eventually(t, "the schedule has run", func() bool {
		return s.value(`select count(*) > 0 from rwproxy.refreshes where target_table = 'mine' and cause = 'schedule' and state = 'COMPLETED'`) == "t"
	})
	limited.exec(`alter streaming table mine drop schedule`)
	s.want(`select distinct who from seen where at not like '%: %'`, author)
	s.want(`select distinct at, who, login from seen where power or who = 'postgres' or login = 'postgres' or at like '% reads pg_authid: %'`)
}

// The lock of a refresh is its session's, and code of a user runs in there.
func TestAFunctionThatGivesUpTheLocksOfItsSessionDoesNotRunItsRefreshTwice(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	s := connect(t, d.url)
	s.createTotals()
	s.exec(`create table ran (xid xid8)`,
		`create function give_up() returns trigger language plpgsql as $$
			begin
				insert into ran values (pg_current_xact_id());
				perform pg_advisory_unlock_all();
				perform pg_sleep(5);
				return null;
			end $$`,
		`create trigger give_up after insert on totals for each statement execute function give_up()`,
		`insert into orders values (4, current_date, 1)`)
	id := s.async(refreshAsync)
	state := s.ended(id)
	s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	s.want(`select count(*) from ran`, "1")
	if state != "COMPLETED" {
		t.Errorf("it ended as %s", state)
	}
}
