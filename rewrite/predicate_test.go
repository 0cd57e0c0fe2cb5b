package rewrite_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

func TestAQualifierIsResolvedByTheQuery(t *testing.T) {
	t.Parallel()
	target := rewrite.Name{Catalog: "shop", Schema: "public", Table: "orders"}
	for _, test := range []struct{ predicate, query, want string }{
		{`o.day = 1`, `select o.day from source o`, `day = 1`},
		{`o.day = 1`, `select o.day as date from source as o`, `date = 1`},
		{`o.day = 1`, `select o.day date from source o`, `date = 1`},
		{`o.day = 1`, `select day from source o`, `day = 1`},
		{`O."Day" = 1`, `select o."Day" as "The Day" from source o`, `"The Day" = 1`},
		{`o.day = 1`, `select * from source o`, `day = 1`},
		{`o.day = 1`, `select x.*, o.* from x join (select 1) o on true`, `day = 1`},
		{`o.day = 1`, `select 1 from source o union select o.day from source o`, ``},
		{`o.day = 1`, `select o.day from source o order by 1 limit 1`, `day = 1`},
		{`o.day = 1`, `(select o.day from source o)`, `day = 1`},
		{`o.day = 1`, `(select o.day from source o) limit 1`, ``},
		{`o.day = 1`, `with o as (select 1 as day) select o.day from o`, `day = 1`},
		{`o.day = 1`, `with recursive o (day) as materialized (select 1) select o.day from o`, `day = 1`},
		{`o.day = 1`, `select o.day + 1 as day from source o`, ``},
		{`o.day = 1`, `select o.day::date as day from source o`, ``},
		{`o.day = 1`, `select day from a join source o on true`, ``}, // of which of the two the text does not tell
		{`o.day = 1`, `select source.day from source`, ``},
		{`o.day = 1`, `select x.* from x, source o`, ``},
		{`source.day = 1`, `select source.day from source as o`, ``}, // the alias hides the name
		{`source.day = 1`, `select a.source.day from a.source`, `day = 1`},
		{`a.source.day = 1`, `select source.day from a.source`, `day = 1`},
		{`b.source.day = 1`, `select source.day from a.source`, ``},
		{`o.day = 1`, `select o.day from lateral (select 1) x, only source * o (day, n)`, `day = 1`},
		{`o.day = 1`, `select o.day from (a join (b cross join source o) using (x)) where true`, `day = 1`},
		{`j.day = 1`, `select j.day from (a join source o using (x)) as j`, `day = 1`},
		{`o.day = 1`, `select j.day from (a join source o using (x)) as j`, ``},
		{`g.day = 1`, `select g.day from x left join generate_series(1, 2) with ordinality as g (day, n) on left(x.a, 1) = 'x'`, `day = 1`},
		{`generate_series.day = 1`, `select generate_series.day from pg_catalog.generate_series(1, 2)`, `day = 1`},
		{`o.day = 1`, `select distinct on (o.day) o.day, extract(year from o.day) as year from source o`, `day = 1`},
		{`o.day = 1`, `select o.day is not distinct from 1 as x, o.day from source o`, `day = 1`},
		{`o.day = 1`, `values (1)`, ``},
		{`o.day = 1`, `select 'x`, ``},
		// The target's own name.
		{`orders.day = 1`, `select day from source`, `day = 1`},
		{`public.orders.day = 1`, `select day from source`, `day = 1`},
		{`shop.public.orders.day = 1`, `select day from source`, `day = 1`},
		{`other.public.orders.day = 1`, `select day from source`, ``},
		{`"Orders".day = 1`, `select day from source`, ``},
		// A source that is called like the target.
		{`orders.day = 1`, `select day as date from bronze.orders`, `date = 1`},
		{`bronze.orders.day = 1`, `select day as date, n as day from bronze.orders`, `date = 1`},
		{`orders.missing = 1`, `select day from bronze.orders`, `missing = 1`},
	} {
		query := rewrite.Span{Text: test.query}
		translation, err := rewrite.TranslatePredicate(rewrite.Span{Text: test.predicate}, rewrite.PredicateContext{Target: target, Query: &query})
		switch {
		case test.want == "" && pgdiag.Code(err) != "42703":
			t.Errorf("%s with %s became %s, %v", test.predicate, test.query, translation.SQL, err)
		case test.want != "" && (err != nil || translation.SQL != test.want):
			t.Errorf("%s with %s became %s, %v", test.predicate, test.query, translation.SQL, err)
		}
	}
}

func TestAQualifierThatHasTwoMeaningsIsRefused(t *testing.T) {
	t.Parallel()
	target := rewrite.Name{Schema: "gold", Table: "orders"}
	for query, want := range map[string]string{
		`select day as date, n as day from bronze.orders`:          "42702",
		`select orders.day - 3 as day from bronze.orders`:          "42702",
		`select orders.day from bronze.orders`:                     "",
		`select * from bronze.orders`:                              "",
		`select o.day - 3 as day from bronze.orders as o`:          "",
		`select b.day + 1 as day from bronze.orders b, x orders`:   "42702",
		`select sum(n) as n, orders.day as day from bronze.orders`: "",
	} {
		span := rewrite.Span{Text: query}
		_, err := rewrite.TranslatePredicate(rewrite.Span{Text: "orders.day = 1"}, rewrite.PredicateContext{Target: target, Query: &span})
		if got := pgdiag.Code(err); got != want {
			t.Errorf("%s: SQLSTATE %q, want %q", query, got, want)
		}
	}
}

func TestAnOverrideNamesTheTargetsColumnsOnly(t *testing.T) {
	t.Parallel()
	context := rewrite.PredicateContext{Target: rewrite.Name{Schema: "public", Table: "orders"}}
	translation, err := rewrite.TranslatePredicate(rewrite.Span{Text: `orders.day > 1 AND public.orders."N" = 2`}, context)
	if err != nil || translation.SQL != `day > 1 AND "N" = 2` {
		t.Errorf("got %q, %v", translation.SQL, err)
	}
	predicate := `n = 1 and o.day = 1`
	_, err = rewrite.TranslatePredicate(rewrite.Span{Text: predicate, Offset: len(before)}, context)
	want := "42703: column o.day cannot be resolved in the predicate\n" +
		"HINT: Name the columns of the target table without a qualifier.\nAT: o.day = 1"
	if got := errorText(before+predicate, err); got != want {
		t.Errorf("got %s", got)
	}
}

func TestAStringReadsTheSameUnderBothSettings(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `set escape_string_warning = off; create table t (s text)`)
	execute(t, c, `insert into t values ('a\b'), ('ab'), (e'a\bc'), ('x''y'), ('a\\b'), ('it\')`)
	for _, test := range []struct {
		predicate string
		backslash bool
		want      string
	}{
		{`s = 'a\b'`, false, `a\b`},
		{`s = 'a\\b'`, true, `a\b`},
		{`s = 'a\\b'`, false, `a\\b`},
		{`s = E'a\\b'`, false, `a\b`},
		{`s = 'x\'y'`, true, `x'y`},
		{`s = 'it\'`, false, `it\`},
		{"s = 'a'\n'\\b'", false, `a\b`},
		{`s = N'a\b'`, false, `a\b`},
		{`s = text'a\b'`, false, `a\b`},
		{`s = $$a\b$$`, false, `a\b`},
	} {
		translation, err := rewrite.TranslatePredicate(rewrite.Span{Text: test.predicate},
			rewrite.PredicateContext{Lexical: rewrite.Lexical{BackslashEscapes: test.backslash}})
		if err != nil {
			t.Errorf("%s: %v", test.predicate, err)
			continue
		}
		for _, setting := range []string{"on", "off"} {
			execute(t, c, "set standard_conforming_strings = "+setting)
			got := rows(t, c, "select s from t where ("+translation.SQL+"\n)")
			if len(got) != 1 || got[0][0] != test.want {
				t.Errorf("%s became %s, which with standard_conforming_strings %s finds %q", test.predicate, translation.SQL, setting, got)
			}
		}
	}
}

func TestALongPredicateIsRefused(t *testing.T) {
	t.Parallel()
	long := "a = 1" + strings.Repeat(" or a = 1", 10000)
	if _, err := rewrite.TranslatePredicate(rewrite.Span{Text: long}, rewrite.PredicateContext{}); pgdiag.Code(err) != "54000" {
		t.Errorf("got %v", err)
	}
}

func TestTheColumnsOfAPredicateAreKnownOrUnknown(t *testing.T) {
	t.Parallel()
	for predicate, want := range map[string]string{
		`true`:                           ``,
		`day >= current_date - 7`:        `day`,
		`a = b and A = "A" or "a b" > 1`: `a, b, A, a b`,
		`day between '2024-01-01' and date '2024-02-01'`:                   `day`,
		`ts at time zone 'UTC' > timestamp '2024-01-01'`:                   `ts`,
		`ts > now() - interval '7 days' or ts > now() - interval '7' day`:  `ts`,
		`extract(year from day) = 2024`:                                    `day`,
		`date_trunc('month', day) = pg_catalog.date_trunc('month', now())`: `day`,
		`case when a > 1 then b else c end is null`:                        `a, b, c`,
		`a is not distinct from b`:                                         `a, b`,
		`a::text like 'x%' and cast(b as date) = '2024-01-01'`:             `a, b`,
		`name ~ '^a' and not name ilike 'b%'`:                              `name`,
		`a in (1, 2) and b = any (array[1, 2]) and tags[1] = 'x'`:          `a, b, tags`,
		`data ->> 'x' = 'y'`:                                               `data`,
		`year = 2024 and month(day) = 5`:                                   `year, day`,
		"a = 1 -- b\r and c = 2":                                           `a, c`,
		`coalesce(a, 1) <> nullif(b, 2)`:                                   `a, b`,
		// Not known: the parser does not read them, or reads them otherwise.
		`"Größe" = 1`:          `?`,
		`größe = 1`:            `?`,
		`a = u&'\0041'`:        `?`,
		`t.a = 1`:              `?`,
		`a = (select 1)`:       `?`,
		`a =`:                  `?`,
		``:                     `?`,
		`a = 1) or (b = 2`:     `?`,
		`a from t where b`:     `?`,
		`a = 1 union select b`: `?`,
		`a = 1 order by b`:     `?`,
		`a = 1, b`:             `?`,
		`distinct a`:           `?`,
		strings.Repeat("(", 300) + "a" + strings.Repeat(")", 300): `?`,
	} {
		columns, known := rewrite.PredicateColumns(predicate)
		got := strings.Join(columns, ", ")
		if !known {
			got = "?"
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", predicate, got, want)
		}
	}
}

// Whatever the text, the columns that PredicateColumns is sure of are those
// that Postgres needs.
func TestTheKnownColumnsAreThoseThatPostgresNeeds(t *testing.T) {
	t.Parallel()
	c := connect(t)
	execute(t, c, `create table t (a integer, b integer, day date, ts timestamptz, year integer, name text, tags text[], data jsonb, "Big" integer, zone text, local integer)`)
	known := 0
	for _, predicate := range []string{
		`a = 1`, `"Big" <@ int4range(a, b)`, `year = 2024 and zone = 'x'`, `ts at time zone zone > ts at time zone 'UTC'`,
		`extract(year from day) = year`, `(day, day + 1) overlaps (day, ts::date)`, `data @> '{"a": 1}' and data ? 'b'`,
		`name similar to 'a%' escape '\'`, `a | b & 3 = 1 << 2`, `a in (year, local)`, `name collate "C" < 'x'`, `not a <> b`,
		`position('a' in name) > 0`, `substring(name from 2 for 1) = 'a'`, `trim(both 'x' from name) = ''`, `overlay(name placing 'x' from 1) = ''`,
		`tags[1:2] = tags`, `a between symmetric b and 3`, `day = date '2024-01-01' and ts > '2024-01-01'::timestamp with time zone`,
		`ts > timestamp with time zone '2024-01-01' - interval '1' year`, `name is document`, `(a = 1) is unknown`, `a isnull and b notnull`,
		`row(a, b) = row(1, 2)`, `greatest(a, b) = least(year, local)`, `name like any (tags)`, `exists_key is null`, `current_user = name`,
		`a operator(pg_catalog.=) b`, `interval '1' hour * a > interval '2 days'`, `normalize(name, nfc) = name`, `name is nfc normalized`,
	} {
		columns, sure := rewrite.PredicateColumns(predicate)
		description, err := c.Prepare(t.Context(), "", "select from t where ("+predicate+")")
		if err != nil || description == nil || !sure {
			continue
		}
		known++
		execute(t, c, "create view v as select 1 as one from t where ("+predicate+")")
		var needed []string
		for _, row := range rows(t, c, `select attname from pg_depend d join pg_attribute on attrelid = refobjid and attnum = refobjsubid
			where refobjid = 't'::regclass and d.objid = (select oid from pg_rewrite where ev_class = 'v'::regclass)`) {
			needed = append(needed, row[0])
		}
		execute(t, c, "drop view v")
		slices.Sort(needed)
		slices.Sort(columns)
		if !slices.Equal(needed, columns) {
			t.Errorf("%s: got %q, Postgres needs %q", predicate, columns, needed)
		}
	}
	if known < 15 {
		t.Errorf("only %d predicates are known", known)
	}
}

func TestATextMayBeNestedOnlySoDeep(t *testing.T) {
	t.Parallel()
	nested := func(depth int) string { return strings.Repeat("(", depth) + "true" + strings.Repeat(")", depth) }
	for depth, want := range map[int]string{1000: "", 1001: "54001"} {
		_, err := rewrite.TranslatePredicate(rewrite.Span{Text: nested(depth)}, rewrite.PredicateContext{})
		if got := pgdiag.Code(err); got != want {
			t.Errorf("%d brackets in a predicate: SQLSTATE %q, want %q", depth, got, want)
		}
		_, err = rewrite.TranslateQuery(rewrite.Span{Text: "select " + nested(depth)}, nil, rewrite.Lexical{})
		if got := pgdiag.Code(err); got != want {
			t.Errorf("%d brackets in a query: SQLSTATE %q, want %q", depth, got, want)
		}
	}
}
