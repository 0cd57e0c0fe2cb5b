package integration

import (
	"slices"
	"strings"
	"testing"
)

// Situations in which a naive DELETE and INSERT would lose or double rows. The
// refresh may be refused, or do the right thing; it may not do the wrong thing
// and report success.

// rightOrRefused runs a refresh after which totals must hold want, or, if it
// is refused, what it held before.
func rightOrRefused(t *testing.T, admin, s *session, statement string, want ...string) {
	t.Helper()
	before := admin.rows(readTotals)
	_, err := s.run(statement)
	got := admin.rows(readTotals)
	switch {
	case err == nil && !slices.Equal(got, want):
		t.Errorf("%s\nreported success; the table holds %q, want %q", statement, got, want)
	case err != nil && sqlState(err) == "":
		t.Errorf("%s\n%v", statement, err)
	case err != nil && !slices.Equal(got, before):
		t.Errorf("%s\nfailed with %s\nthe table held %q and holds %q", statement, describe(err), before, got)
	}
}

func TestRowLevelSecurityNeverDoublesRows(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		role := s.role(d, "limited")
		s.createTotals()
		s.exec(`alter table totals enable row level security`,
			`create policy visible on totals for select using (day < current_date)`,
			`create policy removable on totals for delete using (day < current_date)`,
			`create policy writable on totals for insert with check (true)`,
			`grant select, insert, delete on totals to `+role, `grant select on `+s.view("totals")+` to `+role)
		for _, statement := range []string{
			`refresh streaming table totals`, `refresh streaming table totals full`, `refresh streaming table totals where day = current_date`,
		} {
			rightOrRefused(t, s, s.as(d, role), statement, afterCreate...)
		}
		s.exec(`refresh streaming table totals`) // the owner sees every row
		s.want(readTotals, afterCreate...)
	})
}

func TestADeleteThatIsSuppressedNeverDoublesRows(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create function keep() returns trigger language plpgsql as 'begin return null; end'`)
		for _, change := range []struct{ make, unmake string }{
			{`create trigger keep before delete on totals for each row execute function keep()`, `drop trigger keep on totals`},
			{`create trigger keep before delete on totals for each row when (old.day = current_date) execute function keep()`, `drop trigger keep on totals`},
			{`create rule keep as on delete to totals do instead nothing`, `drop rule keep on totals`},
		} {
			s.exec(`drop table if exists totals, orders`)
			s.createTotals()
			s.exec(change.make)
			rightOrRefused(t, s, s, `refresh streaming table totals`, afterCreate...)
			rightOrRefused(t, s, s, `refresh streaming table totals full`, afterCreate...)
			s.exec(change.unmake)
		}
	})
}

func TestAFlowThatReadsItsOwnTableLosesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		rightOrRefused(t, s, s, `create or refresh streaming table totals flow replace where day >= current_date - 1 by name
			select day, orders, amount from totals`, afterCreate...)
		s.exec(`create view looking as select day, orders, amount from totals`)
		rightOrRefused(t, s, s, `create or refresh streaming table totals flow replace where day >= current_date - 1 by name
			select day, orders, amount from looking`, afterCreate...)
		s.exec(`refresh streaming table totals`)
		s.want(readTotals, afterCreate...)
	})
}

func TestAColumnOfTheQueryThatTheTableLostIsNotLeftOut(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		for _, change := range []struct{ make, read string }{
			{`alter table totals rename column amount to total`, `select day - current_date, orders, total from totals order by 1`},
			{`alter table totals drop column amount`, `select day - current_date, orders, 'gone' from totals order by 1`},
		} {
			s.exec(`drop table if exists totals, orders`)
			s.createTotals()
			s.exec(change.make)
			before := s.rows(change.read)
			s.fails("42703", `refresh streaming table totals`)
			s.want(change.read, before...)
			// The statement that changes definitions is the way out.
			s.exec(`create or refresh streaming table totals ` + totalsFlow)
			s.want(readTotals, afterCreate...)
		}
	})
}

func TestASnapshotFromBeforeAnotherRefreshNeverDoublesRows(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.createTotals()
		other := connect(t, d.url)
		for _, statement := range []string{
			`refresh streaming table totals`, `refresh streaming table totals full`, `refresh streaming table totals where day >= current_date - 1`,
		} {
			// Nothing to delete: no row of the table tells the two refreshes apart.
			s.exec(`truncate totals`, `begin isolation level repeatable read`)
			s.want(`select count(*) from totals`, "0")
			other.exec(statement)
			s.fails("40001", statement)
			s.exec(`rollback`)
			s.want(readTotals, afterCreate...)
		}
	})
}

func TestARefreshAfterARolledBackOneIsRight(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`begin`, `delete from orders where id = 3`, `refresh streaming table totals`, `rollback`, `refresh streaming table totals`)
		s.want(readTotals, afterCreate...)
	})
}

func TestATruncateDuringARefreshIsNotHalfSeen(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		g := s.createGated(d)
		g.close()
		outcome := g.startRefresh(s, `refresh streaming table gated`)
		// The source is locked from before the refresh's snapshot to its end.
		other := g.holder
		other.exec(`set lock_timeout = '100ms'`)
		other.fails("55P03", `truncate source`)
		other.fails("55P03", `alter table source alter column value type varchar using 'rewritten'`)
		other.exec(`insert into source values (4, 'later')`, `reset lock_timeout`)
		g.open()
		if err := done(t, outcome); err != nil {
			t.Fatal(describe(err))
		}
		s.want(readGated, afterRefresh...)
	})
}

func TestAFailureInAUsersTransactionIsRecorded(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`begin`)
		s.fails("22012", `refresh streaming table totals where 1 / (orders - orders) = 1`)
		s.exec(`rollback`)
		s.want(`select state, kind, error like '%division by zero%' from rwproxy.refreshes order by requested_at`,
			"COMPLETED|window|NULL", "FAILED|override|t")
	})
}

func TestDuplicateRowsOfAQueryStayDuplicates(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table source (day date, note text)`, `insert into source values (current_date, null), (current_date, null), (current_date, 'x')`,
			`create streaming table target flow replace where day = current_date by name select * from source`)
		for range 2 {
			s.want(`select note, count(*) from target group by note order by note`, "x|1", "NULL|2")
			s.exec(`refresh streaming table target`)
		}
	})
}

func TestAnyValueIsCopiedUnchanged(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create type mood as enum ('sad', 'ok')`, `create domain positive as integer check (value > 0)`, `create type pair as (a integer, b text)`,
			`create table source (id integer, a text, b bytea, c jsonb, d numeric, e float8, f timestamptz, g interval, h integer[], i mood,
				j positive, k pair, l xml, m uuid, n inet, o int4range, p bit varying, q char(4), r "char", s money, t point)`,
			`insert into source values (1, E'tab\there \\ ''quoted'' \u2603', '\x00ff', '{"a": [1, null]}', 1.10, 'NaN', 'infinity', '1 mon -3 days',
				'{{1,2},{3,null}}', 'ok', 5, row(1, 'x,"y"'), '<a>1</a>', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '10.0.0.1/8', '[1,5)', B'101', 'ab', 'z', 12.5, '(1,2)'),
				(2, '', '', 'null', 'NaN', '-0', '-infinity', '0', '{}', null, null, null, null, null, null, 'empty', B'', '', '', null, null)`,
			`create streaming table target flow replace where id > 0 by name select * from source`, `refresh streaming table target`)
		s.want(`select string_agg(original::text, ' ' order by id) = (select string_agg(written::text, ' ' order by id) from target written)
			from source original`, "t")
		s.want(`select string_agg(format_type(atttypid, atttypmod), ' ' order by attnum) from pg_attribute where attrelid = 'target'::regclass and attnum > 0`,
			strings.Join([]string{
				"integer text bytea jsonb numeric double precision timestamp with time zone interval integer[] mood",
				"positive pair xml uuid inet int4range bit varying character(4) \"char\" money point",
			}, " "))
	})
}
