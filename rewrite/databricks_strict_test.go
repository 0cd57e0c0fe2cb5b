package rewrite_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/rewrite"
)

const strictTables = `
	create table t (a integer, n numeric(10, 2), any_n numeric, d date, ts timestamptz, ntz timestamp, s text, ok boolean, f double precision,
		list integer[], id uuid, e mood, h interval);
	insert into t values (7, 12.5, 1.5, '2024-01-31', '2024-01-31 10:11:12.5-05', '2024-01-31 10:11:12.5', 'x', true, 2.5, '{1,2}',
		'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'happy', '1 day');
	create table u (k integer, n numeric(5, 1));
	insert into u values (7, 3)`

func connectStrict(t *testing.T) *pgx.Conn {
	t.Helper()
	c := connect(t)
	execute(t, c, "create type mood as enum ('happy', 'v1')")
	execute(t, c, strictTables)
	return c
}

// A query that Databricks answers gives the answer, or it is refused: with its
// own message by the translation, or for the types by Postgres.
func TestTheTextOfADecimalHasTheDigitsOfItsType(t *testing.T) {
	t.Parallel()
	c := connectStrict(t)
	const refused = "refused"
	for query, want := range map[string]string{
		// The type is declared.
		`select n || '' from t`:                                                         "12.50",
		`select (n) || '' from t`:                                                       "12.50",
		`select t.n::string from t`:                                                     "12.50",
		`select concat(x.n, '-', u.n) from t x join u on x.a = u.k`:                     "12.50-3.0",
		`select cast(n as text) from t group by n`:                                      "12.50",
		`select concat_ws(',', n, s) from t`:                                            "12.50,x",
		`with w as (select cast(n as decimal(4, 1)) as m from t) select m || '' from w`: "12.5",
		`select x from (select n || '' as x from t) q`:                                  "12.50",
		`select (select n || '' from u) from t`:                                         "3.0",
		`select 1.50 || ''`:                                                             "1.50",
		`select -0.5 || ''`:                                                             "-0.5",
		`select cast(coalesce(7, 0.5) as decimal(3, 1)) || ''`:                          "7.0",
		`select (coalesce(7, 0.5)::decimal(3, 1))::string`:                              "7.0",
		`select sum(n)::decimal(12, 2) || '' from t`:                                    "12.50",
		`select case when a > 0 then s || 'y' end from t`:                               "xy",
		`select a || '' from t union all select k || '' from u order by 1 limit 1`:      "7",
		// It is not.
		`select any_n || '' from t`:                                   refused,
		`select coalesce(7, 0.5) || ''`:                               refused,
		`select greatest(7, 0.5) || ''`:                               refused,
		`select least(7, 7.5)::string`:                                refused,
		`select cast(case when true then 7 else 0.5 end as string)`:   refused,
		`select concat(round(n, 1)) from t`:                           refused,
		`select if(true, 7, 0.5) || ''`:                               refused,
		`select nvl(7, 0.5) || ''`:                                    refused,
		`select nullif(n, 0) || '' from t`:                            refused,
		`select x || '' from (select coalesce(7, 0.5) as x) q`:        refused,
		`with w as (select least(7, 7.5) as m) select m || '' from w`: refused,
		`select x || '' from (values (7), (0.5)) v (x)`:               refused,
		`select x || '' from (select 7 as x union all select 0.5) q`:  refused,
		`select concat_ws(',', sum(n)) from t`:                        refused,
		`select array(7, 0.5)[0] || ''`:                               refused,
		`select 1.5 + n::decimal(3, 1) || '' from t`:                  refused,
	} {
		got, err := databricksValue(t, c, query)
		switch {
		case want == refused && err == "0A000: a text made of numeric is not supported with rwproxy.dialect = 'databricks'":
		case err != "" || got != want:
			t.Errorf("%s\ngot %s %s, want %s", query, got, err, want)
		}
	}
}

// What PostgreSQL reads generously Databricks does not read at all.
func TestConstantsAreReadInTheNotationOfDatabricks(t *testing.T) {
	t.Parallel()
	c := connectStrict(t)
	for expression, want := range map[string]string{
		`d = '2024-01-31'`:                  "t",
		`d = '2024-1-31'`:                   "t",
		`d in ('2024-01-30', "2024-01-31")`: "t",
		`ts > '2024-01-31 10:00'`:           "t",
		`ts > '2024-01-31T10:00:00Z'`:       "t",
		`ntz < '2024-01-31 10:11:12.6'`:     "t",
		`ok = 'yes'`:                        "t",
		`ok = 'T'`:                          "t",
		`a = '7'`:                           "t",
		`f = '2.5'`:                         "t",
		`s = 'yesterday'`:                   "f",
		`s < 'on'`:                          "f",
		`s || '2024'`:                       "x2024",
		`id = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'`: "t",
		`e = 'happy'`:                         "t",
		`d = date '2024-01-31'`:               "t",
		`date '2024'`:                         "2024-01-01",
		`date '2024-3'`:                       "2024-03-01",
		`timestamp '2024-01-31 1:2:3'`:        "2024-01-31 01:02:03-05",
		`interval '1-2' year to month`:        "1 year 2 mons",
		`interval '2' day`:                    "2 days",
		`d at time zone 'UTC' is null`:        "f",
		`s like 'a1%' escape '1'`:             "f",
		`coalesce(s, 'on')`:                   "x",
		`to_date('2024-01-31', 'yyyy-MM-dd')`: "2024-01-31",
		`to_date('20240131', 'yyyyMMdd')`:     "2024-01-31",
		`to_date('1.2.2024', 'd.M.yyyy')`:     "2024-02-01",
		`to_date('2024-03', 'yyyy-MM')`:       "2024-03-01",
		`to_date('2024-060', 'yyyy-DDD')`:     "2024-02-29",
		`to_timestamp('2024-01-31T10:11:12.123', "yyyy-MM-dd'T'HH:mm:ss.SSS")`: "2024-01-31 10:11:12.123-05",
		`unix_timestamp('1970-01-02 00:00', 'yyyy-MM-dd HH:mm')`:               "104400",

		`d > 'yesterday'`:                           "42883",
		`d = 'January 31, 2024'`:                    "42883",
		`d = '20240131'`:                            "42883",
		`d = '240131'`:                              "42883",
		`d = '31/1/2024'`:                           "42883",
		`d = 'infinity'`:                            "42883",
		`d between 'epoch' and d`:                   "42883",
		`d in ('2024-01-31', 'now')`:                "42883",
		`ts < 'tomorrow'`:                           "42883",
		`ts = '2024-01-31 10:11:12.1234567'`:        "42883",
		`ts = '2024-01-31 24:00:00'`:                "42883",
		`ok = 'on'`:                                 "42883",
		`ok = 'tru'`:                                "42883",
		`a = '0x10'`:                                "42883",
		`n = 'NaN'`:                                 "42883",
		`d > $$yesterday$$`:                         "42883",
		`d > E'yesterday'`:                          "42883",
		`case when true then d else 'infinity' end`: "42804",

		`date 'yesterday'`:          "22007",
		`date 'January 31, 2024'`:   "22007",
		`timestamp 'epoch'`:         "22007",
		`timestamp_ntz '31.1.2024'`: "22007",
		`date "infinity"`:           "22007",

		`to_date('2024-1-31', 'yyyy-MM-dd')`:    "22007",
		`to_date('2024-01-31 x', 'yyyy-MM-dd')`: "22007",
		`to_date('2024-02-30', 'yyyy-MM-dd')`:   "22008",
		`to_date('2024/01/31', 'yyyy-MM-dd')`:   "22007",
		`to_date('0000-01-31', 'yyyy-MM-dd')`:   "22007",

		`to_timestamp('2024-01-31 25:00', 'yyyy-MM-dd HH:mm')`: "22007",

		`unix_timestamp('1970-1-2', 'yyyy-MM-dd')`:       "22007",
		`to_date('31-01', 'dd-MM')`:                      "0A000",
		`to_date('2024131', 'yyyyMdd')`:                  "0A000",
		`to_timestamp('2024-01-31 10', 'yyyy-MM-dd hh')`: "0A000",

		`127Y + 1Y`:                           "0A000",
		`cast(a as tinyint)`:                  "0A000",
		`a::byte`:                             "0A000",
		`try_cast('1' as tinyint)`:            "0A000",
		`tinyint(a)`:                          "0A000",
		`interval 1 month = interval 30 days`: "0A000",
		`interval 30 days < interval 1 month`: "0A000",
		`h >= interval '1' month`:             "0A000",
		`h between interval 1 year and h`:     "0A000",
		`interval '2 mons' in (h)`:            "0A000",
		`d + interval 1 month > d`:            "t",
		`ts > ts - interval '1' year`:         "t",
		`h < interval 2 days`:                 "t",
		`extract(hour from h)`:                "0A000",
		`extract(day from ts - ts)`:           "0A000",
		`date_part('day', interval 49 hours)`: "0A000",
		`extract(hour from d)`:                "0",
		`trim('x', s)`:                        "",
		`ltrim('ab', 'abcab')`:                "cab",
		`rtrim('ab', 'abcab')`:                "abc",
		`trim(both 'x' from s)`:               "",
		`trim('  a ')`:                        "a",
		`regexp_like(s, 'a++')`:               "0A000",
		`locate('b', 'abab', 3)`:              "0A000",
		`rand(3)`:                             "0A000",
		`current_time`:                        "0A000",
	} {
		got, err := databricksValue(t, c, "select "+expression+" from t")
		if err != "" {
			got, _, _ = strings.Cut(err, ":")
		}
		if got != want {
			t.Errorf("%s\ngot %s %s, want %s", expression, got, err, want)
		}
	}
}

// databricksValue returns the first value of a query, or its error as SQLSTATE
// and message.
func databricksValue(t *testing.T, c *pgx.Conn, query string) (value, failure string) {
	t.Helper()
	translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, diagnosing{catalog{t, c}}, databricks)
	if err != nil {
		failure, _, _ = strings.Cut(errorText(query, err), "\n")
		return "", failure
	}
	results, err := c.PgConn().Exec(t.Context(), translation.SQL).ReadAll()
	if err != nil {
		d := diagnosticOf(t, err)
		if refusal, refused := rewrite.DatabricksRefusal(d); refused {
			d = refusal
		}
		return "", d.Code + ": " + d.Message
	}
	if results[0].Rows[0][0] == nil {
		return "NULL", ""
	}
	return string(results[0].Rows[0][0]), ""
}
