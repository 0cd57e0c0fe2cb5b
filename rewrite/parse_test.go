package rewrite_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// parseCases returns the cases of testdata/parse: statements, and what Parse
// is to make of each.
func parseCases(t testing.TB) (cases []parseCase) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "parse", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			sql, want, found := strings.Cut(string(f.Data), "\n=>\n")
			if !found {
				t.Fatal(file, f.Name, "has no =>")
			}
			name := strings.TrimSuffix(filepath.Base(file), ".txtar") + "/" + f.Name
			cases = append(cases, parseCase{name: name, sql: sql, want: strings.TrimRight(want, "\n")})
		}
	}
	return cases
}

type parseCase struct{ name, sql, want string }

func TestStatementsAreParsedAsTheFilesSay(t *testing.T) {
	t.Parallel()
	for _, c := range parseCases(t) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			statement, err := rewrite.Parse(c.sql, rewrite.Lexical{})
			if diff := cmp.Diff(c.want, show(c.sql, statement, err)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if ours := statement != nil || err != nil; ours && !rewrite.MayBeOurs([]byte(c.sql)) {
				t.Error("MayBeOurs misses the statement")
			}
		})
	}
}

// show writes down everything a statement says, or its error. It checks that
// each Span stands in sql where its offset says.
func show(sql string, statement rewrite.Statement, err error) string {
	var d *pgdiag.Diagnostic
	if errors.As(err, &d) {
		return showDiagnostic(sql, d)
	}
	switch s := statement.(type) {
	case *rewrite.CreateStreamingTable:
		return showTable(sql, s)
	case *rewrite.CreateFlow:
		return showLines("create flow", s.Name, "comment", pointed(s.Comment), "target", showName(sql, s.Target),
			"predicate", showSpan(sql, &s.Flow.Predicate), "query", showSpan(sql, &s.Flow.Query))
	case *rewrite.Refresh:
		return showLines("refresh", showName(sql, s.Target), "full", yes(s.Full), "where", showSpan(sql, s.Where),
			"async", yes(s.Async))
	case *rewrite.ExplainRefresh:
		return showLines("explain refresh", showName(sql, s.Target), "json", yes(s.JSON), "full", yes(s.Full),
			"where", showSpan(sql, s.Where), "shadow", s.Shadow())
	case *rewrite.Drop:
		lines := []string{}
		for _, target := range s.Targets {
			lines = append(lines, "drop", showName(sql, target))
		}
		return showLines(append(lines, "native", s.Native)...)
	case *rewrite.Insert:
		return showInsert(sql, s)
	case *rewrite.AlterStreamingTable:
		lines := []string{"alter", showName(sql, s.Target), "action", showAction(sql, s.Action)}
		for _, notice := range s.Notices {
			lines = append(lines, strings.ToLower(notice.Severity), showDiagnostic(sql, notice))
		}
		return showLines(lines...)
	case *rewrite.Describe:
		return showLines("describe", showName(sql, s.Target), "column", s.Column, "extended", yes(s.Extended),
			"shadow", s.Shadow(), "fault", showFault(sql, s.Fault))
	case *rewrite.DescribeHistory:
		return showLines("history", showName(sql, s.Target), "shadow", s.Shadow(), "fault", showFault(sql, s.Fault))
	case *rewrite.ShowCreateTable:
		return showLines("show create", showName(sql, s.Target), "shadow", s.Shadow(), "fault", showFault(sql, s.Fault))
	case *rewrite.ShowProperties:
		return showLines("show properties", showName(sql, s.Target), "key", pointed(s.Key), "shadow", s.Shadow(),
			"fault", showFault(sql, s.Fault))
	case *rewrite.Refused:
		return showLines("refused", showDiagnostic(sql, s.Err))
	case *rewrite.EventLog:
		lines := []string{}
		for _, target := range s.Targets {
			lines = append(lines, "event log", showName(sql, target))
		}
		return showLines(append(lines, "native", s.Shadow())...)
	}
	return "not ours"
}

func showAction(sql string, action rewrite.AlterAction) string {
	switch a := action.(type) {
	case rewrite.SetSchedule:
		return fmt.Sprintf("schedule %s, zone %q, add %t", a.Schedule.Text, a.Schedule.Zone, a.Add)
	case rewrite.DropSchedule:
		return "drop schedule"
	case rewrite.CommentColumn:
		return fmt.Sprintf("comment %q on column %q at %.8s", a.Comment, a.Column, sql[a.Offset:])
	case rewrite.SetProperties:
		return fmt.Sprintf("set %q", a.Properties)
	case rewrite.UnsetProperties:
		return fmt.Sprintf("unset %q at %.8s, if exists %t", a.Keys, sql[a.Offset:], a.IfExists)
	case rewrite.SetOwner:
		return "owner " + a.Role
	}
	return ""
}

func showFault(sql string, d *pgdiag.Diagnostic) string {
	if d == nil {
		return ""
	}
	return showDiagnostic(sql, d)
}

func showTable(sql string, s *rewrite.CreateStreamingTable) string {
	lines := []string{"create", showName(sql, s.Target), "or refresh", yes(s.OrRefresh), "if not exists", yes(s.IfNotExists)}
	for _, c := range s.Columns {
		lines = append(lines, "column", c.Name+": "+c.Type, "  rest", showSpan(sql, &c.Rest), "  comment", pointed(c.Comment))
	}
	for _, c := range s.Constraints {
		lines = append(lines, "constraint", showSpan(sql, &c))
	}
	var partitionBy []string
	for _, c := range s.PartitionBy {
		partitionBy = append(partitionBy, c.Name)
	}
	lines = append(lines, "partition by", strings.Join(partitionBy, ", "), "cluster by", showSpan(sql, s.ClusterBy),
		"comment", pointed(s.Comment))
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		lines = append(lines, "property", key+" = "+s.Properties[key])
	}
	if s.Schedule != nil {
		lines = append(lines, "schedule", s.Schedule.Text, "zone", s.Schedule.Zone)
	}
	if s.Flow != nil {
		lines = append(lines, "predicate", showSpan(sql, &s.Flow.Predicate), "query", showSpan(sql, &s.Flow.Query))
	}
	for _, notice := range s.Notices {
		lines = append(lines, strings.ToLower(notice.Severity), showDiagnostic(sql, notice))
	}
	return showLines(lines...)
}

func showInsert(sql string, s *rewrite.Insert) string {
	replaces := map[rewrite.Replaced]string{
		rewrite.ReplacesNothing: "nothing", rewrite.ReplacesWhere: "where", rewrite.ReplacesUsing: "using",
		rewrite.ReplacesOn: "on", rewrite.ReplacesPartition: "partition",
	}
	lines := []string{"insert", showName(sql, s.Target), "replaces", replaces[s.Replaces], "with", showSpan(sql, s.With)}
	names := func(what string, columns ...rewrite.ColumnName) {
		for _, c := range columns {
			lines = append(lines, what, strings.TrimSpace(fmt.Sprintf("%q at %.8s", c.Name, sql[c.Offset:])))
		}
	}
	if s.Alias != nil {
		names("alias", *s.Alias)
	}
	names("column", s.Columns...)
	lines = append(lines, "by name", yes(s.ByName))
	for _, c := range s.Partition {
		names("partition", c.ColumnName)
		lines = append(lines, "  value", showSpan(sql, c.Value))
	}
	names("using", s.Using...)
	lines = append(lines, "condition", showSpan(sql, &s.Condition), "query", showSpan(sql, &s.Query))
	if s.Values > 0 {
		lines = append(lines, "values", strconv.Itoa(s.Values))
	}
	lines = append(lines, "default", yes(s.HasDefault))
	if s.SourceAlias != nil {
		names("source alias", *s.SourceAlias)
	}
	return showLines(lines...)
}

// showLines writes name and value pairs, one a line, without those that have
// no value.
func showLines(pairs ...string) string {
	var lines []string
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			lines = append(lines, pair[0]+": "+pair[1])
		}
	}
	return strings.Join(lines, "\n")
}

func showDiagnostic(sql string, d *pgdiag.Diagnostic) string {
	return showLines(d.Code, d.Message, "detail", d.Detail, "hint", d.Hint, "at", string([]rune(sql)[d.Position-1:])+"|")
}

func showName(sql string, n rewrite.Name) string {
	parts := []string{n.Catalog, n.Schema, n.Table}
	for parts[0] == "" {
		parts = parts[1:]
	}
	return strings.TrimSpace(fmt.Sprintf("%q at %.8s", parts, sql[n.Offset:]))
}

// showSpan returns a Span's text, which but for blanked clauses is that of sql.
func showSpan(sql string, s *rewrite.Span) string {
	if s == nil || *s == (rewrite.Span{}) {
		return ""
	}
	for i := range len(s.Text) {
		if s.Text[i] != sql[s.Offset+i] && s.Text[i] != ' ' {
			return "MISPLACED " + s.Text
		}
	}
	return s.Text
}

func pointed(s *string) string {
	if s == nil {
		return ""
	}
	return fmt.Sprintf("%q", *s)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return ""
}

func TestAnErrorCountsItsPositionInCharacters(t *testing.T) {
	t.Parallel()
	_, err := rewrite.Parse("refresh table \"Übergröße\" völlig", rewrite.Lexical{})
	var d *pgdiag.Diagnostic
	if !errors.As(err, &d) || d.Position != 27 {
		t.Fatalf("got %v at %d, want position 27", err, d.Position)
	}
}

func TestBackslashesAreEscapesWhereTheSessionSaysSo(t *testing.T) {
	t.Parallel()
	const sql = `create streaming table t comment 'it\'s' flow replace where a = '\'' by name select 1 as a`
	statement, err := rewrite.Parse(sql, rewrite.Lexical{BackslashEscapes: true})
	if err != nil {
		t.Fatal(err)
	}
	if comment := *statement.(*rewrite.CreateStreamingTable).Comment; comment != "it's" {
		t.Errorf("got comment %q", comment)
	}
	if _, err := rewrite.Parse(sql, rewrite.Lexical{}); err == nil {
		t.Error("without escapes the strings are not terminated, yet the statement was accepted")
	}
}

func TestAnErrorRepeatsOnlyTheBeginningOfALongToken(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		"refresh table " + strings.Repeat("ü", 500) + " x " + strings.Repeat("y", 10_000),
		"refresh table t where 'secret" + strings.Repeat("y", 10_000),
		"refresh table t " + strings.Repeat("ü", 10_000),
	} {
		if _, err := rewrite.Parse(sql, rewrite.Lexical{}); err == nil || len(err.Error()) > 300 {
			t.Errorf("got %.400v", err)
		}
	}
}

func TestALongNameIsCutAsPostgresCutsIt(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, name := range []string{strings.Repeat("a", 70), strings.Repeat("ä", 40), "x" + strings.Repeat("ä", 40)} {
		statement, err := rewrite.Parse("refresh table "+name, rewrite.Lexical{})
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := c.QueryRow(t.Context(), "select $1::text::name::text", name).Scan(&want); err != nil {
			t.Fatal(err)
		}
		if got := statement.(*rewrite.Refresh).Target.Table; got != want {
			t.Errorf("got %q, Postgres says %q", got, want)
		}
	}
}

func TestNamesAreFoldedAsPostgresFoldsThem(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, name := range []string{
		"Sales", `"Sales"`, "SÜD", `"a""b"`, `U&"d\0061t\+000061"`, `u&"d!0061ta" uescape '!'`, `U&"\\x"`, `U&"\d83d\de00"`,
		"between", "_a$1", `"a.b;c"`,
	} {
		statement, err := rewrite.Parse("refresh table "+name, rewrite.Lexical{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		rows, err := c.Query(t.Context(), "select 1 as "+name)
		if err != nil {
			t.Fatal(name, err)
		}
		want := rows.FieldDescriptions()[0].Name
		rows.Close()
		if got := statement.(*rewrite.Refresh).Target.Table; got != want {
			t.Errorf("%s: got %q, Postgres says %q", name, got, want)
		}
	}
}

func TestStringsMeanWhatTheyMeanToPostgres(t *testing.T) {
	t.Parallel()
	c := connect(t)
	for _, escapes := range []bool{false, true} {
		setting := map[bool]string{false: "on", true: "off"}[escapes]
		execute(t, c, "set standard_conforming_strings = "+setting+"; set escape_string_warning = off")
		for _, literal := range []string{
			`'plain'`, `''`, `'it''s'`, `'back\\slash'`, `N'n''n'`, `$$dollar ' $$`, `$x$ $$ $x$`,
			`E'a\b\f\n\r\t\\\'\"z'`, `E'\101\60\x41\x4z\u00e9\U0001f600\ud83d\ude00'`, `E'quote '' x'`,
			"'two'\n'pieces'", "E'two' -- comment\n  '\\tpieces'", "'a'\r\n\f'b'",
		} {
			sql := "create streaming table t comment " + literal + " flow replace where true by name select 1 as a"
			statement, err := rewrite.Parse(sql, rewrite.Lexical{BackslashEscapes: escapes})
			if err != nil {
				t.Errorf("%s with standard_conforming_strings %s: %v", literal, setting, err)
				continue
			}
			want := rows(t, c, "select "+literal)[0][0]
			if got := *statement.(*rewrite.CreateStreamingTable).Comment; got != want {
				t.Errorf("%s with standard_conforming_strings %s: got %q, Postgres says %q", literal, setting, got, want)
			}
		}
	}
	execute(t, c, "set standard_conforming_strings = on")
	const unicode = `U&'d!0061t!+000061!!' uescape '!'`
	want := rows(t, c, "select "+unicode)[0][0]
	statement, err := rewrite.Parse("create streaming table t comment "+unicode, rewrite.Lexical{})
	if err != nil {
		t.Fatal(err)
	}
	if got := *statement.(*rewrite.CreateStreamingTable).Comment; got != want {
		t.Errorf("got %q, Postgres says %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range parseCases(f) {
		f.Add(c.sql, false)
		f.Add(c.sql, true)
	}
	f.Fuzz(func(t *testing.T, sql string, escapes bool) {
		statement, err := rewrite.Parse(sql, rewrite.Lexical{BackslashEscapes: escapes})
		if (statement != nil || err != nil) && !rewrite.MayBeOurs([]byte(sql)) {
			t.Error("MayBeOurs misses the statement")
		}
		var d *pgdiag.Diagnostic
		if err != nil && (!errors.As(err, &d) || d.Code == "" || d.Position < 1 || d.Position > len([]rune(sql))+1) {
			t.Errorf("the error %v has no code or no position in the statement", err)
		}
		if statement != nil && err != nil {
			t.Error("both a statement and an error")
		}
		if text := show(sql+"|", statement, nil); strings.Contains(text, "MISPLACED") {
			t.Error(text)
		}
	})
}
