package integration

import (
	"strings"
	"testing"
)

func TestCreatingATableLoadsItsWindowAtOnce(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders)
		if tag := s.exec(createTotals); tag != "CREATE STREAMING TABLE" {
			t.Errorf("command tag %q", tag)
		}
		s.want(readTotals, afterCreate...)
	})
}

func TestColumnsThatAreNotDeclaredAreThoseOfTheQuery(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals flow replace where day >= current_date by name
			select day, count(*) as orders, sum(amount)::numeric(12, 2) as amount, array_agg(id) as ids, 'x'::varchar(7) as note
			from orders group by day`)
		s.want(columnsOf("totals"),
			"day|date|f", "orders|bigint|f", "amount|numeric(12,2)|f", "ids|integer[]|f", "note|character varying(7)|f")
	})
}

func TestDeclaredColumnsKeepTheirTypesConstraintsAndDefaults(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals (
				note text default 'none',
				day date not null primary key comment 'the day of the order',
				orders int check (orders > 0),
				amount double,
				absent string
			) flow replace where day >= current_date - 1 by name
			select sum(amount) as amount, day, count(*) as orders from orders group by day`)
		s.want(columnsOf("totals"),
			"note|text|f", "day|date|t", "orders|integer|f", "amount|double precision|f", "absent|text|f")
		// A column that the query does not return reads NULL, or its default.
		s.want(`select day - current_date, orders, amount, absent from totals order by 1`, "-1|1|20|NULL", "0|1|30|NULL")
		// Since PostgreSQL 18, NOT NULL is there too.
		s.want(`select contype, conname from pg_constraint where conrelid = 'totals'::regclass and contype <> 'n' order by 1`,
			"c|totals_orders_check", "p|totals_pkey")
		s.want(`select col_description('totals'::regclass, attnum) from pg_attribute
			where attrelid = 'totals'::regclass and attname = 'day'`, "the day of the order")
		s.exec(`insert into totals (day) values (current_date - 9)`)
		s.want(`select note from totals where day = current_date - 9`, "none")
	})
}

func TestARefreshThatViolatesAConstraintChangesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals (day date, orders bigint check (orders < 2), amount numeric) `+totalsFlow)
		s.exec(`insert into orders values (4, current_date, 1)`)
		s.fails("23514", `refresh streaming table totals`)
		s.want(readTotals, afterCreate...)
	})
}

func TestCommentAndPropertiesAreStored(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals
			comment 'what people bought'
			tblproperties (pipelines.reset.allowed = 'false', "quality" = "gold", 'team' 'sales')
			`+totalsFlow)
		s.want(`select obj_description('totals'::regclass)`, "what people bought")
		s.want(`select key, value from rwproxy.flows, jsonb_each_text(properties) order by key`,
			"pipelines.reset.allowed|false", "quality|gold", "team|sales")
	})
}

func TestIfNotExistsLeavesAnExistingTableAlone(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`insert into orders values (4, current_date, 1)`)
		s.notices = nil
		s.exec(`create streaming table if not exists totals flow replace where day = current_date by name
			select day, 0 as something_else from orders`)
		if !s.noticed(`relation "totals" already exists, skipping`) {
			t.Error("there was no notice")
		}
		s.want(readTotals, afterCreate...)
		s.want(`select predicate from rwproxy.flows`, "day >= current_date - 1")
		s.exec(`create table plain (a integer)`, `create streaming table if not exists plain `+totalsFlow)
		s.want(`select flow_name from rwproxy.flows`, "totals")
	})
}

func TestIfNotExistsCreatesATableThatIsMissing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table if not exists totals `+totalsFlow)
		s.want(readTotals, afterCreate...)
	})
}

func TestAPlainCreateOfAnExistingTableIsRefused(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.fails("42P07", createTotals)
		s.exec(`create table plain (a integer)`)
		s.fails("42P07", strings.Replace(createTotals, "totals", "plain", 1))
		s.fails("42P07", strings.Replace(createTotals, "totals", "orders", 1))
		s.want(readTotals, afterCreate...)
	})
}

func TestNamesAreFoldedAndQuotedAsInPostgres(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create schema "Sales Dept"`,
			`CREATE STREAMING TABLE "Sales Dept"."Daily Totals" FLOW REPLACE WHERE "The Day" >= current_date BY NAME
				SELECT day AS "The Day", count(*) AS "select" FROM orders GROUP BY day`,
			`create streaming table Plain flow replace where DAY >= current_date by name select day from orders`,
			"create streaming table `Ticked` flow replace where `day` >= current_date by name select day from orders")
		s.want(`select "The Day" - current_date, "select" from "Sales Dept"."Daily Totals"`, "0|1")
		s.want(`select target_schema, target_table, flow_name from rwproxy.flows order by 2`,
			"Sales Dept|Daily Totals|Daily Totals", "public|plain|plain", "public|ticked|ticked")
		s.exec(`refresh streaming table "Sales Dept"."Daily Totals"`, `refresh streaming table PLAIN`, "refresh streaming table `Ticked`")
		s.fails("42P01", `refresh streaming table "Plain"`)
		s.exec(`drop table "Sales Dept"."Daily Totals"`, `drop streaming table plain, ticked`)
		s.want(`select count(*) from rwproxy.flows`, "0")
	})
}

func TestANameWithTheCurrentDatabaseIsAccepted(t *testing.T) {
	eachProtocol(t, func(t *testing.T, d database, s *session) {
		s.exec(createOrders, insertOrders, strings.Replace(createTotals, "totals", d.name+".public.totals", 1))
		s.want(readTotals, afterCreate...)
		s.exec(`refresh streaming table ` + d.name + `.public.totals`)
		s.fails("0A000", `refresh streaming table elsewhere.public.totals`)
	})
}

func TestATargetIsCreatedWhereTheSearchPathSays(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(`create schema own`, `set search_path = own, public`, createOrders, insertOrders, createTotals)
		s.want(`select target_schema from rwproxy.flows`, "own")
		// The flow's query means the same to a session with another path.
		s.exec(`set search_path = public`, `create table orders (id integer, day date, amount numeric)`,
			`insert into own.orders values (4, current_date, 1)`, `refresh streaming table own.totals`)
		s.want(`select day - current_date, orders, amount from own.totals order by 1`, "-1|1|20.00", "0|2|31.00")
	})
}

func TestAStreamingTableMayWaitForItsFlow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals (day date, orders bigint, amount numeric)`)
		s.want(`select count(*) from totals`, "0")
		s.fails("0A000", `refresh streaming table totals`)
		if tag := s.exec(`create flow recent comment 'the last days' as insert into totals by name replace where day >= current_date - 1 ` + totalsQuery); tag != "CREATE FLOW" {
			t.Errorf("command tag %q", tag)
		}
		s.want(readTotals, afterCreate...)
		s.want(`select flow_name, target_table, predicate from rwproxy.flows`, "recent|totals|day >= current_date - 1")
		s.exec(`insert into orders values (4, current_date, 1)`, `refresh streaming table totals`)
		s.want(readTotals, "-1|1|20.00", "0|2|31.00")
	})
}

func TestATableWithoutColumnsTakesThoseOfItsFlow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals`,
			`create flow totals as insert into totals by name replace where day >= current_date - 1 `+totalsQuery)
		s.want(readTotals, afterCreate...)
		s.want(columnsOf("totals"), "day|date|f", "orders|bigint|f", "amount|numeric|f")
	})
}

func TestATableTakesOneFlowOnly(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		e := s.fails("42710", `create flow second as insert into totals by name replace where day = current_date `+totalsQuery)
		if !strings.Contains(e.Message, "already has a REPLACE WHERE flow") {
			t.Errorf("message %q", e.Message)
		}
		s.want(`select flow_name from rwproxy.flows`, "totals")
	})
}

func TestAFlowNameIsUniqueInItsSchema(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create streaming table other (day date, orders bigint, amount numeric)`)
		s.fails("42710", `create flow totals as insert into other by name replace where day = current_date `+totalsQuery)
		s.want(`select flow_name, target_table from rwproxy.flows`, "totals|totals")
		s.exec(`create schema elsewhere`, strings.Replace(createTotals, "totals", "elsewhere.totals", 1))
		s.want(`select flow_name, target_schema from rwproxy.flows order by 2`, "totals|elsewhere", "totals|public")
	})
}

func TestAFlowNeedsAStreamingTable(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, `create table plain (day date)`, `create view looking as select * from plain`)
		insert := ` by name replace where day = current_date select day from orders`
		s.fails("42P01", `create flow f as insert into nowhere`+insert)
		s.fails("42601", `create flow f as insert into plain`+insert)
		s.fails("42601", `create flow f as insert into looking`+insert)
	})
}

func TestAFailedCreateLeavesNothing(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders)
		s.exec(`insert into orders values (0, current_date, 1)`)
		flow := `flow replace where day >= current_date - 1 by name `
		for _, failing := range []struct{ name, code, statement string }{
			{"a source that does not exist", "42P01", `create streaming table broken ` + flow + `select day from missing`},
			{"a query that fails as it runs", "22012", `create streaming table broken ` + flow + `select day, 1 / id as inverse from orders`},
			{"a value that its column refuses", "23502", `create streaming table broken (day date, absent text not null) ` + flow + `select day from orders`},
			{"two columns of one name", "42701", `create streaming table broken ` + flow + `select day, id as day from orders`},
			{"an unknown schema", "3F000", `create streaming table nowhere.broken ` + flow + `select day from orders`},
			{"an unknown type", "42704", `create streaming table broken (day nonsense) ` + flow + `select day from orders`},
		} {
			s.fails(failing.code, failing.statement)
			if left := s.flowObjects("broken"); left != "" {
				t.Errorf("%s left behind: %s", failing.name, left)
			}
		}
	})
}

// columnsOf lists the columns of a table with their types and whether they
// are NOT NULL.
func columnsOf(table string) string {
	return `select attname, format_type(atttypid, atttypmod), attnotnull from pg_attribute
		where attrelid = '` + table + `'::regclass and attnum > 0 and not attisdropped order by attnum`
}
