package integration

import (
	"strings"
	"testing"
)

func TestARowWithoutAnAnswerMatchesOnNeitherSide(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table source (id integer, region text)`, `insert into source values (1, 'north'), (2, null), (3, 'south')`,
			`create streaming table target flow replace where region <> 'south' by name select * from source`)
		s.want(`select id, region from target order by id`, "1|north")
		s.exec(`insert into target values (9, null), (8, 'south'), (7, 'west')`, `refresh streaming table target`)
		s.want(`select id, region from target order by id`, "1|north", "8|south", "9|NULL")
		s.exec(`refresh streaming table target where (region = 'north') is not true`)
		s.want(`select id, region from target order by id`, "1|north", "2|NULL", "3|south")
	})
}

func TestAPredicateMayBeQualified(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create table regions (id integer, name text)`, `insert into regions select id, 'r' || id from orders`)
		for name, flow := range map[string]string{
			"alias":           `flow replace where o.day >= current_date by name select o.day, r.name from orders o join regions r using (id)`,
			"alias with as":   `flow replace where o.day >= current_date by name select o.day, r.name from orders as o join regions as r on r.id = o.id`,
			"other side":      `flow replace where r.name = 'r3' by name select o.day, r.name from orders o join regions r using (id)`,
			"table name":      `flow replace where orders.day >= current_date by name select orders.day, name from orders join regions using (id)`,
			"target":          `flow replace where target.day >= current_date by name select o.day, r.name from orders o join regions r using (id)`,
			"schema, target":  `flow replace where public.target.day >= current_date by name select o.day, r.name from orders o join regions r using (id)`,
			"renamed":         `flow replace where o.day >= current_date by name select o.day as "The Day", r.name from orders o join regions r using (id)`,
			"star of a table": `flow replace where o.day >= current_date by name select o.*, r.name from orders o join regions r using (id)`,
			"bare":            `flow replace where day >= current_date by name select o.day, r.name from orders o join regions r using (id)`,
		} {
			s.exec(`create streaming table target ` + flow)
			if got := s.value(`select string_agg(name, ',') from target`); got != "r3" {
				t.Errorf("%s: the window holds %s", name, got)
			}
			s.exec(`drop table target`)
		}
	})
}

func TestARefusedPredicateCreatesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`drop table totals`)
		for _, refused := range refusedPredicates {
			s.fails(refused.code, `create streaming table totals flow replace where `+refused.predicate+` by name `+totalsQuery)
			if left := s.flowObjects("totals"); left != "" {
				t.Errorf("%s\nleft behind: %s", refused.predicate, left)
			}
		}
		s.want(`select count(*) from orders`, "3")
	})
}

func TestARefusedOverrideChangesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`insert into orders values (4, current_date, 1)`)
		for _, refused := range refusedPredicates {
			if s.protocol == simple && strings.HasPrefix(refused.predicate, "day = current_date;") {
				continue // in a Query these are a refresh and another statement
			}
			s.fails(refused.code, `refresh streaming table totals where `+refused.predicate)
		}
		s.want(readTotals, afterCreate...)
		s.want(`select count(*) from orders`, "4")
	})
}

var refusedPredicates = []struct{ code, predicate string }{
	{"0AKDC", `day in (select day from orders)`},
	{"0AKDC", `exists (select 1 from orders)`},
	{"0AKDC", `day = (select max(day) from orders)`},
	{"0AKDC", `day = any (array(select day from orders))`},
	{"0AKDC", `day in (values (current_date))`},
	{"0AKDC", `day in (table orders)`},
	{"0AKDC", `day in ((with x as (select current_date as day) select day from x))`},
	{"42903", `max(day) = current_date`},
	{"42903", `row_number() over (order by day) = 1`},
	{"42703", `date >= current_date`},
	{"42703", `id = 1`}, // a column of the source, not of the target
	{"42703", `o.day >= current_date`},
	{"42703", `orders.id = 1`},
	{"42K09", `day`},
	{"42K09", `orders + 1`},
	{"42K09", `null::text`},
	{"42883", `nosuchfunction(day)`},
	{"42883", `orders = day`},
	{"42601", `day = current_date; drop table orders`},
	{"42601", `day = current_date) or (true`},
	{"42601", `day = current_date)); drop table orders; select ((1`},
	{"42601", `(day = current_date`},
	{"42601", `day = 'today`},
	{"42601", `day = $$today`},
	{"42601", `day = current_date /* open`},
	{"42601", `day >= `},
	{"42601", ``},
}

func TestAPredicateMayEndInAComment(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders,
			"create streaming table totals flow replace where day >= current_date - 1 -- the last days\n by name "+totalsQuery)
		s.want(readTotals, afterCreate...)
		s.exec(`refresh streaming table totals where day = current_date - 2 -- or true`)
		s.want(readTotals, "-2|1|10.00", "-1|1|20.00", "0|1|30.00")
	})
}

func TestOneRefreshHasOneClock(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table events (id integer, at timestamptz)`,
			`insert into events select n, now() - n * interval '1 millisecond' from generate_series(1, 500) n`,
			`create streaming table recent flow replace where at > now() - interval '250 ms' by name select * from events`)
		// Whatever rows the moving window holds: none is there twice.
		for range 5 {
			s.exec(`update events set at = now() - id * interval '1 millisecond'`, `refresh streaming table recent where at <= clock_timestamp() - interval '1 ms'`)
			s.exec(`refresh streaming table recent where true`)
			s.want(`select count(*), count(distinct id) from recent`, "500|500")
		}
	})
}

func TestATemporalPredicateIsResolvedAnewAtEachRefresh(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`refresh streaming table totals`)
		s.want(`select predicate from rwproxy.flows`, "day >= current_date - 1")
		today := s.value(`select current_date`)
		for _, window := range s.rows(`select window_predicate from rwproxy.refreshes`) {
			if !strings.Contains(window, today) || strings.Contains(strings.ToLower(window), "current_date") {
				t.Errorf("the window is recorded as %q, today is %s", window, today)
			}
		}
	})
}

func TestValuesThatTheirColumnRoundsDoNotPileUp(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table readings (at timestamp, value numeric)`,
			`insert into readings values ('2024-05-01 23:59', 9.96), ('2024-05-02 00:00', 1.04)`,
			`create streaming table target (at date, value numeric(4, 1))
				flow replace where at <= date '2024-05-02' and value >= 1 by name select * from readings`)
		s.want(`select * from target order by at`, "2024-05-01|10.0", "2024-05-02|1.0")
		for range 3 {
			s.exec(`refresh streaming table target`)
		}
		s.want(`select * from target order by at`, "2024-05-01|10.0", "2024-05-02|1.0")
		// The window speaks of what is stored: 10.0, not 9.96.
		s.exec(`refresh streaming table target where value >= 10`)
		s.want(`select * from target order by at`, "2024-05-01|10.0", "2024-05-02|1.0")
	})
}

func TestARowThatATriggerMovesOutOfTheWindowFailsTheRefresh(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create function backdate() returns trigger language plpgsql as $$ begin new.day := new.day - 10; return new; end $$`,
			`create trigger backdate before insert on totals for each row execute function backdate()`)
		s.fails("44000", `refresh streaming table totals`)
		s.want(readTotals, afterCreate...)
	})
}

func TestStringsMeanWhatTheyMeantWhereTheyWereTyped(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table notes (id integer, note text)`, `insert into notes values (1, 'it''s'), (2, 'a\b'), (3, 'plain')`,
			`set standard_conforming_strings = off`, `set escape_string_warning = off`,
			`create streaming table kept flow replace where note <> 'it\'s' and note <> 'x\') or (true' by name select id, note, 'a\\b' as typed from notes`)
		s.want(`select id, typed from kept order by id`, `2|a\b`, `3|a\b`)
		s.exec(`refresh streaming table kept where note = 'it\'s'`)
		s.want(`select id from kept order by id`, "1", "2", "3")
		s.exec(`set standard_conforming_strings = on`, `refresh streaming table kept`)
		s.want(`select id, typed from kept order by id`, `1|a\b`, `2|a\b`, `3|a\b`)
		s.exec(`update notes set id = 20 where id = 2`, `refresh streaming table kept where note = 'a\b'`)
		s.want(`select id from kept order by id`, "1", "3", "20")
		s.exec(`refresh streaming table kept full`)
		s.want(`select id from kept order by id`, "3", "20")
	})
}
