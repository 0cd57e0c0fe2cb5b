package rewrite_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/rwproxy/rwproxy/rewrite"
)

func postgresError(t testing.TB, err error) *pgconn.PgError {
	t.Helper()
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		t.Fatalf("Postgres did not refuse: %v", err)
	}
	return e
}

// contents are strings that quoting has to keep apart from what is around
// them.
func contents() *rapid.Generator[string] {
	character := rapid.SampledFrom([]rune{'a', 'Z', '0', '_', '$', '\'', '"', '\\', '`', ' ', '\n', ';', '-', '/', '*', 'é', '😀'})
	return rapid.Map(rapid.SliceOfN(character, 1, 20), func(r []rune) string { return string(r) })
}

func TestAQuotedIdentifierIsOneTokenWithTheSameName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := contents().Draw(t, "name")
		statement, err := rewrite.Parse("drop table "+rewrite.QuoteIdentifier(want), rewrite.Lexical{})
		if err != nil || statement == nil {
			t.Fatalf("%q: %v", rewrite.QuoteIdentifier(want), err)
		}
		targets := statement.(*rewrite.Drop).Targets
		if len(want) <= 63 && (len(targets) != 1 || targets[0].Table != want || targets[0].Schema != "") {
			t.Fatalf("%q: got %+v", want, targets)
		}
	})
}

func TestAQuotedLiteralIsOneTokenWithTheSameValue(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := contents().Draw(t, "value")
		for _, escapes := range []bool{false, true} {
			sql := "create streaming table t comment " + rewrite.QuoteLiteral(want) + " schedule every 1 day"
			statement, err := rewrite.Parse(sql, rewrite.Lexical{BackslashEscapes: escapes})
			if err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
			if got := *statement.(*rewrite.CreateStreamingTable).Comment; got != want {
				t.Fatalf("%s: got %q", sql, got)
			}
		}
	})
}

func TestPostgresReadsWhatIsQuoted(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, setting := range []string{"on", "off"} {
		execute(t, c, "set standard_conforming_strings = "+setting+"; set escape_string_warning = on; set client_min_messages = error")
		for _, want := range []string{"", "a", "A b", "it's", `back\slash`, `\'`, `"`, "''", "a\nb", "é😀", "; drop table x --"} {
			if got := rows(t, c, "select "+rewrite.QuoteLiteral(want))[0][0]; got != want {
				t.Errorf("%s, standard_conforming_strings %s: got %q", rewrite.QuoteLiteral(want), setting, got)
			}
			if want == "" {
				continue
			}
			quoted := rewrite.QuoteIdentifier(want)
			if got := rows(t, c, "select "+quoted+" from (select 1 as "+quoted+") as q")[0][0]; got != "1" {
				t.Errorf("%s: got %q", quoted, got)
			}
		}
	}
}

func TestEveryKeywordThatPostgresQuotesIsQuoted(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, row := range rows(t, c, "select word, quote_ident(word) from pg_get_keywords()") {
		got := rewrite.QuoteIdentifier(row[0])
		if row[1] != row[0] && got != row[1] {
			t.Errorf("got %s, Postgres writes %s", got, row[1])
		}
	}
}

func TestANameIsWrittenWithItsSchema(t *testing.T) {
	t.Parallel()
	for want, name := range map[string]rewrite.Name{
		`t`:            {Table: "t"},
		`s."T"`:        {Schema: "s", Table: "T"},
		`"select"."."`: {Catalog: "c", Schema: "select", Table: "."},
	} {
		if got := name.SQL(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestAPositionCountsCharacters(t *testing.T) {
	t.Parallel()
	const text = "aé😀\xffb"
	for offset, want := range map[int]int{-1: 1, 0: 1, 1: 2, 3: 3, 7: 4, 8: 5, 9: 6, 100: 6} {
		if got := rewrite.CharPosition(text, offset); got != want {
			t.Errorf("byte %d: got %d, want %d", offset, got, want)
		}
	}
}
