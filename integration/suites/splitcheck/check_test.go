package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/rewrite"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// whole cuts nowhere.
func whole(sql string, _ rewrite.Lexical) []rewrite.Span {
	return []rewrite.Span{{Text: sql}}
}

// everySemicolon cuts in strings, too.
func everySemicolon(sql string, _ rewrite.Lexical) []rewrite.Span {
	var spans []rewrite.Span
	offset := 0
	for text := range strings.SplitSeq(sql, ";") {
		spans = append(spans, rewrite.Span{Text: text, Offset: offset})
		offset += len(text) + 1
	}
	return spans
}

// nothing finds no statement.
func nothing(string, rewrite.Lexical) []rewrite.Span { return nil }

func TestWrongCutsAreFound(t *testing.T) {
	t.Parallel()
	const rule = "create rule r as on insert to t do (select 1; select 2; select 3)"
	for name, c := range map[string]struct {
		sql   string
		split splitFunc
		want  []string
	}{
		"right":        {"select 1; select ';'; " + rule + "; -- end", rewrite.Split, nil},
		"too rarely":   {"select 1; select 2", whole, []string{"Postgres cuts this:\n\tselect 1; select 2"}},
		"too often":    {"select ';'", everySemicolon, []string{"Postgres does not cut this:\n\tselect ';'"}},
		"into three":   {"select; bogus;" + rule, everySemicolon, []string{"Postgres does not cut this:\n\t" + rule}},
		"left out":     {"select 1", nothing, []string{"Postgres finds a statement in this:\n\tselect 1"}},
		"ours":         {"drop streaming table t", rewrite.Split, []string{"taken for DROP TABLE:\n\tdrop streaming table t"}},
		"native drop":  {"drop table t", rewrite.Split, nil},
		"syntax error": {"select 1 +; select 2; bogus; select 3", rewrite.Split, nil},
		"backslashes": {
			`set standard_conforming_strings = off; select '\'; select 1'; set standard_conforming_strings = on; select '\'; select 1`,
			rewrite.Split, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := pgconn.Connect(t.Context(), pgtest.Database(t))
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close(t.Context())
			r, err := check(t.Context(), connection, c.sql, c.split)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.differences); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}
