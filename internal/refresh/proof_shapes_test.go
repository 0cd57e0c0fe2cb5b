package refresh

// sourcesOfShapes are the tables that the shapes read. Small domains make random
// rows meet; what can be NULL is.
const sourcesOfShapes = `
create type mood as enum ('sad', 'ok', 'happy');
create domain shop as int check (value >= 0);
create table s (id int primary key, day date, region text, store int, product int, amount numeric(8, 2), note varchar(10));
create table d (store int, city text, manager int, size bigint);
create table m (id int primary key, name text);
create table u (id int primary key, label text not null);
create table ev (at timestamptz, plain timestamp, kind char(3), shop shop, how mood, n numeric, flag bool);
create table p (id int, day date, store int, amount int) partition by range (day);
create table p1 partition of p for values from ('2024-01-01') to ('2024-01-03');
create table p2 partition of p default;
create table parent (id int, day date, store int);
create table child (extra int) inherits (parent);
`

// shape is a query, the columns that may be its keys, and what is to be proved
// of its sources, one line for each in the order of their names:
//
//	s: day? region?      keys of the first route; ? when NULL is proved, ! when
//	                     no row with NULL is touched, * when every one may be
//	d: day? by store     the last key is reached by a hop over that source column
//	d: unscanned         the rows do not depend on d
//	d: none              a change of d may touch any row
type shape struct {
	name  string
	query string
	keys  string
	want  []string
}

var shapes = []shape{
	{
		"a filter",
		`select id, day, region from s where amount > 3`,
		"day region",
		[]string{"s: day? region?"},
	},
	{
		"row by row",
		`select id, day, region, amount from s`,
		"day region id",
		[]string{"s: day? id!"},
	},
	{
		"an aggregate",
		`select day, region, sum(amount) as a, count(*) as n from s group by day, region`,
		"day region",
		[]string{"s: day? region?"},
	},
	{
		"an aggregate with a constant filter",
		`select day, region, sum(amount) as a from s where region = 'n' group by day, region`,
		"day region",
		[]string{"s: day?"},
	},
	{
		"a grand total",
		`select sum(amount) as a from s`,
		"a",
		[]string{"s: none"},
	},
	{
		"an inner join",
		`select s.id, s.day, d.city from s join d on d.store = s.store`,
		"day city",
		[]string{"d: city?", "s: day?"},
	},
	{
		"an inner join aggregated",
		`select s.day, sum(s.amount) as a, count(d.city) as n from s join d on d.store = s.store group by s.day`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"a dimension's column as key",
		`select s.day, d.city, sum(s.amount) as a from s join d on d.store = s.store group by s.day, d.city`,
		"day city",
		[]string{"d: city?", "s: day?"},
	},
	{
		"only a dimension's column as key",
		`select d.city, sum(s.amount) as a from s join d on d.store = s.store group by d.city`,
		"city",
		[]string{"d: city?", "s: city? by store"},
	},
	{
		"a left join",
		`select s.id, s.day, d.city from s left join d on d.store = s.store`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"a left join keyed by its nullable side",
		`select s.id, s.day, d.city from s left join d on d.store = s.store`,
		"city",
		[]string{"d: city*", "s: city* by store"},
	},
	{
		"a left join keyed by both sides",
		`select s.id, s.day, d.city from s left join d on d.store = s.store`,
		"city day",
		[]string{"d: city* day? by city store", "s: day?"},
	},
	{
		"a right join",
		`select s.id, s.day, d.city from s right join d on d.store = s.store`,
		"day city",
		[]string{"d: city?", "s: day* city? by day store"},
	},
	{
		"a full join",
		`select s.id, s.day, d.city from s full join d on d.store = s.store`,
		"day city",
		[]string{"d: city*", "s: day*"},
	},
	{
		"a full join using",
		`select store, s.day, d.city from s full join d using (store)`,
		"store day",
		[]string{"d: store*", "s: store* day*"},
	},
	{
		"a join reduced by a filter",
		`select s.day, d.city from s left join d on d.store = s.store where d.city <> 'x'`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"three tables in a chain",
		`select s.day, m.name, sum(s.amount) as a from s join d on d.store = s.store join m on m.id = d.manager group by s.day, m.name`,
		"day",
		[]string{"d: day? by store", "m: day? by id", "s: day?"},
	},
	{
		"three tables in a chain of left joins",
		`select s.day, s.id, d.city, m.name from s left join d on d.store = s.store left join m on m.id = d.manager`,
		"day",
		[]string{"d: day? by store", "m: day? by id", "s: day?"},
	},
	{
		"a join of joins",
		`select s.day, s.id, x.city, x.name from s left join (d join m on m.id = d.manager) as x on x.store = s.store`,
		"day",
		[]string{"d: day? by store", "m: day? by id", "s: day?"},
	},
	{
		"a star",
		`select s.day, d.city, m.name, sum(s.amount) as a from s left join d on d.store = s.store left join m on m.id = s.product group by s.day, d.city, m.name`,
		"day",
		[]string{"d: day? by store", "m: day? by id", "s: day?"},
	},
	{
		"two columns joined",
		`select s.id, s.day, d.city from s join d on d.store = s.store and d.manager = s.product`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"a join over equal columns",
		`select s.store, s.id, d.city, p.amount from s join d on d.store = s.store join p on p.store = d.store`,
		"store",
		[]string{"d: store!", "p: store!", "s: store?"},
	},
	{
		"a range join",
		`select s.id, s.day, p.id as p from s join p on p.day between s.day and s.day + 1`,
		"day",
		[]string{"p: none", "s: day?"},
	},
	{
		"a cross join",
		`select s.id, s.day, m.name from s cross join m`,
		"day",
		[]string{"m: none", "s: day?"},
	},
	{
		"union all",
		`select day, store, amount from s union all select day, store, amount from p`,
		"day",
		[]string{"p: day?", "s: day?"},
	},
	{
		"union",
		`select day, store from s union select day, store from p`,
		"day store",
		[]string{"p: day? store?", "s: day? store?"},
	},
	{
		"union all of one table twice",
		`select day, id as x from s union all select day, store from s`,
		"day x",
		[]string{"s: day? x?"},
	},
	{
		"union all with other columns",
		`select day as k, id from s union all select date '2024-01-02', id from m`,
		"k",
		[]string{"m: none", "s: k?"},
	},
	{
		"a join above union all",
		`select x.day, d.city from (select day, store from s union all select day, product from s) as x join d on d.store = x.store`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"a join above union all of two tables",
		`select x.day, d.city, x.store from (select day, store from p union all select day, product from s) as x join d on d.store = x.store`,
		"day",
		[]string{"d: none", "p: day?", "s: day?"},
	},
	{
		"except",
		`select day, store from s except select day, store from p`,
		"day",
		[]string{"p: none", "s: none"},
	},
	{
		"intersect all",
		`select day, store from s intersect all select day, store from p`,
		"day",
		[]string{"p: day?", "s: day?"},
	},
	{
		"exists",
		`select s.id, s.day from s where exists (select from d where d.store = s.store)`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"not exists",
		`select s.id, s.day from s where not exists (select from d where d.store = s.store)`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"not exists the other way",
		`select d.store, d.city from d where not exists (select from s where d.store = s.store and s.day = '2024-01-02')`,
		"store city",
		[]string{"d: store? city?", "s: store!"},
	},
	{
		"in",
		`select s.id, s.day from s where s.store in (select store from d where manager > 1)`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"not in",
		`select s.id, s.day from s where s.store not in (select store from d)`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"a correlated scalar subquery",
		`select s.id, s.day, (select count(*) from d where d.store = s.store) as n from s`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"a correlated subquery in a condition",
		`select s.id, s.day from s where s.amount > (select avg(x.amount) from s as x where x.region = s.region)`,
		"day",
		[]string{"s: day? by day region"},
	},
	{
		"an uncorrelated scalar subquery",
		`select s.id, s.day, (select max(size) from d) as n from s`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"an uncorrelated subquery in a condition",
		`select s.id, s.day from s where s.store = (select min(store) from d)`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"an aggregate joined",
		`select s.id, s.day, x.n from s join (select store, count(*) as n from d group by store) as x on x.store = s.store`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"an aggregate of the same table joined",
		`select s.id, s.day, x.a from s join (select day, sum(amount) as a from s group by day) as x on x.day = s.day`,
		"day",
		[]string{"s: day?"},
	},
	{
		"a grand total joined",
		`select s.id, s.day, s.amount / nullif(x.a, 0) as share from s, (select sum(amount) as a from s) as x`,
		"day",
		[]string{"s: none"},
	},
	{
		"distinct",
		`select distinct day, region from s`,
		"day region",
		[]string{"s: day? region?"},
	},
	{
		"distinct on",
		`select distinct on (day) day, id, region from s order by day, id`,
		"day region",
		[]string{"s: day?"},
	},
	{
		"distinct on another column",
		`select distinct on (region) day, id, region from s order by region, id`,
		"day region",
		[]string{"s: region?"},
	},
	{
		"a window of the key",
		`select day, id, row_number() over (partition by day order by id) as n from s`,
		"day",
		[]string{"s: day?"},
	},
	{
		"a window of another column",
		`select day, id, count(*) over (partition by region) as n from s`,
		"day",
		[]string{"s: none"},
	},
	{
		"two windows",
		`select day, region, id, count(*) over (partition by day) as a, count(*) over (partition by day, region) as b from s`,
		"day region",
		[]string{"s: day?"},
	},
	{
		"a filter on a window",
		`select day, id, n from (select day, id, row_number() over (partition by day order by id) as n from s) as x where n <= 2`,
		"day",
		[]string{"s: day?"},
	},
	{
		"lateral",
		`select s.day, s.id, x.city from s, lateral (select d.city from d where d.store = s.store order by d.city limit 1) as x`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"lateral with an outer join",
		`select s.day, s.id, x.n from s left join lateral (select count(*) as n, max(d.city) as c from d where d.store = s.store) as x on true`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"a self join",
		`select a.id, a.day, b.id as other from s as a join s as b on b.store = a.product`,
		"day",
		[]string{"s: day? by store product day"},
	},
	{
		"a self join on the key",
		`select a.id, a.day, b.id as other from s as a join s as b on b.day = a.day and b.id < a.id`,
		"day",
		[]string{"s: day?"},
	},
	{
		"a self left join",
		`select a.id, a.day, b.day as next from s as a left join s as b on b.id = a.id + 1`,
		"day",
		[]string{"s: none"},
	},
	{
		"a key of two scans",
		`select a.id, b.id as other, a.day from s as a join s as b on a.product = b.store`,
		"day other",
		[]string{"s: day? by store product day"},
	},
	{
		"a CTE used once",
		`with x as (select day, store, sum(amount) as a from s group by day, store) select x.day, x.a, d.city from x join d on d.store = x.store`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"a CTE used twice",
		`with x as (select day, sum(amount) as a from s group by day) select x.day, x.a, y.a as other from x left join x as y on y.day = x.day - 1`,
		"day",
		[]string{"s: none"},
	},
	{
		"a materialized CTE",
		`with x as materialized (select day, id from s) select day, id from x`,
		"day",
		[]string{"s: none"},
	},
	{
		"a recursive CTE",
		`with recursive x (id, day, depth) as (select id, day, 0 from s where store = 0 union all select s.id, s.day, x.depth + 1 from x join s on s.store = x.id where x.depth < 3) select * from x`,
		"day id",
		[]string{"s: none"},
	},
	{
		"limit",
		`select day, id from s order by id limit 5`,
		"day id",
		[]string{"s: none"},
	},
	{
		"a limit below a join",
		`select x.day, d.city from d join (select day, store from s order by id limit 5) as x on x.store = d.store`,
		"day city",
		[]string{"d: city?", "s: none"},
	},
	{
		"a limit on the dimension",
		`select s.day, s.id, x.city from s join (select store, city from d order by store, city, size limit 4) as x on x.store = s.store`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"a window on the dimension",
		`select s.day, s.id, x.n from s join (select store, count(*) over () as n from d) as x on x.store = s.store`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"a window of the join column on the dimension",
		`select s.day, s.id, x.n from s join (select store, count(*) over (partition by store) as n from d) as x on x.store = s.store`,
		"day",
		[]string{"d: none", "s: day?"},
	},
	{
		"distinct on the dimension",
		`select s.day, s.id, x.city from s join (select distinct store, city from d) as x on x.store = s.store`,
		"day",
		[]string{"d: day? by store", "s: day?"},
	},
	{
		"rollup",
		`select day, region, sum(amount) as a from s group by rollup (day, region)`,
		"day region",
		[]string{"s: none"},
	},
	{
		"grouping sets with the key in each",
		`select day, region, store, sum(amount) as a from s group by grouping sets ((day, region), (day, store))`,
		"day",
		[]string{"s: none"},
	},
	{
		"having",
		`select day, sum(amount) as a from s group by day having count(*) > 1`,
		"day",
		[]string{"s: day?"},
	},
	{
		"a month of a date",
		`select date_trunc('month', day::timestamp)::date as month, sum(amount) as a from s group by 1`,
		"month",
		[]string{"s: month?"},
	},
	{
		"a day of a timestamp with time zone",
		`select at::date as day, count(*) as n from ev group by 1`,
		"day",
		[]string{"ev: day?"},
	},
	{
		"a day in another time zone",
		`select (at at time zone 'Asia/Tokyo')::date as day, count(*) as n from ev group by 1`,
		"day",
		[]string{"ev: day?"},
	},
	{
		"date_trunc of both timestamps",
		`select date_trunc('day', at) as d, date_trunc('hour', plain) as h, count(*) as n from ev group by 1, 2`,
		"d h",
		[]string{"ev: d? h?"},
	},
	{
		"text of numbers",
		`select n::text as k, count(*) as c from ev group by n`,
		"k",
		[]string{"ev: none"},
	},
	{
		"numbers",
		`select n, count(*) as c from ev group by n`,
		"n",
		[]string{"ev: n?"},
	},
	{
		"padded text, a domain, an enumeration and a truth value",
		`select kind, shop, how, flag, count(*) as c from ev group by 1, 2, 3, 4`,
		"kind shop how",
		[]string{"ev: kind? shop? how?"},
	},
	{
		"a truth value",
		`select flag, count(*) as c from ev group by 1`,
		"flag",
		[]string{"ev: flag?"},
	},
	{
		"functions of text",
		`select lower(region) as r, left(note, 2) as l, coalesce(region, '-') as c, count(*) as n from s group by 1, 2, 3`,
		"r l c",
		[]string{"s: r? l? c?"},
	},
	{
		"joined text",
		`select region || '/' || note as k, count(*) as n from s group by 1`,
		"k",
		[]string{"s: k?"},
	},
	{
		"integer division",
		`select id / 10 as bucket, count(*) as n from s group by 1`,
		"bucket",
		[]string{"s: bucket?"},
	},
	{
		"an expression that can fail",
		`select 100 / nullif(store, 0) as k, count(*) as n from s group by 1`,
		"k",
		[]string{"s: none"},
	},
	{
		"a case",
		`select case when amount > 3 then 'big' else 'small' end as k, count(*) as n from s group by 1`,
		"k",
		[]string{"s: none"},
	},
	{
		"a key of two tables",
		`select coalesce(s.region, d.city) as k, count(*) as n from s join d on d.store = s.store group by 1`,
		"k",
		[]string{"d: none", "s: none"},
	},
	{
		"a wider integer joined",
		`select s.day, s.id, m.size from s join (select store, size from d) as m on m.size = s.id`,
		"day id",
		[]string{"d: id!", "s: day? id!"},
	},
	{
		"a partitioned table",
		`select day, sum(amount) as a from p group by day`,
		"day",
		[]string{"p: day?"},
	},
	{
		"a partitioned table joined",
		`select p.day, p.id, d.city from p join d on d.store = p.store`,
		"day",
		[]string{"d: day? by store", "p: day?"},
	},
	{
		"a partitioned table as dimension",
		`select s.day, s.id, p.amount from s join p on p.store = s.store`,
		"day",
		[]string{"p: day? by store", "s: day?"},
	},
	{
		"a partition by itself",
		`select day, sum(amount) as a from p1 group by day`,
		"day",
		[]string{"p1: day?"},
	},
	{
		"a partition beside its table",
		`select p.day, p.id, p1.amount from p join p1 on p1.day = p.day`,
		"day",
		[]string{"p: day?"},
	},
	{
		"an inherited table",
		`select day, store, count(*) as n from parent group by day, store`,
		"day store",
		[]string{"parent: day? store?"},
	},
	{
		"an inherited table joined",
		`select parent.day, parent.id, d.city from parent left join d on d.store = parent.store`,
		"day",
		[]string{"d: day? by store", "parent: day?"},
	},
	{
		"only the parent",
		`select day, count(*) as n from only parent group by day`,
		"day",
		[]string{"parent: day?"},
	},
	{
		"a unique left join without columns",
		`select s.day, s.id from s left join m on m.id = s.product`,
		"day",
		[]string{"m: unscanned", "s: day?"},
	},
	{
		"renamed columns",
		`select x.b as day, x.a as id, d.city from s as x (a, b, c, e) join d on d.store = x.e`,
		"day",
		[]string{"d: none", "s: none"},
	},
	{
		"swapped column names",
		`select x.id as day, x.region from s as x (day, id) where x.day > 0`,
		"day",
		[]string{"s: none"},
	},
	{
		"values",
		`select v.k, count(s.id) as n from (values (date '2024-01-01'), (date '2024-01-02')) as v (k) left join s on s.day = v.k group by v.k`,
		"k",
		[]string{"s: k*"},
	},
	{
		"a series",
		`select g.k::date as k, count(s.id) as n from generate_series(timestamp '2024-01-01', '2024-01-04', '1 day') as g (k) left join s on s.day = g.k::date group by g.k`,
		"k",
		[]string{"s: k*"},
	},
	{
		"a set in the select list",
		`select day, id, generate_series(1, store) as n from s`,
		"day n",
		[]string{"s: day?"},
	},
	{
		"whole rows",
		`select day, max(s::text) as r from s group by day`,
		"day",
		[]string{"s: day?"},
	},
}
