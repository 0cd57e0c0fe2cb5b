package integration

import (
	"regexp"
	"strings"
	"testing"
)

func TestEverySpellingOfRefresh(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		for i, statement := range []string{
			`refresh streaming table totals`,
			`refresh table totals`,
			`refresh streaming table totals sync`,
			`refresh table totals SYNC`,
			`REFRESH /* a comment */ STREAMING -- another
				TABLE public.totals`,
			`refresh streaming table totals where day = current_date`,
			`refresh streaming table totals where day = current_date sync`,
			`refresh streaming table totals full`,
			`refresh table totals full sync`,
		} {
			s.exec(`update orders set amount = amount + 1 where id = 3`)
			if tag := s.exec(statement); tag != "REFRESH STREAMING TABLE" {
				t.Errorf("%s\ncommand tag %q", statement, tag)
			}
			want := s.value(`select amount from orders where id = 3`)
			if got := s.value(`select amount from totals where day = current_date`); got != want {
				t.Errorf("after %d refreshes %s, want %s\n%s", i+1, got, want, statement)
			}
		}
	})
}

func TestARefreshReplacesTheWindowAndNothingElse(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(
			`insert into totals values (current_date - 1, 99, 99), (current_date - 2, 77, 77), (null, 1, 1)`,
			`delete from orders where id = 3`,
			`insert into orders values (4, current_date - 1, 5), (5, current_date - 2, 5), (6, null, 5)`,
			`refresh streaming table totals`)
		// Today is gone with its orders, the stray row of yesterday too; the day
		// before and the row without a day are as they were.
		s.want(readTotals, "-2|77|77", "-1|2|25.00", "NULL|1|1")
	})
}

func TestARefreshSaysWhatItDid(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		notice := func(reason string, deleted, inserted string) {
			t.Helper()
			want := regexp.MustCompile(`^refreshed public\.totals: FULL_RECOMPUTE \(` + reason + `\), ` +
				deleted + ` rows? deleted, ` + inserted + ` rows? inserted in [0-9.]+ ms$`)
			var texts []string
			for _, n := range s.notices {
				if n.Severity == "NOTICE" && n.Code == "00000" && want.MatchString(n.Message) {
					s.notices = nil
					return
				}
				texts = append(texts, n.Severity+" "+n.Code+" "+n.Message)
			}
			t.Errorf("want a notice %s, got %q", want, texts)
			s.notices = nil
		}
		s.createTotals()
		notice("FIRST_REFRESH", "0", "2")
		s.exec(`truncate orders`, insertOrders, `refresh streaming table totals`)
		notice("CHANGE_NOT_NARROWABLE", "2", "2")
		s.exec(`refresh streaming table totals where day = current_date - 2`)
		notice("UNSUPPORTED_REPLACE_WHERE_PREDICATE", "0", "1")
		s.exec(`delete from totals where day = current_date`, `refresh streaming table totals`)
		notice("EXTERNAL_CHANGE_IN_REPLACE_WINDOW", "1", "2")
		s.exec(`refresh streaming table totals full`)
		notice("FULL_REFRESH", "3", "2")
		s.exec(`create or refresh streaming table totals flow replace where day > current_date - 2 by name ` + totalsQuery)
		notice("DEFINITION_CHANGED", "2", "2")
		s.exec(`create or refresh streaming table totals flow replace where day >= current_date - 1 and random() >= 0 by name ` + totalsQuery)
		notice("REPLACE_WHERE_NOT_DETERMINISTIC", "2", "2")
		s.exec(`create or refresh streaming table totals ` + totalsFlow)
		s.notices = nil
		s.exec(`truncate totals`, `refresh streaming table totals`)
		notice("EXTERNAL_CHANGE_IN_REPLACE_WINDOW", "0", "2")
	})
}

func TestNoticesRespectTheClientsThreshold(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`set client_min_messages = warning`)
		s.notices = nil
		s.exec(`refresh streaming table totals`, `create streaming table if not exists totals `+totalsFlow)
		for _, n := range s.notices {
			t.Errorf("got %s %q", n.Severity, n.Message)
		}
	})
}

func TestTheRefreshAfterANonDeterministicOneNamesIt(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders,
			`create streaming table totals flow replace where day >= current_date - 1 and random() >= 0 by name `+totalsQuery,
			`refresh streaming table totals`)
		s.want(`select last_technique, last_reason from rwproxy.flows`, "FULL_RECOMPUTE|REPLACE_WHERE_NOT_DETERMINISTIC")
		s.exec(`create or refresh streaming table totals ` + totalsFlow)
		s.want(`select last_reason in ('PRIOR_REPLACE_WHERE_NOT_DETERMINISTIC', 'DEFINITION_CHANGED') from rwproxy.flows`, "t")
	})
}

func TestAnOverrideIsUsedOnceAndOnlyForItsRows(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`update orders set amount = amount * 2`, `refresh streaming table totals where day < current_date`)
		s.want(readTotals, "-2|1|20.00", "-1|1|40.00", "0|1|30.00")
		s.want(`select predicate from rwproxy.flows`, "day >= current_date - 1")
		s.exec(`update orders set amount = amount * 2`, `refresh streaming table totals`)
		s.want(readTotals, "-2|1|20.00", "-1|1|80.00", "0|1|120.00")
	})
}

func TestAnOverrideMayUseAnyColumnOfTheTarget(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`update orders set amount = 20.50 where id = 3`)
		for _, predicate := range []string{
			`amount > 25`, `totals.amount > 25`, `public.totals.amount > 25`, `orders = 1 and amount::int between 26 and 34`,
			`(amount, orders) = (30.00, 1)`, `true`, `coalesce(amount, 0) <> 20`, `not (day < current_date)`, `amount::text like '3%'`,
			`day = any (array[current_date, current_date - 1])`, `case when amount > 25 then true end`, `((day = current_date))`,
		} {
			s.exec(`begin`, `refresh streaming table totals where `+predicate)
			s.want(`select count(*) from totals where amount = 30.00`, "0")
			s.exec(`rollback`)
		}
	})
}

func TestAFullRefreshKeepsOnlyTheWindow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`refresh streaming table totals where day = current_date - 2`, `insert into totals values (null, 1, 1)`)
		s.want(readTotals, "-2|1|10.00", "-1|1|20.00", "0|1|30.00", "NULL|1|1")
		s.exec(`refresh streaming table totals full`)
		s.want(readTotals, afterCreate...)
	})
}

func TestAFullRefreshIsRefusedWhenResetIsNotAllowed(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals tblproperties ('pipelines.reset.allowed' = false) `+totalsFlow,
			`refresh streaming table totals where day = current_date - 2`)
		e := s.fails("42000", `refresh streaming table totals full`)
		if !strings.Contains(e.Detail, "TABLE_NOT_RESETTABLE") || e.Hint == "" {
			t.Errorf("detail %q, hint %q", e.Detail, e.Hint)
		}
		s.want(readTotals, "-2|1|10.00", "-1|1|20.00", "0|1|30.00")
		s.exec(`refresh streaming table totals`)
		// What the property said last counts, in any case and spelling.
		s.exec(`create or refresh streaming table totals tblproperties (Pipelines.Reset.Allowed true) `+totalsFlow,
			`refresh streaming table totals full`)
		s.want(readTotals, afterCreate...)
	})
}

func TestOnlyStreamingTablesAreRefreshed(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create view looking as select * from orders`)
		for _, e := range []struct{ code, statement string }{
			{"42P01", `refresh streaming table nowhere`},
			{"42P01", `refresh table public.nowhere full`},
			{"42601", `refresh streaming table orders`},
			{"42601", `refresh table orders`},
			{"42601", `refresh streaming table orders where day = current_date`},
			{"42601", `refresh streaming table looking`},
			{"42P01", `refresh streaming table nosuchschema.totals`},
		} {
			s.fails(e.code, e.statement)
		}
		s.want(`select count(*) from orders`, "3")
	})
}

func TestNativeRefreshesStayPostgres(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create materialized view counted as select count(*) as n from orders with no data`)
		if tag := s.exec(`refresh materialized view counted`); tag != "REFRESH MATERIALIZED VIEW" {
			t.Errorf("command tag %q", tag)
		}
		s.want(`select n from counted`, "3")
		s.exec(`refresh materialized view counted with no data`)
		s.fails("0A000", `refresh materialized view counted where n = 1`)
		s.fails("0A000", `refresh materialized view counted full`)
	})
}

func TestAnEmptySourceEmptiesTheWindow(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`refresh streaming table totals where day = current_date - 2`, `truncate orders`, `refresh streaming table totals`)
		s.want(readTotals, "-2|1|10.00")
	})
}

func TestManyStatementsInOneMessageRunInOrder(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	results, err := s.conn.Exec(t.Context(), strings.Join([]string{
		createOrders, insertOrders, `create streaming table totals`,
		`create flow f as insert into totals by name replace where day >= current_date - 1 ` + totalsQuery,
		`insert into orders values (4, current_date, 1)`, `refresh streaming table totals`, readTotals,
		`drop streaming table totals`, `select 'the end;'`,
	}, ";\n")+";").ReadAll()
	if err != nil {
		t.Fatal(describe(err))
	}
	var tags []string
	for _, r := range results {
		tags = append(tags, r.CommandTag.String())
	}
	want := "CREATE TABLE, INSERT 0 3, CREATE STREAMING TABLE, CREATE FLOW, INSERT 0 1, REFRESH STREAMING TABLE, SELECT 2, DROP TABLE, SELECT 1"
	if got := strings.Join(tags, ", "); got != want {
		t.Errorf("command tags\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(textRows(results[6]), " "); got != "-1|1|20.00 0|2|31.00" {
		t.Errorf("totals in the middle: %s", got)
	}
}

func TestManyStatementsInOneMessageAreAllOrNothing(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.createTotals()
	s.fails("22012", `insert into orders values (4, current_date, 1); refresh streaming table totals; select 1 / 0; delete from orders`)
	s.want(readTotals, afterCreate...)
	s.want(`select count(*) from orders`, "3")
	s.fails("42P01", `insert into orders values (4, current_date, 1); refresh streaming table nowhere; delete from orders`)
	s.want(`select count(*) from orders`, "3")
	s.exec(`refresh streaming table totals`)
}
