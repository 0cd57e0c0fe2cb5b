package integration

import (
	"strings"
	"testing"
)

// Each row of docs/from-databricks.md is what a flow does: the value it writes
// for an expression, or the rows for a query, in order.
func TestThePageForDatabricksUsersSaysWhatFlowsDo(t *testing.T) {
	t.Parallel()
	p := readPage(t, "../docs/from-databricks.md")
	d := newDatabase(t)
	s := connect(t, d.url)
	s.exec(p.blocks[0].text)
	dialects := []string{"postgres", "databricks"}
	written := func(dialect, text string) string {
		t.Helper()
		s.exec(createOf(dialect, text))
		lines := s.rows(`select * from target order by target`)
		s.exec(`drop table target`)
		return strings.ReplaceAll(strings.Join(lines, "; "), "|", " ")
	}
	check := func(dialect, text, want string) {
		t.Helper()
		if got := written(dialect, text); got != want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", dialect, text, got, want)
		}
	}
	same, changed := p.rows("| Databricks | gives |"), p.rows("| text | default | `databricks` |")
	refused := p.rows("| Databricks | message |")
	if len(same) < 40 || len(changed) < 15 || len(refused) < 25 {
		t.Fatalf("the page has %d, %d and %d rows", len(same), len(changed), len(refused))
	}
	for _, row := range same {
		for _, dialect := range dialects {
			check(dialect, code(row[0])[0], code(row[1])[0])
		}
	}
	for _, row := range changed {
		for i, dialect := range dialects {
			check(dialect, code(row[0])[0], strings.Join(code(row[1+i]), ""))
		}
	}
	for _, row := range refused {
		text, message := code(row[0])[0], code(row[1])[0]
		if !strings.Contains(message, "databricks") && !strings.Contains(message, "dialect of Databricks") && !onlyDatabricks[text] {
			dialects = []string{"postgres", "databricks"}
		} else {
			dialects = []string{"databricks"}
		}
		for _, dialect := range dialects {
			e := s.fails("0A000", createOf(dialect, text))
			if e.Message != message || e.Position == 0 || e.Hint == "" {
				t.Errorf("%s: %s\ngot %s (position %d, hint %q)", dialect, text, e.Message, e.Position, e.Hint)
			}
		}
	}
}

// onlyDatabricks are texts that PostgreSQL accepts, or refuses in its own words.
var onlyDatabricks = map[string]bool{
	"tags[0:1]": true, "interval 1 month > interval 30 days": true, `'it\'`: true, "contains(person, 'a')": true, "array_distinct(tags)": true,
}

// createOf is a flow that writes an expression, of a row of visits if it names
// a column, or a query.
func createOf(dialect, text string) string {
	query := text
	if !strings.HasPrefix(text, "select ") {
		query = "select " + text + " as x"
		if strings.Contains(text, "person") || strings.Contains(text, "pages") || strings.Contains(text, "tags") || strings.Contains(text, "price") || strings.Contains(text, "day ") || strings.Contains(text, "day,") {
			query += " from visits"
		}
	}
	return `create streaming table target tblproperties ('rwproxy.dialect' = '` + dialect + `') flow replace where true by name ` + query
}

func TestTheDialectOfDatabricksThroughTheProxy(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders,
			`set rwproxy.dialect = 'databricks'`,
			`create streaming table halves flow replace where day >= current_date() - interval 1 day by name
				select day, sum(id) / 2 as half from orders group by all`,
			`reset rwproxy.dialect`, `refresh streaming table halves`)
		s.want(`select h.half = o.id / 2.0 from halves h join (select day, sum(id) as id from orders group by day) o using (day) order by h.day`, "t", "t")
		s.exec(`set rwproxy.dialect = 'oracle'`)
		s.fails("22023", `create streaming table refused flow replace where true by name select 1 as x`)
	})
}
