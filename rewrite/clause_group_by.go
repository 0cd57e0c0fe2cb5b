package rewrite

import "strings"

// translateWithRollup makes GROUP BY a, b WITH ROLLUP, which begins at g, to
// GROUP BY ROLLUP (a, b).
func (t *tokenText) translateWithRollup(g int) error {
	for k := g + 2; k < len(t.tokens) && !t.endsClause(k); k = t.skip(k) {
		w := t.word(k + 1)
		if t.word(k) != "with" || w != "rollup" && w != "cube" || k == g+2 {
			continue
		}
		if t.word(g+2) == "all" && k == g+3 {
			return t.unsupported(k, "GROUP BY ALL with ROLLUP or CUBE", "List the grouping columns.")
		}
		t.wrap(tokenRange{g + 2, k}, strings.ToUpper(w)+" (", ")")
		t.replace(k, k+2, "")
		return nil
	}
	return nil
}
