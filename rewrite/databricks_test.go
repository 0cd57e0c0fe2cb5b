package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

var databricks = rewrite.Lexical{Dialect: rewrite.Databricks}

// The values are those that the Databricks references give, or follow from
// their rules by hand. The session's time zone is America/New_York.
func TestTheDialectOfDatabricksMeansWhatDatabricksMeans(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `
		create table t (a integer, b bigint, f double precision, n numeric(10, 2), d date, ts timestamptz, s text, list integer[], ok boolean, "user" text);
		insert into t values (7, 2, 2.5, 12.50, '2024-01-31', '2024-01-31 10:11:12.5-05', '42', '{10,20,30}', true, 'column')`)
	for expression, want := range map[string]string{
		// Numbers
		`7 / 2`:                     "3.5",
		`a / b / 2`:                 "1.75",
		`a * 3 / b + 1`:             "11.5",
		`-a / b`:                    "-3.5",
		`1 / (a - 4) * 3`:           "1",
		`f / 2`:                     "1.25",
		`(a + b) / 2`:               "4.5",
		`a / b = 3.5 and b / a < 1`: "t",
		`case when a / b > 3 then a / b else b / a end`: "3.5",
		`2 ^ 3`:                           "1",
		`1 + 2 ^ 3`:                       "0",
		`6 | 1 & 3 ^ 2`:                   "7",
		`1 << 2 + 1`:                      "8",
		`~ 1 + 3`:                         "1",
		`7 div 2 / 2`:                     "1.5",
		`log(1)`:                          "0",
		`log(0)`:                          "NULL",
		`log(2, 8)`:                       "3",
		`log10(100)`:                      "2",
		`ln(n - n)`:                       "NULL",
		`sqrt(-1)`:                        "NaN",
		`power(2, 3) + pow(n - 10.50, 2)`: "12",
		`round(2.5)`:                      "3",
		`round(f)`:                        "3",
		`round(-2.5D)`:                    "-3",
		`round(2.675D, 2)`:                "2.68",
		`round(25, -1)`:                   "30",
		`ceil(f) + floor(f)`:              "5",
		`ceil(f) / 2`:                     "1.5",
		`1e3`:                             "1000",
		`1e0 / 3`:                         "0.3333333333333333",
		`cast(2.7 as int)`:                "2",
		`cast(-2.7D as int)`:              "-2",
		`2.7::int + 1`:                    "3",
		`-2.7::int`:                       "-2",
		`cast(' 12 ' as bigint)`:          "12",
		`s::int / 4`:                      "10.5",
		`cast(n as decimal)`:              "13",
		`cast('1.005' as decimal(5, 2))`:  "1.01",
		`(0.1D + 0.2D)::decimal(20, 18)`:  "0.300000000000000040",
		`cast(true as int) + 1`:           "2",
		`cast('y' as boolean)`:            "t",
		`cast(0 as boolean)`:              "f",
		`cast(1.5 as double) / 2`:         "0.75",
		`cast('1e2' as float)`:            "100",
		`cast(100.7 as smallint)`:         "100",
		`cast(ts as bigint)`:              "1706713872",

		// Texts
		`'a\nb' = E'a\nb'`:     "t",
		`length('a\tb')`:       "3",
		`'it''s'`:              "it's",
		`'\u0041\101\x'`:       "AAx",
		`'50\%'`:               `50\%`,
		`'x\\y'`:               `x\y`,
		`R'a\nb'`:              `a\nb`,
		`'a' 'b' "c"`:          "abc",
		`'a' "b" <=> "a" R'b'`: "t",
		`'a' 'b' || "c" "d"`:   "abcd",
		`date "2024-01-31" <=> date '2024' "-01-31"`:    "t",
		`'100' RLIKE "^1" '0+$'`:                        "t",
		`"double ""quoted"""`:                           `double "quoted"`,
		`concat('a', null)`:                             "NULL",
		`concat('a', 1, true, d)`:                       "a1true2024-01-31",
		`concat_ws('-', 'a', null, 1)`:                  "a-1",
		`'a' || 1 || d`:                                 "a12024-01-31",
		`substring('Spark SQL', -3)`:                    "SQL",
		`substr('Spark SQL', 0, 2)`:                     "Sp",
		`substring('Spark SQL' from 5 for 1)`:           "k",
		`right('abc', -1) || left('abc', -1)`:           "",
		`left('abc', 2)`:                                "ab",
		`cast(n as string)`:                             "12.50",
		`cast(ts as string)`:                            "2024-01-31 10:11:12.5",
		`cast(timestamp '2020-01-01' as string)`:        "2020-01-01 00:00:00",
		`d::string || '!'`:                              "2024-01-31!",
		`regexp_replace('100-200', '(\\d+)', 'num')`:    "num-num",
		`regexp_replace('ab', '(a)(b)', '$2$1')`:        "ba",
		`'100' RLIKE '\\d+'`:                            "t",
		`'100' RLIKE r'^\d+$'`:                          "t",
		`split('a.b', '\\.')[1]`:                        "b",
		`user`:                                          "column",
		`pg_catalog.encode(X'1F0', 'hex')`:              "01f0",
		`pg_catalog.encode(cast('é' as binary), 'hex')`: "c3a9",

		// Dates
		`d + interval 1 day`:                       "2024-02-01",
		`d - interval '1' month`:                   "2023-12-31",
		`interval '1 month' + d`:                   "2024-02-29",
		`d + interval 1 day = date '2024-02-01'`:   "t",
		`a - 1 - b`:                                "4",
		`n + 1 - 0.5`:                              "13.00",
		`f - 1`:                                    "1.5",
		`ts - ts = interval 0 seconds`:             "t",
		`1 + d`:                                    "2024-02-01",
		`d - 1 + 2`:                                "2024-02-01",
		`d + 1`:                                    "2024-02-01",
		`ts + interval 1 hour`:                     "2024-01-31 11:11:12.5-05",
		`ts - interval 1 day`:                      "2024-01-30 10:11:12.5-05",
		`extract(dow from d)`:                      "4",
		`extract(year from d) / 2`:                 "1012",
		`date_part('month', d) / 2`:                "0.5",
		`extract(second from ts)`:                  "12.500000",
		`extract(dow_iso from d)`:                  "3",
		`timestamp '2024-01-01 00:00:00Z'`:         "2023-12-31 19:00:00-05",
		`timestamp_ntz '2024-01-01'`:               "2024-01-01 00:00:00",
		`to_timestamp('2024-01-01 01:02:03')`:      "2024-01-01 01:02:03-05",
		`to_timestamp('01.02.2024', 'dd.MM.yyyy')`: "2024-02-01 00:00:00-05",
		`to_date('2024-02-01', 'yyyy-MM-dd')`:      "2024-02-01",
		`cast('2024-2-1' as date)`:                 "2024-02-01",
		`cast('2024-02-01T10:00' as timestamp)`:    "2024-02-01 10:00:00-05",
		`date_trunc('MM', d)`:                      "2024-01-01 00:00:00-05",
		`date_trunc('fortnight', ts)`:              "NULL",
		`make_timestamp(2024, 1, 2, 3, 4, 5)`:      "2024-01-02 03:04:05-05",

		// Arrays
		`list[0]`:                        "10",
		`list[a - 5] + list[0]`:          "40",
		`array(1, 2)[1]`:                 "2",
		`cast(list[1] as string) || 'x'`: "20x",

		// Aggregates and windows
		`(select sum(x) / count(*) from (values (1::bigint), (2)) v (x))`:                                       "1.5",
		`(select avg(x) from (values (1), (2)) v (x))`:                                                          "1.5",
		`(select avg(x) from (values (1.00), (2.01), (2.01)) v (x))`:                                            "1.673333",
		`(select avg(x) filter (where x > 1) from (values (1), (2)) v (x))`:                                     "2",
		`(select avg(x) from (values (1)) v (x) where false)`:                                                   "NULL",
		`(select sum(x) from (values (1)) v (x) where false)`:                                                   "NULL",
		`(select sum(x) over (order by x) from (values (1), (2)) v (x) order by x desc limit 1)`:                "3",
		`(select stddev_pop(x) from (values (1), (3)) v (x))`:                                                   "1",
		`(select array_agg(x) from (values (1), (null), (2)) v (x))`:                                            "{1,2}",
		`(select x from (values (1), (null)) v (x) order by x limit 1)`:                                         "NULL",
		`(select x from (values (1), (null)) v (x) order by x desc limit 1)`:                                    "1",
		`(select x from (values (1), (null)) v (x) order by x nulls last limit 1)`:                              "1",
		`(select x from (values (1), (null), (2)) v (x) order by all desc limit 1)`:                             "2",
		`(select first_value(x) over (order by x) from (values (1), (null)) v (x) limit 1)`:                     "NULL",
		`(select string_agg(x, ',' order by y desc, x) from (values ('a', 1), ('b', null), ('c', 1)) v (x, y))`: "a,c,b",
		`(select x from (values (7), (8)) v (x) order by x / 2 desc limit 1)`:                                   "8",
		`try_divide(1, 0)`: "NULL",
		`try_divide(1, 4)`: "0.25",
	} {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: "select " + expression + " from t"}, diagnosing{catalog{t, c}}, databricks)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		result, err := c.PgConn().Exec(t.Context(), translation.SQL).ReadAll()
		if err != nil {
			t.Errorf("%s became\n%s\n%v", expression, translation.SQL, err)
			continue
		}
		got := string(result[0].Rows[0][0])
		if result[0].Rows[0][0] == nil {
			got = "NULL"
		}
		if got != want {
			t.Errorf("%s became\n%s\ngot %s, want %s", expression, translation.SQL, got, want)
		}
	}
}

// What has no exact translation is refused by the types, before a row is read.
func TestTheDialectOfDatabricksRefusesTypesThatItCannotBeExactFor(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create table t (a integer, f double precision, n numeric(10, 2), d date, iv interval, list integer[])`)
	for expression, want := range map[string]string{
		`n / 2`:                                "/ between numeric and integer|/ 2",
		`a / 2.5`:                              "/ between integer and numeric|/ 2.5",
		`sum(n) / count(*)`:                    "/ between numeric and bigint|/ count",
		`cast(f as string)`:                    "a text made of double precision|cast(f",
		`f || 'x'`:                             "a text made of double precision||| 'x'",
		`concat('x', f)`:                       "a text made of double precision|concat",
		`concat_ws(',', list)`:                 "a text made of integer[]|concat_ws",
		`cast(d as int)`:                       "a cast of date to INTEGER|cast(d",
		`a + interval 1 day`:                   "+ between integer and interval|+ interval",
		`iv / 2`:                               "/ between interval and integer|/ 2",
		`d - d`:                                "- between date and date|- d",
		`d - iv`:                               "- between date and interval|- iv",
		`iv + d`:                               "+ between interval and date|+ d",
		`d + interval 1 hour`:                  "+ between date and interval|+ interval",
		`d + interval '1 02:00' day to minute`: "+ between date and interval|+ interval",
		`n - d`:                                "- between numeric and date|- d",
		`cast(list as int)`:                    "a cast of integer[] to INTEGER|cast",
	} {
		want, at, _ := strings.Cut(want, "|")
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: "select " + expression + " from t"}, diagnosing{catalog{t, c}}, databricks)
		if err != nil {
			t.Errorf("%s: %v", expression, err)
			continue
		}
		_, err = c.Prepare(t.Context(), "", translation.SQL)
		var e *pgconn.PgError
		if !errors.As(err, &e) {
			t.Errorf("%s became\n%s\n%v", expression, translation.SQL, err)
			continue
		}
		got, refused := rewrite.DatabricksRefusal(pgdiag.New(e.Code, e.Message))
		if !refused || got.Code != "0A000" || got.Message != want+" is not supported with rwproxy.dialect = 'databricks'" || got.Hint == "" {
			t.Errorf("%s: got %+v (%v), want %q", expression, got, err, want)
		}
		if origin := translation.Origin(int(e.Position)); origin < 0 || !strings.HasPrefix(("select " + expression)[origin:], at) {
			t.Errorf("%s: the error is at %d", expression, origin)
		}
	}
}

func TestTheDialectOfDatabricksRefusesByName(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		`select initcap(a) from t`:                       "the function initcap under the dialect of Databricks|initcap(a)",
		`select to_char(a, '999') from t`:                "the function to_char under the dialect of Databricks|to_char",
		`select cast(a as interval) from t`:              "a cast to this type under the dialect of Databricks|interval",
		`select a::varchar(3) from t`:                    "a cast to this type under the dialect of Databricks|varchar",
		`select regexp_replace(a, b, 'c') from t`:        "regexp_replace with a pattern that is not a constant|b",
		`select regexp_replace(a, 'b', 'x$12') from t`:   "this replacement of regexp_replace|'x$12'",
		`select regexp_replace(a, 'b', 'c', 'g') from t`: "regexp_replace with this number of arguments under the dialect of Databricks|regexp_replace",
		`select a[1:2] from t`:                           "a slice of an array|[1:2]",
		`select a[0][0] from t`:                          "an element of an array in an array|[0] from",
		`select '\0' from t`:                             `the character U+0000 in a string|'\0'`,
		`select 'a\' from t`:                             `a quote behind a backslash|'a\'`,
		`select date_part(a, b) from t`:                  "date_part of a field that is not a constant|a, b",
		`select contains(a, 'b') from t`:                 "the function contains|contains(a",
		`select 1 + hex(a) from t`:                       "the function hex|hex(a)",
		`select e() from t`:                              "the function e|e()",
		`select * from sequence(1, 3)`:                   "the function sequence|sequence(1",
		`select get(array(1), 0) from t`:                 "the function get|get(",
		`select a from t order by a using <`:             "ORDER BY ... USING|using",
	} {
		construct, at, _ := strings.Cut(want, "|")
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, nothing{}, databricks)
		if err == nil {
			t.Errorf("%s became\n%s", query, translation.SQL)
			continue
		}
		got := errorText(before+query, err)
		if !strings.HasPrefix(got, "0A000: "+construct+" is not supported in a REPLACE WHERE flow\nHINT: ") || !strings.Contains(got, ".\nAT: "+at) {
			t.Errorf("%s\ngot %s", query, got)
		}
	}
}

func TestANameThatDatabricksHasAFunctionOfIsFreeForOtherThings(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create function contains(text, text) returns text language sql return 'own'; create schema elsewhere;
		create function elsewhere.hex(integer) returns text language sql return 'elsewhere'`)
	for query, want := range map[string]string{
		`select contains('a', 'b')`:                                               "own",
		`select elsewhere.hex(1)`:                                                 "elsewhere",
		`with e (get) as (values (7)) select get from e`:                          "7",
		`with x as (select 1), e(n) as materialized (values (7)) select n from e`: "7",
		`select range from (values (7)) range (range)`:                            "7",
	} {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, catalog{t, c}, databricks)
		if err != nil {
			t.Errorf("%s: %s", query, errorText(query, err))
			continue
		}
		if got := rows(t, c, translation.SQL)[0][0]; got != want {
			t.Errorf("%s became %s and returned %s, want %s", query, translation.SQL, got, want)
		}
	}
}

func TestAFunctionThatPostgresLacksAndDatabricksHasIsHintedAt(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for query, want := range map[string]string{
		`select contains('a', 'b')`: "Databricks has a function contains. Use strpos(text, part) > 0.",
		`select hex(7)`:             "Databricks has a function hex. Use upper(to_hex(n)) for a number, and pg_catalog.encode(bytes, 'hex') for bytes.",
		`select nosuch(7)`:          "",
		`select lower(7)`:           "",
		`select contains`:           "",
	} {
		_, err := c.Prepare(t.Context(), "", query)
		hinted, found := rewrite.FunctionHint(diagnosticOf(t, err))
		if found != (want != "") || found && hinted.Hint != want {
			t.Errorf("%s: got %+v", query, hinted)
		}
	}
}

// Whether the user's own function is meant, or Databricks', cannot be known.
func TestAFunctionOfTheUsersThatHasAnotherMeaningHasToBeQualified(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create function round(text) returns text language sql return 'own'`)
	query := "select round('a')"
	_, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, catalog{t, c}, databricks)
	want := "0A000: the function round, as the database has one of its own, is not supported in a REPLACE WHERE flow\n" +
		"HINT: Put its schema in front of the name of the one that is meant.\nAT: round('a')"
	if got := errorText(query, err); got != want {
		t.Errorf("got %s", got)
	}
	translation, err := rewrite.TranslateQuery(rewrite.Span{Text: "select public.round('a')"}, catalog{t, c}, databricks)
	if err != nil || rows(t, c, translation.SQL)[0][0] != "own" {
		t.Errorf("%s: %v", translation.SQL, err)
	}
}

func TestADatabricksPredicateIsPushedToAnIndex(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create table t (day date primary key, n integer unique); set enable_seqscan = off; set enable_bitmapscan = off; set enable_indexonlyscan = off`)
	for predicate, condition := range map[string]string{
		`day >= current_date() - interval 7 days`: `Index Cond: (day >= `,
		`n >= 7 div 2`:                     `Index Cond: (n >= '3'::bigint)`,
		`n = cast(2.7 as int)`:             `Index Cond: (n = 2)`,
		`day > cast('2024-01-01' as date)`: `Index Cond: (day > `,
	} {
		translation, err := rewrite.TranslatePredicate(rewrite.Span{Text: predicate}, rewrite.PredicateContext{Lexical: databricks})
		if err != nil {
			t.Errorf("%s: %v", predicate, err)
			continue
		}
		plan := ""
		for _, row := range rows(t, c, "explain (costs off) select * from t where "+translation.SQL) {
			plan += row[0] + "\n"
		}
		if !strings.Contains(plan, condition) || strings.Contains(plan, "rwproxy_compat") {
			t.Errorf("%s became %s\n%s", predicate, translation.SQL, plan)
		}
	}
}

func TestColumnTypesOfTheDialects(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"timestamp": "timestamp with time zone", "FLOAT": "real", "decimal": "numeric(10,0)", "decimal(5, 2)": "decimal(5, 2)",
		"timestamp[]": "timestamp with time zone[]", "double precision": "double precision", "text": "text", "timestamp(3)": "timestamp(3)", `"timestamp"`: `"timestamp"`,
	} {
		if got := rewrite.DatabricksType(typ); got != want {
			t.Errorf("%s: got %s, want %s", typ, got, want)
		}
	}
}
