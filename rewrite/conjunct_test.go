package rewrite_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/rewrite"
)

func TestAPredicateIsSplitAtItsOutermostAnds(t *testing.T) {
	t.Parallel()
	for predicate, want := range map[string][]string{
		"a = 1":                                     {"a = 1: a"},
		"a = 1 and b = 2 AND c":                     {"a = 1: a", "b = 2: b", "c: c"},
		"(a = 1 and (b = 2)) and (((c)))":           {"a = 1: a", "b = 2: b", "c: c"},
		"a = 1 or b = 2 and c":                      {"a = 1 or b = 2 and c: a b c"},
		"(a or b) and c":                            {"a or b: a b", "c: c"},
		"a between 1 and 2 and b":                   {"a between 1 and 2: a", "b: b"},
		"a not between symmetric b and c and d":     {"a not between symmetric b and c: a b c", "d: d"},
		"case when a and b then c end and d":        {"case when a and b then c end: a b c", "d: d"},
		"not a and not (b and c)":                   {"not a: a", "not (b and c): b c"},
		"(a) = (b) and (c).d = 1":                   {"(a) = (b): a b", "(c).d = 1: c"},
		"1 = 2 and true and now() > '2024-01-01'":   {"1 = 2:", "true:", "now() > '2024-01-01':"},
		`"and" = 'and' and f(x and y, 'a and b')`:   {`"and" = 'and': and`, "f(x and y, 'a and b'): x y"},
		"a and -- or\n b":                           {"a: a", "b: b"},
		"a is distinct from b and c is not null":    {"a is distinct from b: a b", "c is not null: c"},
		"(a, b) = (1, 2) and (a and b) is not true": {"(a, b) = (1, 2): a b", "(a and b) is not true: a b"},
	} {
		var got []string
		for _, c := range rewrite.Conjuncts(predicate) {
			columns := strings.Join(c.Columns, " ")
			if !c.Known {
				columns = "?"
			}
			got = append(got, strings.TrimRight(fmt.Sprintf("%s: %s", c.SQL, columns), " "))
			if !strings.HasPrefix(predicate[c.Offset:], c.SQL) {
				t.Errorf("%s: %s is not at %d", predicate, c.SQL, c.Offset)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", predicate, diff)
		}
	}
}
