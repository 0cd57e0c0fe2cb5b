package integration

import "testing"

func TestDatabricksSpellingsOfAPredicate(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders)
		for _, predicate := range []string{
			`day >= date_add(current_date(), -1)`,
			`day >= DATE_ADD(CURRENT_DATE(), -1)`,
			`day > date_sub(current_date(), 2)`,
			`day >= current_date() - 1`,
			`day > current_date() - interval 2 days`,
			`day > current_date() - INTERVAL '2' DAYS`,
			`day >= current_date() - interval 1 day`,
			"`day` >= current_date - 1",
			"totals.`day` >= current_date - 1",
			`datediff(current_date(), day) <= 1`,
			`day <=> current_date() or day <=> current_date() - 1`,
			`not day <=> current_date() - 2`,
			`day == current_date() or day == date_sub(current_date(), 1)`,
			`day > add_months(current_date(), 0) - 2`,
			`day >= current_timestamp() - interval 40 hours`,
			`nvl(day, current_date()) >= current_date() - 1`,
		} {
			s.exec(`create streaming table totals flow replace where ` + predicate + ` by name ` + totalsQuery)
			s.want(readTotals, afterCreate...)
			s.exec(`truncate totals`, `refresh streaming table totals where `+predicate)
			s.want(readTotals, afterCreate...)
			s.exec(`drop table totals`)
		}
	})
}

func TestDatabricksSpellingsOfAQuery(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders)
		for _, query := range []string{
			`select day, count(*) as orders, sum(amount) as amount from orders group by all`,
			"select `day`, count(*) as `orders`, sum(`amount`) as amount from `orders` group by `day`",
			`select day, count(*) as orders, sum(nvl(amount, 0)) as amount from orders where not amount <=> null group by all`,
			`select o.day, count(*) as orders, sum(o.amount) as amount from orders o where o.id == o.id group by all order by all`,
			`with recent as (select * from orders where day > current_date() - interval 30 days)
				select day, count(*) orders, sum(amount) amount from recent group by all`,
			`select day, count(*) as orders, sum(amount) as amount from
				(select day, amount from orders group by all) as once group by all`,
		} {
			s.exec(`create streaming table totals flow replace where day >= date_add(current_date(), -1) by name ` + query)
			s.want(readTotals, afterCreate...)
			s.exec(`drop table totals`)
		}
	})
}

func TestGroupByAllGroupsWhatHoldsNoAggregate(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table sales (region text, product text, price integer, n integer)`,
			`insert into sales values ('north', 'tea', 2, 10), ('north', 'tea', 2, 5), ('south', 'tea', 3, 1), ('south', null, 3, 1)`)
		for _, c := range []struct {
			query string
			rows  []string
		}{
			{`select region, sum(n) as n from sales group by all`, []string{"north|15", "south|2"}},
			{`select upper(region) as region, product, sum(n * price) as n from sales group by all`, []string{"NORTH|tea|30", "SOUTH|tea|3", "SOUTH|NULL|3"}},
			{`select region, product from sales group by all`, []string{"north|tea", "south|tea", "south|NULL"}},
			{`select 'all' as region, count(*) as n from sales group by all`, []string{"all|4"}},
			{`select count(*) as n from sales group by all`, []string{"4"}},
			{`select count(*) as n from sales where false group by all`, []string{"0"}},
			{`select region, case when sum(n) > 2 then 'many' else 'few' end as size from sales group by all`, []string{"north|many", "south|few"}},
			{`select region, (select max(price) from sales) as highest, count(*) filter (where product is not null) as n from sales group by all`, []string{"north|3|2", "south|3|1"}},
			{
				`select region, string_agg(distinct product, ',' order by product) as products from sales group by all having count(*) = 2 order by 1`,
				[]string{"north|tea", "south|tea"},
			},
		} {
			s.exec(`create streaming table target flow replace where true by name ` + c.query)
			s.want(`select * from target t order by t`, c.rows...)
			s.exec(`drop table target`)
		}
		e := s.fails("42803", `create streaming table target flow replace where true by name select price + count(*) as x from sales group by all`)
		if e.Position == 0 {
			t.Error("the error has no position")
		}
	})
}

func TestWhatPostgresUnderstandsKeepsItsMeaning(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create table source (id integer, "all" integer)`, `insert into source values (7, 1)`,
			`create streaming table target flow replace where id > 0 by name
				select id, id / 2 as half, 2 ^ 3 as power, concat('a', null) as text, 'a\nb' as raw, substr('abc', 0, 2) as start,
					interval '7' day as week, array[1, 2] as list, "all", jsonb '{"a": 1}' ? 'a' as has, 5 # 3 as bits, @ -5 as absolute
				from source`)
		s.want(`select * from target`, `7|3|8|a|a\nb|a|7 days|{1,2}|1|t|6|5`)
		s.exec(`drop table target`,
			`create streaming table target flow replace where id > 0 by name select id, count(*) as n, "all" from source group by "all", id`)
		s.want(`select * from target`, "7|1|1")
	})
}

func TestAStreamIsNotABatchQuery(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders)
		for _, from := range []string{`stream orders`, `stream(orders)`, `STREAM orders AS o`} {
			s.fails("0A000", `create streaming table target flow replace where day = current_date by name select day from `+from)
		}
		s.exec(`create table stream (day date)`,
			`create streaming table target flow replace where day = current_date by name select day from stream`)
	})
}

func TestTheUsersOwnFunctionWinsOverOurs(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders,
			`create function nvl(numeric, numeric) returns numeric language sql immutable as 'select -1::numeric'`,
			`create streaming table target flow replace where id > 0 by name select id, nvl(amount, 0.0) as amount from orders`)
		s.want(`select distinct amount from target`, "-1")
	})
}

func TestOrdinarySQLIsNotTranslated(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.fails("42601", `select current_date()`)
		s.fails("42883", `select date_add(current_date, -1)`)
		s.fails("42601", `select day, count(*) from orders group by all`)
		s.fails("42601", "select `day` from orders")
	})
}
