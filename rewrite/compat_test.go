package rewrite_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/rewrite"
)

// The values are those of the examples in the Databricks references, or follow
// from their text. The session's time zone is America/New_York.
func TestTheCompatibilityFunctionsReturnWhatDatabricksReturns(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for expression, want := range map[string]string{
		`date_add(current_date, -7) = current_date - 7`:                                         "t",
		`date_add('2024-01-31', 1)`:                                                             "2024-02-01",
		`date_add(date '2016-07-30', 1)`:                                                        "2016-07-31",
		`date_add(timestamp '2024-01-31 23:59', 1)`:                                             "2024-02-01",
		`date_add(timestamptz '2024-01-31 02:00+00', 1)`:                                        "2024-01-31",
		`dateadd('2024-02-28', 2)`:                                                              "2024-03-01",
		`date_sub('2016-07-30', 1)`:                                                             "2016-07-29",
		`date_add(null::date, 1)`:                                                               "NULL",
		`add_months('2016-08-31', 1)`:                                                           "2016-09-30",
		`add_months(date '2019-02-28', 1)`:                                                      "2019-03-28",
		`add_months('2024-03-31', -1)`:                                                          "2024-02-29",
		`datediff('2009-07-31', '2009-07-30')`:                                                  "1",
		`datediff('2009-07-30', date '2009-07-31')`:                                             "-1",
		`date_diff(timestamp '2024-01-02 00:00', timestamp '2024-01-01 23:59')`:                 "1",
		`year('2016-07-30')`:                                                                    "2016",
		`quarter(date '2016-08-31')`:                                                            "3",
		`month('2016-07-30')`:                                                                   "7",
		`day(date '2009-07-30')`:                                                                "30",
		`dayofmonth('2009-07-30')`:                                                              "30",
		`dayofyear('2016-04-09')`:                                                               "100",
		`dayofweek('2009-07-30')`:                                                               "5",
		`dayofweek('2024-05-05')`:                                                               "1",
		`weekday(date '2009-07-30')`:                                                            "3",
		`weekofyear('2008-02-20')`:                                                              "8",
		`hour('2009-07-30 12:58:59')`:                                                           "12",
		`hour(timestamptz '2024-01-01 00:30+00')`:                                               "19",
		`minute(timestamp '2009-07-30 12:58:59')`:                                               "58",
		`second('2009-07-30 12:58:59.9')`:                                                       "59",
		`last_day('2009-01-12')`:                                                                "2009-01-31",
		`last_day(date '2024-02-29')`:                                                           "2024-02-29",
		`next_day('2015-01-14', 'TU')`:                                                          "2015-01-20",
		`next_day(date '2024-05-06', 'monday')`:                                                 "2024-05-13",
		`next_day(date '2024-05-06', 'Sun')`:                                                    "2024-05-12",
		`curdate() = current_date`:                                                              "t",
		`date_add(MONTH, 1, timestamp '2024-01-31 10:00')`:                                      "2024-02-29 10:00:00",
		`dateadd(quarter, -1, timestamp '2024-05-31')`:                                          "2024-02-29 00:00:00",
		`dateadd(HOUR, 1, timestamptz '2024-03-10 01:30')`:                                      "2024-03-10 03:30:00-04",
		`timestampadd(week, 2, timestamp '2024-01-01')`:                                         "2024-01-15 00:00:00",
		`datediff(month, timestamp '2024-01-31', timestamp '2024-02-29')`:                       "0",
		`datediff(MONTH, timestamp '2021-02-28 12:00', timestamp '2021-03-28 12:00')`:           "1",
		`datediff(quarter, date '2024-01-01', date '2024-12-31')`:                               "3",
		`timestampdiff(YEAR, timestamp '2020-02-29', timestamp '2024-02-28')`:                   "3",
		`datediff(YEAR, timestamp '2024-02-28', timestamp '2020-02-29')`:                        "-3",
		`date_diff(DAY, timestamptz '2024-03-10', timestamptz '2024-03-11')`:                    "1",
		`datediff(hour, timestamp '2024-01-01 00:00', timestamp '2024-01-01 01:59')`:            "1",
		`datediff(second, timestamp '2024-01-01 00:00:01.5', timestamp '2024-01-01')`:           "-1",
		`datediff(MICROSECOND, timestamp '1900-01-01', timestamp '2024-01-01 00:00:00.000001')`: "3913056000000001",
		`unix_timestamp('1970-01-01 00:00:10+00')`:                                              "10",
		`unix_timestamp(timestamp '1970-01-01')`:                                                "18000",
		`to_unix_timestamp(timestamptz '1969-12-31 23:59:59.5+00')`:                             "-1",
		`unix_timestamp() = floor(extract(epoch from now()))`:                                   "t",
		`unix_seconds(timestamptz '1970-01-01 00:00:01+00')`:                                    "1",
		`unix_millis(timestamptz '1970-01-01 00:00:01.0019+00')`:                                "1001",
		`unix_micros(timestamptz '2008-12-25 15:30:00.123123+00')`:                              "1230219000123123",
		`unix_date(date '1970-01-02')`:                                                          "1",
		`date_from_unix_date(1)`:                                                                "1970-01-02",
		`from_unixtime(0)`:                                                                      "1969-12-31 19:00:00",
		`timestamp_seconds(1230219000)`:                                                         "2008-12-25 10:30:00-05",
		`timestamp_seconds(1230219000.5)`:                                                       "2008-12-25 10:30:00.5-05",
		`timestamp_millis(1230219000123)`:                                                       "2008-12-25 10:30:00.123-05",
		`timestamp_micros(1230219000123123)`:                                                    "2008-12-25 10:30:00.123123-05",
		`nvl(null, 1)`:                                                                          "1",
		`nvl('a', 'b')`:                                                                         "a",
		`ifnull(null::date, date '2024-01-01')`:                                                 "2024-01-01",
		`nvl(1, 2.5)`:                                                                           "1",
		`nvl2(1, 'x', 'y') || nvl2(null::text, 'x', 'y')`:                                       "xy",
		`if(1 < 2, 'a', 'b') || iff(null, 'a', 'b')`:                                            "ab",
		`isnull(null) and not isnull(1) and isnotnull('x')`:                                     "t",
		`1 = 1 and isnull(null::date)`:                                                          "t",
		`pmod(10, 3)`:                                                                           "1",
		`pmod(-10, 3)`:                                                                          "2",
		`pmod(-7::bigint, -3::bigint)`:                                                          "-1",
		`pmod(7, -3)`:                                                                           "1",
		`pmod(-1.5, 1)`:                                                                         "0.5",
		`try_divide(3, 2)`:                                                                      "1.5",
		`try_divide(1, 0)`:                                                                      "NULL",
		`try_divide(1.0::numeric, 4::numeric)`:                                                  "0.25000000000000000000",
		`rand() >= 0 and rand() < 1 and rand() <> rand()`:                                       "t",
		`length(uuid()) = 36 and uuid() <> uuid()`:                                              "t",
		`len('Spark SQL ')`:                                                                     "10",
		`instr('SparkSQL', 'SQL')`:                                                              "6",
		`locate('bar', 'foobarbar')`:                                                            "4",
		`charindex('x', 'foobar')`:                                                              "0",
		`(select count_if(x % 2 = 0) from generate_series(1, 5) x)`:                             "2",
		`(select count_if(x > 1) from (values (1), (2), (null)) v (x))`:                         "1",
		`(select count_if(true) from generate_series(1, 0))`:                                    "0",
	} {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: "select " + expression}, nil, rewrite.Lexical{})
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		if got := rows(t, c, translation.SQL); got[0][0] != want {
			t.Errorf("%s: got %s, want %s", expression, got[0][0], want)
		}
	}
}

func TestAnUnknownUnitOrDayIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for query, name := range map[string]string{
		`select next_day(date '2024-01-01', 'someday')`: "someday",
		`select dateadd('fortnight', 1, now())`:         "fortnight",
		`select datediff('fortnight', now(), now())`:    "fortnight",
	} {
		if _, err := c.Exec(t.Context(), query); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestAPredicateWithCompatibilityFunctionsUsesAnIndex(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create table t (day date primary key, ts timestamptz unique, n integer unique);
		insert into t select current_date - n, now() - n * interval '1 hour', n from generate_series(1, 5000) n; analyze t`)
	for predicate, condition := range map[string]string{
		`day >= date_add(current_date, -7)`:            `Index Cond: (day >= (CURRENT_DATE + '-7'::integer))`,
		`day >= date_sub(curdate(), 7)`:                `Index Cond: (day >= (CURRENT_DATE - 7))`,
		`day = nvl(null, current_date)`:                `Index Cond: (day = COALESCE(CURRENT_DATE))`,
		`ts >= dateadd('day', -1, now())`:              `Index Cond: (ts >= (now() + '-1 days'::interval))`,
		`day > last_day(add_months(current_date, -1))`: `Index Cond: (day > `,
		`n = pmod(7, 3)`:                               `Index Cond: (n = 1)`,
	} {
		execute(t, c, "set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off")
		plan := ""
		for _, row := range rows(t, c, "explain (costs off) select * from t where "+predicate) {
			plan += row[0] + "\n"
		}
		if !strings.Contains(plan, condition) || strings.Contains(plan, "Filter") || strings.Contains(plan, "rwproxy_compat") {
			t.Errorf("%s\n%s", predicate, plan)
		}
	}
}

func TestTheUsersOwnFunctionsWin(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create function public.date_add(date, integer) returns date language sql return date '1999-12-31'`)
	if got := rows(t, c, `select date_add(current_date, 1)`); got[0][0] != "1999-12-31" {
		t.Errorf("got %s", got)
	}
}

func TestTheCompatibilityFunctionsDependOnNoSearchPath(t *testing.T) {
	t.Parallel()
	c := connect(t)
	before := rows(t, c, `select rwproxy_compat.next_day(date '2024-05-06', 'mon'), rwproxy_compat.pmod(-7, 3), rwproxy_compat.isnull(1), rwproxy_compat.nvl(1, 2)`)
	execute(t, c, `create schema trap;
		create function trap.add(date, integer) returns date language sql return date '1999-12-31';
		create operator trap.+ (leftarg = date, rightarg = integer, function = trap.add);
		create function trap.mod(integer, integer) returns integer language sql return 99;
		create operator trap.% (leftarg = integer, rightarg = integer, function = trap.mod);
		create function trap.upper(text) returns text language sql return 'SU';
		set search_path = trap, pg_catalog`)
	after := rows(t, c, `select rwproxy_compat.next_day(date '2024-05-06', 'mon'), rwproxy_compat.pmod(-7, 3), rwproxy_compat.isnull(1), rwproxy_compat.nvl(1, 2)`)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("-before +after\n%s", diff)
	}
}

func TestTheCompatibilityFunctionsAreWhatTheySay(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, "set search_path = pg_catalog")
	execute(t, c, rewrite.CompatSQL()) // again
	for _, row := range rows(t, c, `select p.oid::regprocedure, 'settings or strict' from pg_proc p
		where pronamespace = 'rwproxy_compat'::regnamespace and (proconfig is not null or proisstrict or prosecdef)
		union all
		select p.oid::regprocedure, 'not parallel safe' from pg_proc p
		where pronamespace = 'rwproxy_compat'::regnamespace and proparallel <> 's' and proname <> 'rand'`) {
		t.Error(row)
	}
	// A volatile function spoils a flow; only these are.
	want := [][]string{{"rand"}, {"uuid"}}
	got := rows(t, c, `select proname from pg_proc where pronamespace = 'rwproxy_compat'::regnamespace and provolatile = 'v' order by 1`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("volatile, -want +got\n%s", diff)
	}
}
