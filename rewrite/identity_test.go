package rewrite_test

import (
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/rewrite"
)

// Text that PostgreSQL accepts keeps its meaning: it is not touched. Postgres
// itself says that each of these is such a text.
func TestWhatPostgresAcceptsIsNotTranslated(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `
		create table t (id integer, name text, day date, at timestamptz, amount numeric, list integer[], doc jsonb, ok boolean,
			regexp text, div integer, qualify boolean, semi integer, anti integer, minus integer, "end" integer, first text, stream text, explode text);
		create type r as (x integer);
		create function mode(integer) returns integer language sql return $1`)
	for _, query := range []string{
		`select 7 / 2, 2 ^ 3, 5 # 3, 5 & 3, 5 | 3, ~5, 1 << 2, 8 >> 1, -7 % 3, |/ 4, @ -5 from t`,
		`select log(10), concat('a', null), substring('abc', 0, 2), right('abc', -1), cast(2.7 as int), round(2.5::float8), initcap('a-b') from t`,
		`select list[1], list[1:2], (array[1, 2])[1], (array_agg(id))[1] from t group by list`,
		`select 'a\nb', E'a\nb', U&'\0061', $$a$$, $x$'a'$x$, B'101', X'1F', N'a' from t`,
		`select 'a'
			'b' from t`,
		`select "name", "end" from t where "name" = 'x'`,
		`select interval '7' day, interval '1-2' year to month, interval '7 days', interval '1' from t`,
		`select id from t order by name, day desc limit 10 offset 1`,
		`select cast('1' as decimal), cast('1' as float), '1'::real, '2024-01-01'::timestamp from t`,
		`select day - day, day - 7, day + 1, day + interval '1 day', at - at from t`,
		`select extract(dow from day), date_part('dow', day), extract(epoch from at) from t`,
		`select user, current_user, current_date, current_timestamp(3), localtime from t`,
		`select regexp_replace(name, '(a)', '\1'), name ~ '\d', name !~* 'x', name similar to 'a%' from t`,
		`select regexp, div, qualify, semi, anti, minus, first, stream, explode from t`,
		`select id div, name regexp from t qualify`,
		`select * from t div (a), t semi (b, c)`,
		`select mode(id), mode() within group (order by id), percentile_cont(0.5) within group (order by id) from t group by id`,
		`select count(*), count(id), count(distinct id), count(distinct (id, name)), sum(amount) filter (where ok) from t`,
		`select string_agg(name, ', ' order by id), array_agg(distinct id), bool_or(ok), every(ok) from t`,
		`select trunc(amount, 1), trunc(amount), date_trunc('month', at), date_trunc('mon', at), to_char(at, 'YYYY'), to_date('2024', 'YYYY') from t`,
		`select to_timestamp(1), to_timestamp('1'), to_timestamp('2024', 'YYYY') from t`,
		`select id = any (array[1, 2]), id = any (select 1), id <> all (list), name like any (array['a']), name like all ('{a}') from t`,
		`select array(select 1), array[1, 2], array[array[1]] from t`,
		`select doc -> 'a', doc ->> 'a', doc @> '{}', doc ? 'a', doc #> '{a}', doc['a'] from t`,
		`select name collate "C" < 'a', at at time zone 'UTC', (row(1, 2)).f1 from t`,
		`select left(name, -1), right(name, 1), coalesce(name, ''), nullif(id, 0), greatest(1, 2), least(1, 2) from t`,
		`select trim(both 'x' from name), trim(leading from name), overlay(name placing 'x' from 1), position('a' in name), substring(name from 1 for 2) from t`,
		`select ok is true, ok isnull, ok notnull, ok is not distinct from true, not ok and ok or ok from t`,
		`select case when ok then 1 else 2 end, case id when 1 then 'a' end from t`,
		`select id from t group by rollup (id), cube (name), grouping sets ((id), (name)) having count(*) > 1`,
		`select id, row_number() over w, sum(id) over (order by id desc rows between 1 preceding and current row) from t window w as (partition by name order by id)`,
		`select id from t union all select 1 intersect select 2 except select 3 order by 1`,
		`select * from t except (select * from t)`,
		`select t.* from t except (values (1))`,
		`with window_sales as (select 1 as x), first as (select 2 as y) select * from window_sales, first`,
		`with recursive first (n) as (select 1 union all select n + 1 from first where n < 3) select n from first`,
		`select * from t tablesample bernoulli (10) repeatable (1)`,
		`select * from t left join t u using (id) cross join lateral (select 1) l full join t v on v.id = u.id`,
		`select distinct on (id) id, name from t order by id, name desc nulls last for update`,
		`select id from t fetch first 5 rows with ties`,
		`select n from generate_series(1, 3) with ordinality as g (n, o) order by o fetch first 1 rows only`,
		`select id from t order by id fetch first 5 rows with ties`,
		`select make_interval(days => 1), make_date(2024, 1, 1), x.* from json_to_recordset('[]') as x (a int, b text)`,
		`select 1 as "a", 2 b, 3 "c" from t as "t"`,
		`select '{1}'::int[], '1'::varchar(3)[1], cast('{1}' as int[3]), cast('a' as char varying (3)) from t`,
		`select xmlparse(content '<a/>'), xmlelement(name a) from t`,
		`values (1, 'a'), (2, 'b')`,
		`table t`,
		`select id as day, date '2024-01-01' as date, date '2024-01-02' as x, interval '1' day as y, extract(year from day) as year from t`,
		`select name as first, row_number() over (order by id desc nulls first rows between 1 preceding and current row) as rows from t`,
		`select max(day) as day, count(*) as id from t group by id, amount having max(day) > '2024-01-01'::date + interval '1' day order by id + 1`,
		`select operator_column.id operator_column from t as operator_column where id operator(pg_catalog.=) 1`,
		`select 1e3, .5, 5. from t`,
		`select r '(1)' from t`,
	} {
		// What else may be wrong with it does not matter here.
		if _, err := c.Prepare(t.Context(), "", query); err != nil && strings.Contains(err.Error(), "syntax error") {
			t.Errorf("Postgres: %s\n%v", query, err)
		}
		for _, lexical := range []rewrite.Lexical{{}, {BackslashEscapes: true}} {
			translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, diagnosing{catalog{t, c}}, lexical)
			if err != nil {
				t.Errorf("%s\n%v", query, err)
			} else if translation.SQL != query {
				t.Errorf("%s\nbecame\n%s", query, translation.SQL)
			}
		}
	}
}
