package integration

import (
	"strings"
	"testing"
)

func TestCreateOrRefreshCreatesATableThatIsMissing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders)
		if tag := s.exec(`create or refresh streaming table totals ` + totalsFlow); tag != "CREATE STREAMING TABLE" {
			t.Errorf("command tag %q", tag)
		}
		s.want(readTotals, afterCreate...)
	})
}

func TestCreateOrRefreshOfTheSameDefinitionRefreshes(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`insert into orders values (4, current_date, 1)`, `create or refresh streaming table totals `+totalsFlow)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
		s.want(`select count(*) from rwproxy.flows`, "1")
	})
}

func TestANewColumnIsNullOutsideTheWindow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`refresh streaming table totals where day = current_date - 2`,
			`create or refresh streaming table totals flow replace where day >= current_date - 1 by name
				select max(amount) as largest, day, count(*) as orders, sum(amount) as amount from orders group by day`)
		s.want(`select day - current_date, orders, amount, largest from totals order by 1`,
			"-2|1|10.00|NULL", "-1|1|20.00|20.00", "0|1|30.00|30.00")
	})
}

func TestAColumnThatTheQueryNoLongerReturnsStaysAndReadsNull(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`refresh streaming table totals where day = current_date - 2`,
			`create or refresh streaming table totals flow replace where day >= current_date - 1 by name
				select day, count(*) as orders from orders group by day`)
		s.want(readTotals, "-2|1|10.00", "-1|1|NULL", "0|1|NULL")
	})
}

func TestATypeChangeIsRefusedWithDataAndDefinitionIntact(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		before := s.rows(`select predicate, query, changed_at from rwproxy.flows`)
		s.exec(`insert into orders values (4, current_date, 1)`)
		e := s.fails("42804", `create or refresh streaming table totals flow replace where day >= current_date - 1 by name
			select day, count(*) as orders, sum(amount)::text as amount from orders group by day`)
		if !strings.Contains(e.Message, "amount") || e.Hint == "" {
			t.Errorf("message %q, hint %q", e.Message, e.Hint)
		}
		s.want(readTotals, afterCreate...)
		s.want(`select predicate, query, changed_at from rwproxy.flows`, before...)
		s.exec(`refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	})
}

func TestMetadataThatIsNotRepeatedIsRemoved(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders,
			`create streaming table totals comment 'old' tblproperties ('quality' = 'gold') `+totalsFlow,
			`create or refresh streaming table totals tblproperties ('team' = 'sales') `+totalsFlow)
		s.want(`select obj_description('totals'::regclass), properties ->> 'quality', properties ->> 'team' from rwproxy.flows`,
			"NULL|NULL|sales")
		s.exec(`create or refresh streaming table totals comment 'new' ` + totalsFlow)
		s.want(`select obj_description('totals'::regclass), properties ->> 'team' from rwproxy.flows`, "new|NULL")
	})
}

func TestAChangedDefinitionThatFailsChangesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`insert into orders values (0, current_date, 1)`)
		s.fails("22012", `create or refresh streaming table totals comment 'new' flow replace where day >= current_date - 1 by name
			select day, count(*) as orders, sum(amount / id) as amount, max(id) as newest from orders group by day`)
		s.want(readTotals, afterCreate...)
		s.want(columnsOf("totals"), "day|date|f", "orders|bigint|f", "amount|numeric|f")
		s.want(`select obj_description('totals'::regclass)`, "NULL")
		s.exec(`refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	})
}

func TestAChangedPredicateMovesTheWindowOnly(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`update orders set amount = amount + 1`,
			`create or refresh streaming table totals flow replace where day = current_date - 2 by name `+totalsQuery)
		s.want(readTotals, "-2|1|11.00", "-1|1|20.00", "0|1|30.00")
	})
}

func TestCreateOrRefreshTakesInNewColumnsOfAStar(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		copying := `create or refresh streaming table copy flow replace where day >= current_date - 1 by name select * from orders`
		s.exec(createOrders, insertOrders, copying, `alter table orders add column note text default 'new'`,
			`refresh streaming table copy`)
		s.want(columnsOf("copy"), "id|integer|f", "day|date|f", "amount|numeric(10,2)|f")
		s.exec(copying)
		s.want(`select id, amount, note from copy order by id`, "2|20.00|new", "3|30.00|new")
	})
}

func TestCreateOrRefreshOfSomethingElseIsRefused(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create table totals (day date, orders bigint, amount numeric)`,
			`insert into totals values (current_date, 7, 7)`)
		s.fails("42601", `create or refresh streaming table totals `+totalsFlow)
		s.want(readTotals, "0|7|7")
		s.fails("42601", strings.Replace(`create or refresh streaming table totals `+totalsFlow, "totals", "orders", 1))
		s.want(`select count(*) from orders`, "3")
	})
}
