package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// control is a fault that is put into how changes are captured or used. The
// oracle must find it: else it could not find such a fault of ours.
type control struct {
	name string
	// shape is the name of one that the fault concerns.
	shape string
	// fault is SQL, run before each round: what is generated may be made anew.
	fault string
	// round is what meets the fault soon; oracle.round if nil.
	round func(o *oracle, gentle bool) string
	// harmless says that it changes how, not what: there is nothing to find.
	harmless bool
}

// controlRounds is how often a shape with a fault is refreshed, at most.
const controlRounds = 1000

// plainly is the SQL that replaces every trigger function by a simple one, which
// logs each image of each row: the log gets more rows and says the same.
func plainly(changed ...string) string {
	body := strings.NewReplacer(changed...).Replace(`
		begin
			case tg_op
			when 'TRUNCATE' then
				insert into {log} (xid, known, own) values (pg_current_xact_id(), 0, false);
			when 'INSERT' then
				insert into {log} (xid, known, own{columns}) select pg_current_xact_id(), {known}, {own}{values} from rwproxy_new t;
			when 'DELETE' then
				insert into {log} (xid, known, own{columns}) select pg_current_xact_id(), {known}, {own}{values} from rwproxy_old t;
			when 'UPDATE' then
				insert into {log} (xid, known, own{columns})
				select pg_current_xact_id(), {known}, {own}{values} from rwproxy_old as t
				union all
				select pg_current_xact_id(), {known}, {own}{values} from rwproxy_new as t;
			end case;
			return null;
		end`)
	return `do $do$
		declare
			captured record;
		begin
			for captured in
				select c.number, c.log::text, cardinality(c.columns)::text as known,
					coalesce(string_agg(', c' || a.attnum, '' order by u.position), '') as columns,
					coalesce(string_agg(', t.' || quote_ident(a.attname), '' order by u.position), '') as values,
					coalesce(string_agg('t.' || quote_ident(a.attname) || ' is not null', ' and ' order by u.position), 'true') as filled
				from rwproxy.capture c
				left join unnest(c.columns) with ordinality u (attnum, position) on true
				left join pg_attribute a on a.attrelid = c.relation and a.attnum = u.attnum
				group by c.relation
			loop
				execute format('create or replace function rwproxy_log.capture_%s() returns trigger language plpgsql
						security definer set search_path = pg_catalog, pg_temp as %L', captured.number,
					replace(replace(replace(replace(replace(replace($body$` + body + `$body$, '{log}', captured.log), '{known}', captured.known),
						'{columns}', captured.columns), '{values}', captured.values), '{filled}', captured.filled), '{own}',
						format('exists (select from rwproxy_log.own_write w where w.xid = pg_current_xact_id() and w.capture = %s)', captured.number)));
			end loop;
		end $do$`
}

// patched is the SQL that changes the text of a function.
func patched(function, from, to string) string {
	return fmt.Sprintf(`do $do$
		declare
			old text := pg_get_functiondef(%[1]s::regproc);
		begin
			if strpos(old, %[2]s) = 0 and strpos(old, %[3]s) = 0 then
				raise 'there is nothing to change in %%', old;
			end if;
			execute replace(old, %[2]s, %[3]s);
		end $do$`, literal(function), literal(from), literal(to))
}

func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// whenStored is the SQL of a trigger that changes what is stored of a table's
// last refresh.
func whenStored(condition, assignment string) string {
	return `create or replace function public.faulty() returns trigger language plpgsql as $$
			begin
				if ` + condition + ` then
					` + assignment + `;
				end if;
				return new;
			end $$;
		drop trigger if exists faulty on rwproxy.streaming_table;
		create trigger faulty before update on rwproxy.streaming_table for each row execute function public.faulty()`
}

var controls = []control{
	{name: "a plain log", shape: "aggregate by two", fault: plainly(), harmless: true},
	{name: "a plain log, joined", shape: "three tables, outer", fault: plainly(), harmless: true},
	{name: "new images only", shape: "aggregate by two", fault: plainly(`rwproxy_old t`, `rwproxy_old t where false`, `rwproxy_old as t`, `rwproxy_old as t where false`)},
	{name: "new images of an update", shape: "aggregate by two", fault: plainly(`rwproxy_old as t`, `rwproxy_old as t where false`)},
	{name: "old images of an update", shape: "aggregate by two", fault: plainly(`rwproxy_new as t`, `rwproxy_new as t where false`)},
	{name: "no keys that are null", shape: "aggregate", fault: plainly(`rwproxy_old t`, `rwproxy_old t where {filled}`, `rwproxy_new t`, `rwproxy_new t where {filled}`,
		`rwproxy_old as t`, `rwproxy_old as t where {filled}`, `rwproxy_new as t`, `rwproxy_new as t where {filled}`)},
	{name: "one row of each statement", shape: "aggregate", fault: plainly(`rwproxy_old t`, `rwproxy_old t limit 1`, `rwproxy_new t`, `rwproxy_new t limit 1`,
		`rwproxy_old as t`, `(select * from rwproxy_old limit 1) as t`, `rwproxy_new as t`, `(select * from rwproxy_new limit 1) as t`)},
	{name: "updates of keys only", shape: "aggregate by two", fault: plainly(
		`rwproxy_old as t`, `rwproxy_old as t where row(0{values})::text not in (select row(0{values})::text from rwproxy_new as t)`,
		`rwproxy_new as t`, `rwproxy_new as t where row(0{values})::text not in (select row(0{values})::text from rwproxy_old as t)`)},
	{name: "writes of others taken for a refresh's", shape: "filter", fault: plainly(`{own}`, `true`), round: (*oracle).roundWithOthers},
	{name: "a cursor by the newest transaction", shape: "aggregate", fault: whenStored(`new.cursor is not null`,
		`new.cursor := pg_snapshot_xmax(new.cursor) || ':' || pg_snapshot_xmax(new.cursor) || ':'`)},
	{name: "a cursor that sees its own transaction", shape: "filter", fault: `create or replace function rwproxy.current_cursor() returns pg_snapshot language sql stable as 'select pg_current_snapshot()'`, round: (*oracle).roundInTransaction},
	{name: "a cursor that overrides move", shape: "filter", fault: whenStored(`new.last_refresh_id is distinct from old.last_refresh_id`,
		`new.cursor := (select r.cursor from rwproxy.refresh r where r.id = new.last_refresh_id)`), round: (*oracle).roundWithOverride},
	{name: "a fingerprint of nothing", shape: "partitions", fault: `create or replace function rwproxy.fingerprint(flow_view oid, target oid) returns text language sql stable as 'select ''same'''`, round: (*oracle).roundWithChange},
	{name: "a window that is not remembered", shape: "window that moves", fault: whenStored(`true`, `new.last_window := 'true'`), round: (*oracle).roundAsTimePasses},
}

// Each control is played until the oracle finds it.
func TestTheOracleFindsFaults(t *testing.T) {
	t.Parallel()
	seed := number(t, seedVariable, rand.Uint64())
	t.Logf("%s=%d", seedVariable, seed)
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			// The fault is in all of its database.
			o := newOracle(t, newDatabase(t), shapeNamed(t, c.shape), "faulty", seed^hash(c.name), server.Major())
			admin := connect(t, o.direct)
			rounds, play := controlRounds, c.round
			if play == nil {
				play = (*oracle).round
			}
			if c.harmless {
				rounds = defaultRounds
			}
			for round := range rounds {
				inject(admin, c.fault)
				wrong := play(o, round%2 == 1)
				switch {
				case wrong == "":
					continue
				case c.harmless:
					o.fatalf("%s", wrong)
				}
				t.Logf("found in round %d", round)
				return
			}
			if !c.harmless {
				t.Errorf("not found in %d rounds: %s", rounds, o.techniques())
			}
		})
	}
}

// inject makes a fault, which can meet the collection of garbage at the same
// function.
func inject(admin *session, fault string) {
	admin.t.Helper()
	var err error
	for range 10 {
		if _, err = admin.run(fault); err == nil || sqlState(err) != "XX000" {
			break
		}
	}
	if err != nil {
		admin.t.Fatal(describe(err))
	}
}

// Rounds that do one thing more often.

func (o *oracle) roundAsTimePasses(bool) string {
	const growing = `at < now()`
	if o.window != growing {
		o.window = growing
		return o.replaced(`create or refresh streaming table target `+o.flow(), o.window, o.window)
	}
	o.write(true)
	return o.refresh(true)
}

func (o *oracle) roundWithOthers(bool) string {
	o.writeTarget()
	return o.refresh(true)
}

func (o *oracle) roundInTransaction(gentle bool) string {
	if o.write(true); gentle {
		return o.refresh(true)
	}
	return o.refreshInTransaction()
}

func (o *oracle) roundWithOverride(gentle bool) string {
	if o.write(true); gentle {
		return o.refresh(true)
	}
	override := pick(o.random, append(o.shape.windows[:len(o.shape.windows):len(o.shape.windows)], "false"))
	return o.replaced(`refresh streaming table target where `+override, override, override)
}

func (o *oracle) roundWithChange(bool) string {
	o.changeAlone()
	return o.refresh(true)
}

func shapeNamed(t *testing.T, name string) shape {
	t.Helper()
	for _, sh := range shapes {
		if sh.name == name {
			return sh
		}
	}
	t.Fatalf("there is no shape %q", name)
	return shape{}
}
