package integration

import "testing"

func TestDroppingTheTableDropsItsFlow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		for _, statement := range []string{
			`drop table totals`, `drop streaming table totals`, `DROP TABLE IF EXISTS public.totals CASCADE`,
			`drop streaming table if exists totals restrict`, `drop /* streaming */ table "totals"`,
		} {
			s.exec(`drop table if exists orders`)
			s.createTotals()
			if tag := s.exec(statement); tag != "DROP TABLE" {
				t.Errorf("%s\ncommand tag %q", statement, tag)
			}
			if left := s.flowObjects("totals"); left != "" {
				t.Errorf("%s\nleft behind: %s", statement, left)
			}
		}
	})
}

func TestManyTablesAreDroppedTogether(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create table plain (a integer)`, `create streaming table other `+totalsFlow)
		s.fails("42P01", `drop table totals, plain, nowhere, other`)
		s.want(`select count(*) from rwproxy.flows`, "2")
		s.exec(`drop table totals, plain, other`)
		s.want(`select count(*) from rwproxy.flows`, "0")
		s.want(`select count(*) from pg_class where relname in ('totals', 'plain', 'other')`, "0")
	})
}

func TestADropThatPostgresRefusesKeepsTheFlow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create view report as select * from totals`)
		e := s.fails("2BP01", `drop table totals`)
		if e.Detail == "" {
			t.Error("Postgres's detail is lost")
		}
		s.exec(`insert into orders values (4, current_date, 1)`, `refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
		s.exec(`drop table totals cascade`)
		s.want(`select count(*) from rwproxy.flows`, "0")
	})
}

func TestADropThatIsRolledBackKeepsTheFlow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`begin`, `drop table totals`)
		s.want(`select count(*) from rwproxy.flows`, "0")
		s.exec(`rollback`)
		s.want(`select count(*) from rwproxy.flows`, "1")
		s.exec(`insert into orders values (4, current_date, 1)`, `refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	})
}

func TestDroppingOtherTablesIsPostgres(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table plain (a integer)`)
		if tag := s.exec(`drop table plain`); tag != "DROP TABLE" {
			t.Errorf("command tag %q", tag)
		}
		s.notices = nil
		s.exec(`drop table if exists plain`)
		if !s.noticed(`table "plain" does not exist, skipping`) {
			t.Error("Postgres's notice is lost")
		}
		s.fails("42P01", `drop table plain`)
		s.fails("42601", `drop table`)
	})
}

func TestATableDroppedBehindTheProxyIsForgotten(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.createTotals()
		connect(t, d.direct).exec(`drop table totals`)
		s.fails("42P01", `refresh streaming table totals`)
		s.exec(createTotals)
		s.want(readTotals, afterCreate...)
		s.want(`select count(*) from rwproxy.flows`, "1")
		s.want(`select count(*) from pg_class where relkind = 'v' and relnamespace = 'rwproxy_flows'::regnamespace`, "1")
	})
}

func TestASchemaDroppedBehindTheProxyIsForgotten(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.exec(`create schema own`, `set search_path = own`)
		s.createTotals()
		connect(t, d.direct).exec(`drop schema own cascade`)
		s.exec(`create schema own`)
		s.createTotals()
		s.want(`select flow_name from rwproxy.flows`, "totals")
	})
}

func TestASourceOfAFlowIsProtected(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.fails("2BP01", `drop table orders`)
		s.fails("0A000", `alter table orders alter column amount type text`)
		s.exec(`refresh streaming table totals`)
	})
}
