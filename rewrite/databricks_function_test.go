package rewrite_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/rewrite"
)

// databricksFunction is a line of testdata/databricks_functions.txt.
type databricksFunction struct{ name, decision, call, want string }

// databricksFunctions returns the functions that something was decided about,
// and the names of those that Databricks alone has.
func databricksFunctions(t *testing.T) (decided []databricksFunction, others map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("testdata/databricks_functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	others = map[string]bool{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), " | ")
		switch {
		case strings.HasPrefix(line, "#"):
		case len(fields) > 2:
			f := databricksFunction{name: fields[0], decision: fields[1], call: fields[2]}
			if len(fields) > 3 {
				f.want = fields[3]
			}
			decided = append(decided, f)
		default:
			for _, name := range strings.Fields(line) {
				others[name] = true
			}
		}
	}
	return decided, others
}

func TestEveryFunctionOfBothIsDecidedAbout(t *testing.T) {
	t.Parallel()
	c := connect(t)
	decided, others := databricksFunctions(t)
	known := map[string]bool{}
	for _, f := range decided {
		known[f.name] = true
	}
	for _, row := range rows(t, c, `select proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace
		union select word from pg_get_keywords() where catcode <> 'U'`) {
		if others[row[0]] && !known[row[0]] {
			t.Errorf("PostgreSQL has a function %s too, and nobody has decided what becomes of Databricks'", row[0])
		}
	}
}

func TestFunctionsOfBothMeanWhatDatabricksMeansOrAreRefused(t *testing.T) {
	t.Parallel()
	c := connect(t)
	decided, _ := databricksFunctions(t)
	for _, f := range decided {
		query := "select " + f.call
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, diagnosing{catalog{t, c}}, databricks)
		if f.decision == "refused" {
			if err == nil || !strings.HasPrefix(errorText(query, err), "0A000: the function "+f.name+" under") && !strings.HasPrefix(errorText(query, err), "0A000: the function "+f.name+" is") {
				t.Errorf("%s: got %v", f.call, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", f.call, err)
			continue
		}
		if isSame := translation.SQL == query; isSame != (f.decision == "same") {
			t.Errorf("%s is %s and became %s", f.call, f.decision, translation.SQL)
		}
		result, err := c.PgConn().Exec(t.Context(), translation.SQL).ReadAll()
		if err != nil {
			t.Errorf("%s became\n%s\n%v", f.call, translation.SQL, err)
			continue
		}
		got := string(result[0].Rows[0][0])
		if result[0].Rows[0][0] == nil {
			got = "NULL"
		}
		if got != f.want {
			t.Errorf("%s became\n%s\ngot %s, want %s", f.call, translation.SQL, got, f.want)
		}
	}
}

// A name that neither the grammar nor the functions of rwproxy_compat know
// would end in PostgreSQL's advice to cast the arguments.
func TestEveryFunctionThatDatabricksAloneHasIsThereOrRefusedByName(t *testing.T) {
	t.Parallel()
	c := connect(t)
	_, others := databricksFunctions(t)
	there := map[string]bool{}
	for _, row := range rows(t, c, `select proname from pg_proc where pronamespace in ('pg_catalog'::regnamespace, 'rwproxy_compat'::regnamespace)
		union select word from pg_get_keywords() where catcode <> 'U'`) {
		there[row[0]] = true
	}
	grammar := map[string]bool{"cube": true, "event_log": true, "regexp": true} // GROUP BY, a table function of ours, an operator
	// Translated, once their arguments are those they take:
	arity := map[string]bool{"approx_percentile": true, "max_by": true, "min_by": true, "percentile": true, "percentile_approx": true, "try_cast": true}
	for name := range others {
		if grammar[name] || arity[name] {
			continue
		}
		query := "select " + name + "(1)"
		translation, err := rewrite.TranslateQuery(rewrite.Span{Text: query}, diagnosing{catalog{t, c}}, databricks)
		refused := err != nil && strings.HasPrefix(errorText(query, err), "0A000: ")
		if !refused && !there[name] && (err != nil || translation.SQL == query) {
			t.Errorf("%s became %s: %v", name, translation.SQL, err)
		}
	}
}
