package integration

// shape is a flow whose refreshes are compared with recomputes. Its query's
// rows are determined by its sources' rows: orders are total, sums exact.
type shape struct {
	name    string
	sources []source
	// setup makes what the query needs besides: views, functions, indexes.
	setup []string
	// upstream is the query of a flow whose table, called upstream, the query
	// reads.
	upstream string
	// columns declares the target's columns; "" for the query's.
	columns string
	query   string
	// windows are predicates; the flow has the first one at first.
	windows []string
	// moving says that the windows move with the clock.
	moving bool
	// ofSession says that a setting of the session decides, which the queue's
	// sessions do not have.
	ofSession bool
	expect    narrowing
}

// narrowing says whether refreshes of a shape may write less than the window.
type narrowing int

const (
	narrowed narrowing = iota // must do so now and then
	never                     // must not: any proof would be wrong
	either                    // a proof would be right, and is not asked for
)

// Windows over the columns that most queries return.
var (
	overDays = []string{`d >= '2024-01-03'`, `d between '2024-01-02' and '2024-01-06'`, `d >= '2024-01-05' or d is null`, `d > '2024-01-01' and d <> '2024-01-04'`}
	overKeys = []string{`k >= 2`, `k in (1, 2, 3, 5)`, `k between 2 and 6 or k is null`, `k is distinct from 3`, `not (k = 4 or k = 5)`}
	overS    = []string{`s >= 2`, `s in (1, 2, 5)`, `s between 2 and 4 or s is null`, `s is distinct from 3`}
	overAll  = []string{`true`}
)

// indexed is a source with what the planner can make use of.
func indexed(of source, indexes ...string) source {
	of.create = append(of.create[:len(of.create):len(of.create)], indexes...)
	return of
}

func sources(list ...source) []source { return list }

var shapes = []shape{
	// One table.
	{name: "filter", sources: sources(facts), query: `select id, d, k, v from facts where v > 3`, windows: overDays},
	{name: "every column", sources: sources(facts), query: `select * from facts`, windows: overKeys},
	{name: "aggregate", sources: sources(facts), query: `select k, count(*) as n, sum(v) as v, max(c) as c from facts group by k`, windows: overKeys},
	{name: "aggregate by two", sources: sources(facts), query: `select d, k, count(*) as n, sum(v) as v from facts group by d, k`, windows: overDays},
	{name: "indexed", sources: sources(indexed(facts, `create index on facts (d)`, `create index on facts (k)`)), query: `select d, k, count(v) as n from facts group by d, k`, windows: overDays},
	{name: "having", sources: sources(facts), query: `select k, count(*) as n from facts group by k having count(*) > 2`, windows: overKeys},
	{name: "aggregates of all kinds", sources: sources(facts), windows: overKeys, query: `select k, count(distinct v) as distinct_v, array_agg(v order by v, id) as list,
		string_agg(c, ',' order by c, id) as words, count(*) filter (where v > 5) as large, percentile_disc(0.5) within group (order by v) as median,
		bool_or(v > 11) as any_large, jsonb_agg(v order by id) as json from facts group by k`},
	{name: "day of a timestamp", sources: sources(facts), query: `select date_trunc('day', at) as d, count(*) as n from facts group by 1`, windows: overDays},
	{name: "date of a timestamp", sources: sources(facts), query: `select at::date as d, k, sum(v) as v from facts group by 1, 2`, windows: overDays},
	{name: "coalesced key", sources: sources(facts), query: `select coalesce(k, -1) as k, sum(v) as v from facts group by 1`, windows: []string{`k > 2`, `k = -1 or k = 3`, `k < 5`}},
	{name: "computed key", sources: sources(facts), query: `select k % 3 as k, case when v > 5 then 'large' else 'small' end as size, count(*) as n from facts group by 1, 2`, windows: []string{`k = 1`, `k <> 1`, `k is null`, `size = 'large'`}, expect: either},
	{name: "lower case key", sources: sources(facts), query: `select lower(c) as c, count(*) as n from facts group by 1`, windows: []string{`c >= 'a'`, `c in ('a', 'b')`, `c is null or c = ''`}},
	{name: "text key", sources: sources(facts), query: `select c, count(*) as n from facts group by c`, windows: []string{`c > ''`, `c in ('a', 'A')`, `c is null or c = ''`}},
	{name: "key that ignores case", sources: sources(facts), setup: []string{`create collation ignoring_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)`}, query: `select id, c collate ignoring_case as c from facts`, windows: []string{`c = 'A'`, `c > 'a'`, `c is null`}, expect: either},
	{name: "numbers of several images", sources: sources(facts), query: `select n, id, v from facts`, windows: []string{`n >= 1`, `n in (1.0, 2.5)`, `n < 2 or n is null`}},
	{name: "padded key", sources: sources(facts), query: `select c::char(3) as c, id, v from facts`, windows: []string{`c >= 'a'`, `c = 'a'`, `c is null`}},
	{name: "floating key", sources: sources(facts), query: `select case when v = 3 then float8 'NaN' when v = 4 then float8 '-0' else v end as k, id from facts`, windows: []string{`k >= 0`, `k = 'NaN'`, `k < 9`}},
	{name: "interval key", sources: sources(facts), query: `select case when v % 2 = 0 then interval '1 month' else interval '30 days' end as i, id, k from facts`, windows: []string{`i > '29 days'`, `k > 2`, `k is null`}},
	{name: "distinct", sources: sources(facts), query: `select distinct d, k from facts where v is not null`, windows: overDays},
	{name: "distinct on", sources: sources(facts), query: `select distinct on (k) k, d, v, id from facts order by k, d desc nulls last, v, id`, windows: overKeys},
	{name: "window by key", sources: sources(facts), query: `select k, d, id, row_number() over (partition by k order by d, id) as n, sum(v) over (partition by k) as v from facts`, windows: overKeys},
	{name: "window by day, key in the predicate", sources: sources(facts), query: `select k, d, id, lag(v) over (partition by d order by id) as before from facts`, windows: overKeys, expect: either},
	{name: "window over everything", sources: sources(facts), query: `select k, id, rank() over (order by v, id) as n from facts`, windows: overKeys, expect: never},
	{name: "limit", sources: sources(facts), query: `select k, d, v, id from facts order by v, id limit 10`, windows: overKeys, expect: never},
	{name: "offset", sources: sources(facts), query: `select k, d, v, id from facts order by v, id offset 5`, windows: overKeys, expect: never},
	{name: "with ties", sources: sources(facts), query: `select k, v, id from facts order by v nulls last fetch first 4 rows with ties`, windows: overKeys, expect: never},
	{name: "rollup", sources: sources(facts), query: `select k, s, count(*) as n from facts group by rollup (k, s)`, windows: overKeys, expect: never},
	{name: "grouping sets with a common key", sources: sources(facts), query: `select k, s, count(*) as n from facts group by grouping sets ((k, s), (k))`, windows: overKeys, expect: either},
	{name: "predicate on an aggregate", sources: sources(facts), query: `select k, count(*) as n, coalesce(sum(v), 0) as v from facts group by k`, windows: []string{`n >= 2`, `v > 10`, `n < 4`}, expect: either},
	{name: "set-returning function", sources: sources(facts), query: `select k, id, generate_series(1, v % 3) as g from facts`, windows: overKeys},
	{name: "constant filter", sources: sources(facts), query: `select k, id, v from facts where 1 = 1 and k = 3`, windows: overKeys, expect: either},
	{name: "whole row", sources: sources(facts), query: `select f.k, f.id, f::text as image from facts f`, windows: overKeys},
	{name: "system columns", sources: sources(facts), query: `select k, id, tableoid::regclass::text as c from facts`, windows: overKeys, expect: never},

	// Joins.
	{name: "inner join", sources: sources(facts, dims), query: `select f.id, f.d, f.k, x.c, x.id as dim from facts f join dims x on x.s = f.s`, windows: overDays},
	{name: "join on the key", sources: sources(facts, dims), query: `select s, count(*) as n, sum(f.v) as v, max(x.c) as c from facts f join dims x using (s) group by s`, windows: overS},
	{name: "left join", sources: sources(facts, dims), query: `select f.id, f.d, f.k, x.c, x.id as dim from facts f left join dims x on x.s = f.s`, windows: overDays},
	{name: "right join", sources: sources(facts, dims), query: `select x.id as dim, x.s, f.id, f.v from facts f right join dims x on x.s = f.s`, windows: overS},
	{name: "full join", sources: sources(facts, others), query: `select f.k, f.id, o.id as other from facts f full join others o on o.k = f.k and o.d = f.d`, windows: overKeys},
	{name: "full join using", sources: sources(facts, dims), query: `select s, f.id, x.id as dim from facts f full join dims x using (s)`, windows: overS, expect: either},
	{name: "join and aggregate", sources: sources(facts, dims), query: `select f.d, x.r, count(*) as n, sum(f.v) as v from facts f join dims x on x.s = f.s group by 1, 2`, windows: overDays},
	{name: "left join and aggregate", sources: sources(facts, dims), query: `select f.d, coalesce(x.c, 'none') as c, sum(f.v) as v from facts f left join dims x on x.s = f.s and x.v > 3 group by 1, 2`, windows: overDays},
	{name: "three tables", sources: sources(facts, dims, regions), query: `select f.d, y.c, count(*) as n from facts f join dims x on x.s = f.s join regions y on y.r = x.r group by 1, 2`, windows: overDays},
	{name: "three tables, outer", sources: sources(facts, dims, regions), query: `select f.id, f.d, x.c, y.c as region from facts f left join dims x on x.s = f.s left join regions y on y.r = x.r`, windows: overDays},
	{name: "join of a join", sources: sources(facts, dims, regions), query: `select f.id, f.d, x.dim, x.region from facts f left join
		(select x.s, x.id as dim, y.id as region from dims x join regions y on y.r = x.r) x on x.s = f.s`, windows: overDays},
	{name: "outer join of an inner one", sources: sources(facts, others, dims), query: `select f.d, f.id, o.id as other, x.id as dim from facts f left join (others o join dims x on x.s = o.s) on o.k = f.k`, windows: overDays},
	{name: "join on two columns", sources: sources(facts, others), query: `select f.d, f.k, f.id, o.v from facts f join others o on o.d = f.d and o.k = f.k`, windows: overDays},
	{name: "join by ranges", sources: sources(facts, dims), query: `select f.id, f.k, x.id as dim from facts f join dims x on f.v between x.v and x.v + 2`, windows: overKeys},
	{name: "cross join", sources: sources(facts, regions), query: `select f.id, f.k, r.c from facts f cross join regions r`, windows: overKeys},
	{name: "self join", sources: sources(facts), query: `select a.k, a.id, b.id as other from facts a join facts b on b.k = a.k and b.id > a.id`, windows: overKeys},
	{name: "self join on another column", sources: sources(facts), query: `select a.k, a.id, b.id as other from facts a join facts b on b.v = a.s`, windows: overKeys},
	{name: "self left join", sources: sources(facts), query: `select a.k, a.id, b.id as other, b.k as other_k from facts a left join facts b on b.s = a.s and b.d < a.d`, windows: overKeys},
	{name: "anti-join", sources: sources(facts, dims), query: `select f.id, f.d from facts f left join dims x on x.s = f.s where x.s is null`, windows: overDays},
	{name: "unused left join", sources: sources(facts, indexed(dims, `create unique index on dims (id)`)), query: `select f.id, f.d, f.k from facts f left join dims x on x.id = f.s`, windows: overDays},
	{name: "lateral", sources: sources(facts, dims), query: `select x.s, x.id as dim, l.id, l.v from dims x cross join lateral (select id, v from facts f where f.s = x.s order by v, id limit 2) l`, windows: overS},
	{name: "left lateral", sources: sources(facts, dims), query: `select f.k, f.id, l.n from facts f left join lateral (select count(*) as n, max(v) as v from dims x where x.s = f.s) l on l.v > 2`, windows: overKeys},
	{name: "key of the other side", sources: sources(facts, dims), query: `select x.r as k, f.id, x.id as dim from facts f join dims x on x.s = f.s`, windows: overKeys},
	{name: "key of the optional side", sources: sources(facts, dims), query: `select x.r as k, count(*) as n, sum(f.v) as v from facts f left join dims x on x.s = f.s group by 1`, windows: overKeys},
	{name: "two aggregates", sources: sources(facts, others), query: `select k, a.n, b.v from (select k, count(*) as n from facts group by k) a left join (select k, sum(v) as v from others group by k) b using (k)`, windows: overKeys},
	{name: "series", sources: sources(facts), query: `select g as k, count(f.id) as n from generate_series(1, 8) g left join facts f on f.k = g group by g`, windows: overKeys},
	{name: "values", sources: sources(facts), query: `select x.k, x.label, f.id from (values (1, 'one'), (2, 'two'), (null, 'none')) x (k, label) join facts f on f.k is not distinct from x.k`, windows: overKeys},

	// Subqueries.
	{name: "exists", sources: sources(facts, dims), query: `select f.id, f.d, f.s from facts f where exists (select from dims x where x.s = f.s and x.v > 3)`, windows: overDays},
	{name: "not exists", sources: sources(facts, dims), query: `select f.id, f.d, f.s from facts f where not exists (select from dims x where x.s = f.s)`, windows: overDays},
	{name: "in", sources: sources(facts, dims), query: `select f.id, f.d from facts f where f.s in (select x.s from dims x where x.v > 3)`, windows: overDays},
	{name: "not in", sources: sources(facts, dims), query: `select f.id, f.d from facts f where f.s not in (select x.s from dims x)`, windows: overDays},
	{name: "not in, dims for a key", sources: sources(facts, dims), query: `select x.s, x.id from dims x where x.v not in (select f.v from facts f)`, windows: overS},
	{name: "correlated", sources: sources(facts, dims), query: `select f.id, f.d, (select max(x.v) from dims x where x.s = f.s) as v from facts f`, windows: overDays},
	{name: "correlated on the key", sources: sources(facts, others), query: `select f.id, f.k, (select count(*) from others o where o.k = f.k) as n from facts f`, windows: overKeys},
	{name: "uncorrelated", sources: sources(facts, others), query: `select f.id, f.d, f.v - (select coalesce(max(o.v), 0) from others o) as v from facts f`, windows: overDays},
	{name: "above the average", sources: sources(facts), query: `select id, k, v from facts where v > (select avg(v) from facts)`, windows: overKeys, expect: never},
	{name: "exists or", sources: sources(facts, dims), query: `select f.id, f.k from facts f where f.v > 8 or exists (select from dims x where x.s = f.s)`, windows: overKeys},
	{name: "any array", sources: sources(facts, dims), query: `select f.id, f.k from facts f where f.s = any (array(select x.s from dims x where x.v > 3))`, windows: overKeys},

	// Set operations and common table expressions.
	{name: "union all", sources: sources(facts, others), query: `select d, k, v from facts union all select d, k, v from others where v > 2`, windows: overDays},
	{name: "union", sources: sources(facts, others), query: `select d, k from facts union select d, k from others`, windows: overDays},
	{name: "union of different tables", sources: sources(facts, dims), query: `select k, c, 'fact' as origin from facts union all select s, c, 'dim' from dims`, windows: overKeys},
	{name: "union of a constant", sources: sources(facts), query: `select k, v from facts union all select 3, 7`, windows: overKeys},
	{name: "union of one table twice", sources: sources(facts), query: `select k, v, 1 as arm from facts where v > 3 union all select s, v, 2 from facts where v < 9`, windows: overKeys},
	{name: "intersect", sources: sources(facts, others), query: `select d, k from facts intersect select d, k from others`, windows: overDays},
	{name: "except", sources: sources(facts, others), query: `select d, k from facts except select d, k from others`, windows: overDays, expect: either},
	{name: "except all", sources: sources(facts, others), query: `select k from facts except all select k from others`, windows: overKeys, expect: either},
	{name: "common table expression", sources: sources(facts, dims), query: `with f as (select d, s, sum(v) as v from facts group by d, s) select f.d, f.s, f.v, x.c, x.id as dim from f join dims x on x.s = f.s`, windows: overDays},
	{name: "expression used twice", sources: sources(facts), query: `with f as (select k, count(*) as n from facts group by k) select a.k, a.n, b.n as next from f a left join f b on b.k = a.k + 1`, windows: overKeys, expect: either},
	{name: "materialized expression", sources: sources(facts), query: `with f as materialized (select k, count(*) as n from facts group by k) select * from f`, windows: overKeys, expect: either},
	{name: "recursion", sources: sources(tree), query: `with recursive r as (select id, parent as k, 1 as depth from tree where v > 4 union all
		select t.id, r.k, depth + 1 from tree t join r on t.parent = r.id % 7 where depth < 4) select k, id, depth, count(*) as n from r group by 1, 2, 3`, windows: overKeys, expect: either},

	// Views, functions, other kinds of tables.
	{name: "nested views", sources: sources(facts, dims), setup: []string{
		`create view valid as select * from facts where v is not null`,
		`create view by_day as select d, s, sum(v) as v from valid group by d, s`,
	}, query: `select b.d, b.s, b.v, x.id as dim from by_day b left join dims x on x.s = b.s`, windows: overDays},
	{name: "barrier view", sources: sources(facts), setup: []string{`create view barred with (security_barrier) as select * from facts where v > 1`}, query: `select k, count(*) as n from barred group by k`, windows: overKeys},
	{name: "immutable function", sources: sources(facts), setup: []string{`create function twice(integer) returns integer language sql immutable as 'select $1 * 2'`}, query: `select twice(k) as k, sum(v) as v from facts group by 1`, windows: overKeys, expect: either},
	{name: "function that reads a table", sources: sources(facts, dims), setup: []string{`create function best(integer) returns integer language sql stable as 'select max(v) from dims where s = $1'`}, query: `select id, k, best(s) as v from facts`, windows: overKeys, expect: never},
	{name: "partitions", sources: sources(parted), query: `select d, k, count(*) as n, sum(v) as v from parted group by d, k`, windows: overDays},
	{name: "partitions joined", sources: sources(parted, dims), query: `select p.d, p.id, p.k, x.id as dim from parted p join dims x on x.s = p.k`, windows: overDays},
	{name: "one partition", sources: sources(parted), query: `select k, count(*) as n from parted_3 group by k`, windows: overKeys},
	{name: "children", sources: sources(inherited), query: `select k, count(*) as n, sum(v) as v from inherited group by k`, windows: overKeys},
	{name: "only the parent", sources: sources(inherited), query: `select k, id, v from only inherited`, windows: overKeys},
	{name: "a flow's table", sources: sources(facts), upstream: `select d, k, sum(v) as v from facts group by d, k`, query: `select d, count(*) as n, sum(v) as v from upstream group by d`, windows: overDays},
	{name: "a flow's table and its source", sources: sources(facts), upstream: `select d, k, sum(v) as v from facts group by d, k`, query: `select u.d, u.k, u.v, f.id from upstream u join facts f on f.k = u.k and f.d = u.d`, windows: overDays, expect: either},

	// Targets and predicates.
	{name: "declared columns", sources: sources(facts), columns: `k integer, note text default 'new', v numeric(8, 1), d date`, query: `select k, n as v, at as d from facts`, windows: append(overDays[:len(overDays):len(overDays)], overKeys...)},
	{name: "unique key", sources: sources(facts), columns: `k integer unique, n bigint`, query: `select k, count(*) as n from facts group by k`, windows: overKeys},
	{name: "everything", sources: sources(facts), query: `select k, d, id, v from facts`, windows: overAll},
	{name: "predicate on what is no key", sources: sources(facts), query: `select id, k, v, d from facts`, windows: []string{`v > 3`, `v > 3 and d > '2024-01-02'`, `v + coalesce(k, 0) > 5`, `(v % 2 = 0) is not false`}},
	{name: "predicate of a session's setting", ofSession: true, sources: sources(facts), query: `select k, id, v from facts`, windows: []string{`k >= coalesce(nullif(current_setting('oracle.least', true), ''), '4')::integer`}, expect: either},
	{name: "window that moves", sources: sources(sightings), query: `select at, id, k, v from sightings`, moving: true, windows: []string{
		`at >= now() - interval '1 second'`, `at between now() - interval '2 seconds' and now() + interval '1 second'`, `at < now()`, `at >= date_trunc('second', now()) and k > 2`,
	}},
	{name: "window that moves over an aggregate", sources: sources(sightings), query: `select date_trunc('second', at) as at, k, count(*) as n, sum(v) as v from sightings group by 1, 2`, moving: true, windows: []string{
		`at >= date_trunc('second', now()) - interval '1 second'`, `at < now() - interval '1 second' or k = 3`, `at <= current_timestamp`, `at is null or at > now()`,
	}},
	{name: "window that moves over a join", sources: sources(sightings, dims), query: `select e.at, e.id, x.id as dim, x.c from sightings e left join dims x on x.s = e.k`, moving: true, windows: []string{
		`at >= now() - interval '1 second'`, `at < now() + interval '1 second'`,
	}},
	{name: "clock in the query", sources: sources(facts), query: `select current_date - k as d, k, id, v from facts`, windows: []string{`d >= current_date - 4`, `d between current_date - 6 and current_date - 2`}, expect: never},
}
