package rewrite_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

const sales = `create table sales (region text, product text, n integer, price integer);
	insert into sales values ('north', 'tea', 5, 2), ('north', 'tea', 10, 2), ('south', 'tea', 1, 3), ('south', null, 1, 3);
	create table regions (region text, country text);
	insert into regions values ('north', 'no'), ('south', 'so');
	create aggregate total (integer) (sfunc = int4pl, stype = integer, initcond = '0');
	create schema other; create aggregate other."My Sum" (integer) (sfunc = int4pl, stype = integer, initcond = '0');`

func TestGroupByAllGroupsByWhatHoldsNoAggregate(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, sales)
	for query, want := range map[string]string{
		`select region, sum(n) from sales group by all`:                                                        `select region, sum(n) from sales group by region`,
		`select upper(region) r, product, sum(n * price) + 1 from sales GROUP BY ALL`:                          `select upper(region), product, sum(n * price) + 1 from sales group by upper(region), product`,
		`select region, product from sales group by all`:                                                       `select distinct region, product from sales`,
		`select 'all' as x, 1, count(*) from sales group by all`:                                               `select 'all', 1, count(*) from sales`,
		`select count(*) from sales where false group by all`:                                                  `select 0`,
		`select count(*) + sum(n) as n from sales group by all having count(*) > 1`:                            `select 4 + 17`,
		`select region, case when sum(n) > 2 then 'many' else 'few' end from sales group by all`:               `values ('north', 'many'), ('south', 'few')`,
		`select region, (select max(price) from sales) m, count(*) from sales group by all`:                    `values ('north', 3, 2), ('south', 3, 2)`,
		`select region, count(*) filter (where product is not null) from sales group by all having true`:       `values ('north', 2), ('south', 1)`,
		`select count(*), region, max(n) from sales s group by all order by 2 limit 1`:                         `values (2, 'north', 10)`,
		`select region || '!' as region, total(n) from sales group by all`:                                     `values ('north!', 15), ('south!', 2)`,
		`select region, other."My Sum"(n) from sales group by all`:                                             `values ('north', 15), ('south', 2)`,
		`select *, count(*) from sales group by all`:                                                           `select region, product, n, price, count(*) from sales group by 1, 2, 3, 4`,
		`select r.*, sum(n), s.product from sales s join regions r using (region) group by all`:                `select r.region, r.country, sum(n), s.product from sales s join regions r using (region) group by 1, 2, 4`,
		`with x as (select region, sum(n) n from sales group by all) select * from x group by all`:             `values ('north', 15), ('south', 2)`,
		`select n, count(*) from (select region, sum(n) n from sales group by all) x group by all`:             `values (2, 1), (15, 1)`,
		`select region, sum(n) from sales group by all union all select 'x', count(*) from sales group by all`: `values ('north', 15), ('south', 2), ('x', 4)`,
		`select region, percentile_cont(0.5) within group (order by n) p from sales group by all`:              `values ('north', 7.5), ('south', 1)`,
		`select region is distinct from 'north' as other, count(*) from sales group by all`:                    `values (false, 2), (true, 2)`,
		`select extract(year from date '2024-01-01') as year, count(*) from sales group by all`:                `values (2024, 4)`,
		`select region, count_if(n > 1) from sales group by all`:                                               `values ('north', 2), ('south', 0)`,
		`select region, string_agg(distinct product, ',' order by product) from sales group by all`:            `values ('north', 'tea'), ('south', 'tea')`,
		`select region, sum(n) <=> 15 as x from sales group by all`:                                            `values ('north', true), ('south', false)`,
		`select distinct count(*) from (select region, 1 day from sales group by all) x group by all`:          `values (2)`,
		`select region, sum(n) from sales group by all region`:                                                 `select region, sum(n) from sales group by region`,
	} {
		expectSame(t, c, query, want)
	}
}

// expectSame translates a query and compares its rows, in any order, with
// those of another.
func expectSame(t *testing.T, c *pgx.Conn, query, want string) {
	t.Helper()
	translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, catalog{t, c}, rewrite.Lexical{})
	if err != nil {
		t.Errorf("%s\n%v", query, err)
		return
	}
	got, expected := rows(t, c, translation.SQL), rows(t, c, want)
	slices.SortFunc(got, slices.Compare[[]string])
	slices.SortFunc(expected, slices.Compare[[]string])
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("%s became\n%s\n-want +got\n%s", query, translation.SQL, diff)
	}
}

func TestGroupByAllThatCannotBeInferredIsRefused(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, sales)
	for query, want := range map[string]string{
		`select n + count(*) from sales group by all`: "42803: cannot infer grouping columns for GROUP BY ALL\n" +
			"HINT: Every item of the select list holds an aggregate; list the grouping columns.\nAT: group by all",
		`select region, grouping(region) from sales group by all`: "0A000: grouping together with GROUP BY ALL is not supported in a REPLACE WHERE flow\n" +
			"HINT: List the grouping columns in ROLLUP, CUBE or GROUPING SETS.\nAT: grouping(region) from sales group by all",
		`select region, row_number() over (order by region) from sales group by all`: "0A000: a window function together with GROUP BY ALL is not supported in a REPLACE WHERE flow\n" +
			"HINT: List the grouping columns.\nAT: over (order by region) from sales group by all",
		`select * from regions r, lateral (select f.*, count(*) from unnest(array[r.region]) f group by all) x`: "0A000: * whose columns only the query around it tells is not supported in a REPLACE WHERE flow\n" +
			"HINT: List the columns.\nAT: f.*, count(*) from unnest(array[r.region]) f group by all) x",
	} {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, catalog{t, c}, rewrite.Lexical{})
		if err == nil {
			t.Errorf("%s became\n%s", query, translation.SQL)
			continue
		}
		if diff := cmp.Diff(want, errorText(before+query, err)); diff != "" {
			t.Errorf("%s\n-want +got\n%s", query, diff)
		}
	}
}

func TestAMixedItemLeavesPostgresToRefuseWhatIsNotGrouped(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, sales)
	query := `select region, n + count(*) from sales group by all`
	translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, catalog{t, c}, rewrite.Lexical{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Prepare(t.Context(), "", translation.SQL)
	position := postgresPosition(t, err, "42803")
	if at := (before + query)[translation.Origin(position):]; at != "n + count(*) from sales group by all" {
		t.Errorf("the error is at %q", at)
	}
}

func TestAnErrorOfDescribingAStarIsAtItsPlace(t *testing.T) {
	t.Parallel()
	c := connect(t)
	query := `WITH w AS (SELECT 1 AS x) SELECT count(*), m.* FROM w, missing AS m GROUP BY ALL`
	_, err := rewrite.TranslateQuery(rewrite.Span{Text: query, Offset: len(before)}, diagnosing{catalog{t, c}}, rewrite.Lexical{})
	if got := errorText(before+query, err); pgdiag.Code(err) != "42P01" || got != "42P01: relation \"missing\" does not exist\nAT: missing AS m GROUP BY ALL" {
		t.Errorf("got %s", got)
	}
}

func TestOrderByAllOrdersByEveryColumn(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, sales)
	for query, want := range map[string]string{
		`select product, n from sales order by all`:                                                `select product, n from sales order by 1, 2`,
		`select product, n from sales order by all desc nulls last limit 2`:                        `select product, n from sales order by 1 desc nulls last, 2 desc nulls last limit 2`,
		`select * from sales order by all desc`:                                                    `select * from sales order by 1 desc, 2 desc, 3 desc, 4 desc`,
		`select s.n, r.* from sales s join regions r using (region) order by all`:                  `select s.n, r.* from sales s join regions r using (region) order by 1, 2, 3`,
		`(select n from sales) union (select price from sales) order by all desc`:                  `(select n from sales) union (select price from sales) order by 1 desc`,
		`select n from sales union select price from sales order by all`:                           `select n from sales union select price from sales order by 1`,
		`values (2, 1), (1, 2) order by all`:                                                       `values (1, 2), (2, 1)`,
		`table sales order by all nulls first`:                                                     `select * from sales order by 1 nulls first, 2 nulls first, 3 nulls first, 4 nulls first`,
		`with x as (select n, price from sales order by all limit 1) select n from x order by all`: `select n from sales order by n limit 1`,
		`select * from (select n, product from sales order by all desc limit 1) x`:                 `select n, product from sales order by 1 desc, 2 desc limit 1`,
		`select region, sum(n) from sales group by all order by all`:                               `select region, sum(n) from sales group by 1 order by 1, 2`,
		`select region from sales group by all order by all desc fetch first 1 row only`:           `select 'south'`,
	} {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, catalog{t, c}, rewrite.Lexical{})
		if err != nil {
			t.Errorf("%s\n%v", query, err)
			continue
		}
		if diff := cmp.Diff(rows(t, c, want), rows(t, c, translation.SQL)); diff != "" {
			t.Errorf("%s became\n%s\n-want +got\n%s", query, translation.SQL, diff)
		}
	}
}

func TestOrderByAllOfAWindowIsRefused(t *testing.T) {
	t.Parallel()
	query := `select row_number() over (order by all) from sales`
	_, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, nil, rewrite.Lexical{})
	want := "0A000: ORDER BY ALL outside of a query's own ORDER BY is not supported in a REPLACE WHERE flow\n" +
		"HINT: list the expressions\nAT: order by all) from sales"
	if diff := cmp.Diff(want, errorText(query, err)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
