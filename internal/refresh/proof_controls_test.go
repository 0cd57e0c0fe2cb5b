package refresh

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// controls are proofs used wrongly. The oracle is worth something only if it
// notices each of them.
var controls = []struct {
	name   string
	shapes []string
	broken breakage
}{
	{"only new images are logged", []string{"an aggregate", "an inner join", "a dimension's column as key"}, breakage{logged: "new"}},
	{"only old images are logged", []string{"an aggregate", "an inner join", "a dimension's column as key"}, breakage{logged: "old"}},
	{
		"rows with NULL are left out where nothing is known of them",
		[]string{"a left join keyed by its nullable side", "a full join"},
		breakage{keys: func(k *key) { k.NullFree = true }},
	},
	{
		"NULL is taken as proved",
		[]string{"a left join keyed by its nullable side", "a full join"},
		breakage{keys: func(k *key) { k.NullProved = true }},
	},
	{
		"a hop finds nothing",
		[]string{"an inner join aggregated", "exists", "a correlated scalar subquery"},
		breakage{sql: func(sql string) string {
			if strings.Contains(sql, " as h0") {
				sql += " and false"
			}
			return sql
		}},
	},
	{
		"a hop reads what was there before only",
		[]string{"an inner join aggregated", "exists", "a left join"},
		breakage{sql: func(sql string) string { return currentRows.ReplaceAllString(sql, "(") }},
	},
	{
		"one of two scans' expressions is used",
		[]string{"union all of one table twice", "a self join"},
		breakage{sql: func(sql string) string { first, _, _ := strings.Cut(sql, "\nunion\n"); return first }},
	},
	{
		"text is folded",
		[]string{"a dimension's column as key", "distinct"},
		breakage{sql: func(sql string) string { return foldedText.ReplaceAllString(sql, "(lower($1)) collate") }},
	},
}

var (
	currentRows = regexp.MustCompile(`\(select [^()]* from public\.\w+ as m union all `)
	foldedText  = regexp.MustCompile(`\((\(l\.c\d+ collate [^)]*\))\) collate`)
)

func TestTheOracleNoticesWrongProofs(t *testing.T) {
	t.Parallel()
	const rounds = 200 // far more than it takes
	for _, control := range controls {
		t.Run(control.name, func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			o := newOracle(t, seed)
			o.broken = control.broken
			for _, name := range control.shapes {
				at := slices.IndexFunc(shapes, func(s shape) bool { return s.name == name })
				if complaint, _ := o.check(shapes[at], rounds); complaint != "" {
					return
				}
			}
			t.Error("nothing was noticed")
		})
	}
}
