package rewrite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// forEachTranslation hands each case of a file of testdata/translate to
// translate and compares what it returns with what the file says.
func forEachTranslation(t *testing.T, files []txtar.File, translate func(input string) string) {
	t.Helper()
	for _, file := range files {
		t.Run(file.Name, func(t *testing.T) {
			t.Parallel()
			input, want, found := strings.Cut(string(file.Data), "\n=>\n")
			if !found {
				t.Fatal("the case has no =>")
			}
			if diff := cmp.Diff(strings.TrimRight(want, "\n"), strings.TrimRight(translate(input), "\n")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func archive(t testing.TB, name string) []txtar.File {
	t.Helper()
	parsed, err := txtar.ParseFile(filepath.Join("testdata", "translate", name))
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Files
}

// errorText shows an error and the text of the statement at its position.
func errorText(statement string, err error) string {
	var d *pgdiag.Diagnostic
	if !errors.As(rewrite.Locate(err, statement), &d) {
		return err.Error()
	}
	text := d.Code + ": " + d.Message + "\n"
	if d.Hint != "" {
		text += "HINT: " + d.Hint + "\n"
	}
	return text + "AT: " + string([]rune(statement)[d.Position-1:])
}

// before is what stands before a Span in its statement: bytes are not
// characters.
const before = "/* Übergröße */ "

func TestQueriesAreTranslatedAsTheFileSays(t *testing.T) {
	t.Parallel()
	forEachTranslation(t, archive(t, "query.txtar"), func(input string) string {
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: input, Offset: len(before)}, nothing{}, rewrite.Lexical{})
		if err != nil {
			return errorText(before+input, err)
		}
		return translation.SQL
	})
}

func TestPredicatesAreTranslatedAsTheFileSays(t *testing.T) {
	t.Parallel()
	files := archive(t, "predicate.txtar")
	query := rewrite.Span{Text: string(files[0].Data)}
	context := rewrite.PredicateContext{Target: rewrite.Name{Schema: "sales", Table: "totals"}, Query: &query}
	forEachTranslation(t, files[1:], func(input string) string {
		translation, err := rewrite.TranslatePredicate(rewrite.Span{Text: input, Offset: len(before)}, context)
		if err != nil {
			return errorText(before+input, err)
		}
		// It is PostgreSQL's: nothing is left to translate.
		again, err := rewrite.TranslatePredicate(rewrite.Span{Text: translation.SQL}, context)
		if err != nil || again.SQL != translation.SQL {
			return fmt.Sprintf("%s\nbecomes\n%s\n%v", translation.SQL, again.SQL, err)
		}
		columns, known := rewrite.PredicateColumns(translation.SQL)
		if !known {
			return translation.SQL + "\nCOLUMNS: unknown"
		}
		return translation.SQL + "\nCOLUMNS: " + strings.Join(columns, ", ")
	})
}
