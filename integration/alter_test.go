package integration

import "testing"

func TestAlterStreamingTable(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		tag := s.exec(`alter streaming table totals add schedule every 3 hours`,
			`alter streaming table totals alter schedule every 1 week`,
			`alter streaming table public.totals set tblproperties ('pipelines.reset.allowed' = false, 'team' = 'sales')`,
			"alter streaming table totals alter column `day` comment 'the day'")
		if tag != "ALTER STREAMING TABLE" {
			t.Errorf("command tag %q", tag)
		}
		s.want(`select schedule, properties from rwproxy.flows`, `EVERY 1 WEEKS|{"team": "sales", "pipelines.reset.allowed": "false"}`)
		s.want(`describe totals day`, "col_name|day", "data_type|date", "comment|the day")
		s.fails("42000", `refresh streaming table totals full`)
		s.exec(`alter streaming table totals unset tblproperties (pipelines.reset.allowed)`, `refresh streaming table totals full`,
			`alter streaming table totals drop schedule`)
		s.want(`select schedule, properties from rwproxy.flows`, `NULL|{"team": "sales"}`)
	})
}

func TestAnAlterIsPartOfItsTransaction(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`begin`, `alter streaming table totals set tblproperties ('a' = 'b')`, `savepoint before`)
		s.fails("42704", `alter streaming table totals drop schedule`)
		s.exec(`rollback to before`, `alter streaming table totals add schedule every 1 day`)
		s.want(`show tblproperties totals`, "a|b")
		s.exec(`rollback`)
		s.want(`show tblproperties totals`)
	})
}

func TestAnOwnerGivesTheTableAndItsFlowAway(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.createTotals()
		heir := s.role(d, "heir")
		s.exec(`grant all on schema public to `+heir, `grant select on orders to `+heir, `alter streaming table totals owner to `+heir)
		s.want(`select owner from rwproxy.flows`, heir)
		h := s.as(d, heir)
		h.exec(`refresh streaming table totals`, `select * from event_log(table(totals))`)
		h.exec(`alter streaming table totals set tblproperties ('a' = 'b')`)
		s.exec(`drop table totals`)
	})
}

func TestAStreamingTablesColumnsAreAlteredByPostgres(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.fails("42601", `alter streaming table totals add column note text`)
		s.exec(`alter table totals add column note text default 'x'`, `refresh streaming table totals`)
		s.want(`describe totals note`, "col_name|note", "data_type|text", "comment|NULL")
	})
}
