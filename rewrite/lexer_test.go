package rewrite_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// kinds are the letters by which a test names the kinds of tokens.
const kinds = "wqbsdn$op"

// showTokens writes each token as its kind's letter and its text.
func showTokens(sql string, tokens []rewrite.Token) []string {
	var shown []string
	for _, token := range tokens {
		shown = append(shown, kinds[token.Kind:token.Kind+1]+" "+sql[token.Start:token.End])
	}
	return shown
}

func TestTextIsCutIntoTokensAsPostgresCutsIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sql  string
		want []string
	}{
		{"", nil},
		{" \t\r\n\f\v", nil},
		{"select A_1$ from \"T\"\"x\".é", []string{"w select", "w A_1$", "w from", `q "T""x"`, "p .", "w é"}},
		{"U&\"d\\0061\" u&'x''y'", []string{`q U&"d\0061"`, "s u&'x''y'"}},
		{"u & 'x' ue'x'", []string{"w u", "o &", "s 'x'", "w ue", "s 'x'"}},
		{"`a``b`=`c`", []string{"b `a``b`", "o =", "b `c`"}},
		{"'it''s' E'it\\'s' e'\\\\' N'x' b'01' X'1F'", []string{"s 'it''s'", `s E'it\'s'`, `s e'\\'`, "s N'x'", "s b'01'", "s X'1F'"}},
		{`'a\' 'b'`, []string{`s 'a\'`, "s 'b'"}},
		{"b'1''0'", []string{"s b'1'", "s '0'"}},
		{"'a'\n'b' 'c'\t'd'", []string{"s 'a'\n'b'", "s 'c'", "s 'd'"}},
		{"'a' -- x\r 'b'", []string{"s 'a' -- x\r 'b'"}},
		{"e'a'\n'\\'b'", []string{"s e'a'\n'\\'b'"}},
		{"'a' /* x\n */ 'b'", []string{"s 'a'", "s 'b'"}},
		{"'a'\n--x", []string{"s 'a'"}},
		{"$$a'$$ $t$ $$ $tt$ $t$", []string{"d $$a'$$", "d $t$ $$ $tt$ $t$"}},
		{"a$x$ $1 $1a $a $é$;$é$", []string{"w a$x$", "$ $1", "$ $1", "w a", "p $", "w a", "d $é$;$é$"}},
		{"$1$ $", []string{"$ $1", "p $", "p $"}},
		{"a--b\nc--d\re", []string{"w a", "w c", "w e"}},
		{"a/*b/*c*/d*/e/**/f/*/**/*/", []string{"w a", "w e", "w f"}},
		{"--", nil},
		{"1 1.5 .5 1. 1e5 1.5E-3 1e 1e+ 1..2", []string{"n 1", "n 1.5", "n .5", "n 1.", "n 1e5", "n 1.5E-3", "n 1", "w e", "n 1", "w e", "o +", "n 1", "p ..", "n 2"}},
		{"0x1F 0b10 0o17 1_000 0x_1 0xg 1__0 1_.5_0", []string{
			"n 0x1F", "n 0b10", "n 0o17", "n 1_000", "n 0x_1", "n 0", "w xg", "n 1", "w __0", "n 1", "w _", "n .5_0",
		}},
		{"1e'\\''", []string{"n 1", `s e'\''`}},
		{"a::int[1:2] := x.y", []string{"w a", "p ::", "w int", "p [", "n 1", "p :", "n 2", "p ]", "p :=", "w x", "p .", "w y"}},
		{"a<=>b == c => d <> !=", []string{"w a", "o <=>", "w b", "o ==", "w c", "o =>", "w d", "o <>", "o !="}},
		{"1*-2 @- <- ->> +- -+-", []string{"n 1", "o *", "o -", "n 2", "o @-", "o <", "o -", "o ->>", "o +", "o -", "o -", "o +", "o -"}},
		{"a<--b\n+/*x*/c|--d", []string{"w a", "o <", "o +", "w c", "o |"}},
		{"(a,b);", []string{"p (", "w a", "p ,", "w b", "p )", "p ;"}},
		{"a\x00b\\{", []string{"w a", "p \x00", "w b", "p \\", "p {"}},
	} {
		tokens, err := rewrite.Tokens(c.sql, rewrite.Lexical{})
		if err != nil {
			t.Errorf("%q: %v", c.sql, err)
		}
		if diff := cmp.Diff(c.want, showTokens(c.sql, tokens)); diff != "" {
			t.Errorf("%q: -want +got\n%s", c.sql, diff)
		}
	}
}

func TestABackslashIsAnEscapeOnlyWhereTheSessionSaysSo(t *testing.T) {
	t.Parallel()
	const sql = `'a\' || N'\''`
	tokens, err := rewrite.Tokens(sql, rewrite.Lexical{BackslashEscapes: true})
	if diff := cmp.Diff([]string{`s 'a\' || N'`, `p \`, "s ''"}, showTokens(sql, tokens)); diff != "" || err != nil {
		t.Errorf("-want +got\n%s%v", diff, err)
	}
	tokens, err = rewrite.Tokens(sql, rewrite.Lexical{})
	if diff := cmp.Diff([]string{`s 'a\'`, "o ||"}, showTokens(sql, tokens)); diff != "" || err == nil {
		t.Errorf("-want +got\n%s%v", diff, err)
	}
}

func TestWhatIsNotTerminatedIsRefusedAsPostgresRefusesIt(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, sql := range []string{
		"select 'a", "select é, E'a\\'", "select \"a", "select U&'a", "select B'0", "select x'0", "select $a$ $$",
		"select /* /* */", "select 'a'\n'b", "select N'", "select U&\"x",
	} {
		_, err := rewrite.Tokens(sql, rewrite.Lexical{})
		var got *pgdiag.Diagnostic
		if !errors.As(err, &got) {
			t.Errorf("%q: got %v", sql, err)
			continue
		}
		_, execErr := c.PgConn().Exec(t.Context(), sql).ReadAll()
		want := postgresError(t, execErr)
		if got.Code != want.Code || got.Message != want.Message || got.Position != int(want.Position) {
			t.Errorf("%q: got %v at %d, Postgres says %s at %d", sql, got, got.Position, want.Message, want.Position)
		}
	}
}

// pieces are what texts that a property holds for are made of: everything that
// the lexer's rules name.
var pieces = []string{
	"'", `"`, "`", "$", "$$", "$a$", "\\", "--", "/*", "*/", "\n", "\r", " ", "\t", ";", "(", ")", "[", "]", ".", ",", ":",
	"e'", "E'x\\'", "U&'", "u&\"", "N'", "b'0'", "x'", "1", "0x", "1e", "_", "+", "-", "*", "/", "<", ">", "=", "@", "|", "é", "\xff", "\x00",
	"a", "select", "create", "function", "or", "replace", "begin", "atomic", "end", "case", "as", "refresh", "streaming", "table",
	"flow", "drop", "by name", "where", "with",
}

func texts() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOf(rapid.SampledFrom(pieces)), func(p []string) string { return strings.Join(p, "") })
}

// checkCover fails unless the tokens stand in order in sql and nothing but
// white space and comments is between them.
func checkCover(t interface{ Fatalf(string, ...any) }, sql string, o rewrite.Lexical) {
	tokens, err := rewrite.Tokens(sql, o)
	end := 0
	for _, token := range tokens {
		if token.Start < end || token.End <= token.Start || token.End > len(sql) {
			t.Fatalf("%q: token %+v is out of place", sql, token)
		}
		if between, _ := rewrite.Tokens(sql[end:token.Start], o); len(between) > 0 {
			t.Fatalf("%q: tokens were left out before %d", sql, token.Start)
		}
		end = token.End
	}
	if rest, _ := rewrite.Tokens(sql[end:], o); err == nil && len(rest) > 0 {
		t.Fatalf("%q: tokens were left out after %d", sql, end)
	}
}

func TestTokensAndBlanksCoverTheText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checkCover(t, texts().Draw(t, "sql"), rewrite.Lexical{BackslashEscapes: rapid.Bool().Draw(t, "escapes")})
	})
}

func TestALongTextIsReadInLinearTime(t *testing.T) {
	t.Parallel()
	const n = 1 << 20
	for _, unit := range []string{"+-", "$a", "/*", "'a'\n", "'a' ", "(", "$a$ ", "1e", "a.", "--\n", "`", "*/", "drop table a;", "explain(;"} {
		sql := strings.Repeat(unit, n/len(unit))
		tokens, _ := rewrite.Tokens(sql, rewrite.Lexical{})
		spans := rewrite.Split(sql, rewrite.Lexical{})
		if len(tokens) == 0 && len(spans) == 0 && unit != "--\n" {
			t.Errorf("%q was not read at all", unit)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, piece := range pieces {
		f.Add("a"+piece+"b", false)
		f.Add(piece+"'"+piece, true)
	}
	f.Fuzz(func(t *testing.T, sql string, escapes bool) {
		checkCover(t, sql, rewrite.Lexical{BackslashEscapes: escapes})
	})
}
