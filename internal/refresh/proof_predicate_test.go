package refresh

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

func tuple(values ...string) []pgsession.Value {
	tuple := make([]pgsession.Value, len(values))
	for i, v := range values {
		tuple[i] = pgsession.Value{Text: v, Null: v == "null"}
	}
	return tuple
}

func TestANarrowedPredicateIsLiteralsForEachLeadingValue(t *testing.T) {
	t.Parallel()
	day, region := key{Column: "day", Type: "pg_catalog.date", NullProved: true}, key{Column: "Region", Type: "pg_catalog.text", NullFree: true}
	city := key{Column: "city", Type: "pg_catalog.text"}
	for _, test := range []struct {
		keys   []key
		tuples [][]pgsession.Value
		want   string
	}{
		{[]key{day}, nil, "false"},
		{[]key{city}, nil, "city is null"},
		{[]key{city, day}, nil, "false"},
		{[]key{day}, [][]pgsession.Value{tuple("2024-01-01")}, "day operator(pg_catalog.=) '2024-01-01'::pg_catalog.date"},
		{
			[]key{day},
			[][]pgsession.Value{tuple("2024-01-01"), tuple("null"), tuple("2024-01-02")},
			"(day operator(pg_catalog.=) any (array['2024-01-01', '2024-01-02']::pg_catalog.date[])\n or day is null)",
		},
		{[]key{region}, [][]pgsession.Value{tuple("null")}, "false"},
		{
			[]key{region, day},
			[][]pgsession.Value{tuple("it's", "2024-01-01"), tuple(`\`, "2024-01-01"), tuple("x", "2024-01-02")},
			`((day operator(pg_catalog.=) '2024-01-01'::pg_catalog.date and "Region" operator(pg_catalog.=) any (array['it''s', E'\\']::pg_catalog.text[]))` +
				"\n or " + `(day operator(pg_catalog.=) '2024-01-02'::pg_catalog.date and "Region" operator(pg_catalog.=) 'x'::pg_catalog.text))`,
		},
		{
			[]key{city, day},
			[][]pgsession.Value{tuple("a", "2024-01-01"), tuple("b", "2024-01-01")},
			"(day operator(pg_catalog.=) '2024-01-01'::pg_catalog.date and (city operator(pg_catalog.=) any (array['a', 'b']::pg_catalog.text[]) or city is null))",
		},
	} {
		if got := narrowed(test.keys, test.tuples); got != test.want {
			t.Errorf("%v of %v\n got %s\nwant %s", test.keys, test.tuples, got, test.want)
		}
	}
}

// Planning thousands of pairs takes minutes.
func TestVeryManyTuplesAreAListOfEachKey(t *testing.T) {
	t.Parallel()
	keys := []key{{Column: "id", Type: "pg_catalog.int4", NullFree: true}, {Column: "at", Type: "pg_catalog.int8", NullProved: true}}
	var tuples [][]pgsession.Value
	var ids, times []string
	for i := range mostArms + 1 {
		id, at := fmt.Sprint(i), fmt.Sprint(1000+i)
		tuples = append(tuples, tuple(id, at))
		ids, times = append(ids, "'"+id+"'"), append(times, "'"+at+"'")
	}
	if got := narrowed(keys, tuples[1:]); strings.Count(got, " or ") != mostArms-1 {
		t.Errorf("%d tuples are\n%s", mostArms, got)
	}
	idList := "id operator(pg_catalog.=) any (array[" + strings.Join(ids, ", ") + "]::pg_catalog.int4[])"
	atList := "at operator(pg_catalog.=) any (array[" + strings.Join(times, ", ") + "]::pg_catalog.int8[])"
	if got, want := narrowed(keys, tuples), "("+idList+" and "+atList+")"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	got := narrowed(keys, append(tuples, tuple("7", "null")))
	if want := "(" + idList + " and (" + atList + " or at is null))"; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// covers is what narrowed promises: a row that a tuple reaches is selected.
func covers(keys []key, tuples [][]pgsession.Value, row []pgsession.Value) bool {
	unknown := true
	for i, k := range keys {
		unknown = unknown && row[i].Null && !k.knowsNull()
	}
	return unknown || slices.ContainsFunc(tuples, func(tuple []pgsession.Value) bool {
		for i, k := range keys {
			switch {
			case row[i].Null && k.NullFree:
				return false
			case row[i].Null && !k.NullProved:
			case row[i] != tuple[i]:
				return false
			}
		}
		return true
	})
}

func TestANarrowedPredicateSelectsEveryRowThatATupleReaches(t *testing.T) {
	t.Parallel()
	p := newProver(t, `create schema evil; create function evil.no(anyelement, anyelement) returns bool language sql immutable as 'select false';
		create operator evil.= (leftarg = anyelement, rightarg = anyelement, function = evil.no);
		create domain "Odd ""text""" as varchar(9);
		create table t ("a'b" "Odd ""text""", "select" int, c timestamptz)`)
	values := [][]string{{"x", "'", `\`, `a', 'b`, "null"}, {"1", "-2147483648", "3", "null"}, {"2024-01-01 00:00:00+00", "infinity", "null"}}
	types := []string{"pg_catalog.varchar", "pg_catalog.int4", "pg_catalog.timestamptz"}
	names := []string{"a'b", "select", "c"}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 2))
	for range 150 {
		var keys []key
		columns := random.Perm(3)[:1+random.IntN(3)]
		for _, c := range columns {
			k := key{Column: names[c], Type: types[c]}
			switch random.IntN(3) {
			case 0:
				k.NullFree = true
			case 1:
				k.NullProved = true
			}
			keys = append(keys, k)
		}
		pick := func() []pgsession.Value {
			var picked []string
			for _, c := range columns {
				picked = append(picked, values[c][random.IntN(len(values[c]))])
			}
			return tuple(picked...)
		}
		var tuples [][]pgsession.Value
		for range random.IntN(5) {
			tuples = append(tuples, pick())
		}
		predicate := narrowed(keys, tuples)
		for range 4 {
			row := pick()
			all := []string{"null", "null", "null"}
			for i, c := range columns {
				if !row[i].Null {
					all[c] = "'" + strings.ReplaceAll(row[i].Text, "'", "''") + "'"
				}
			}
			p.exec("set local search_path = evil, pg_catalog, public", "truncate public.t",
				"set local standard_conforming_strings = on", fmt.Sprintf("insert into public.t values (%s)", strings.Join(all, ", ")),
				"create or replace temp view hit as select from public.t where "+predicate)
			selected := p.query("select count(*) from hit")[0][0].Text == "1"
			if covers(keys, tuples, row) && !selected {
				t.Fatalf("row %v of %v is not selected by\n%s\nfor %v", row, columns, predicate, tuples)
			}
			if len(keys) == 1 && selected && !covers(keys, tuples, row) {
				t.Fatalf("row %v of %v is selected by\n%s\nfor %v", row, columns, predicate, tuples)
			}
		}
	}
}
