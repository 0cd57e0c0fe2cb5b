package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// Refused is a statement that Postgres can parse but means nothing to it. Other
// statements that are refused are syntax errors to Postgres, and Parse returns
// their error.
type Refused struct {
	Text string
	Err  *pgdiag.Diagnostic
}

// Tag implements Statement.
func (*Refused) Tag() string { return "REFUSED" }

// Shadow implements Statement.
func (*Refused) Shadow() string { return noRows }

// refuseGrantRefresh refuses GRANT REFRESH ON and REVOKE REFRESH ON.
func (p *parser) refuseGrantRefresh() Statement {
	return &Refused{Text: p.statementText(), Err: p.unsupported(p.find(0, "REFRESH"), "the privilege REFRESH",
		"A role that refreshes needs SELECT, INSERT and DELETE on the table, and SELECT on the view of its flow in schema rwproxy_flows.")}
}

// refuseRestore refuses RESTORE [TABLE] name [TO] {VERSION | TIMESTAMP} AS OF.
// Another text that begins with RESTORE is Postgres's to refuse.
func (p *parser) refuseRestore() error {
	p.i++ // RESTORE
	p.accept("TABLE")
	if _, err := p.tableName(); err != nil {
		return nil
	}
	p.accept("TO")
	if !p.wordsAt(p.i, "VERSION", "AS", "OF") && !p.wordsAt(p.i, "TIMESTAMP", "AS", "OF") {
		return nil
	}
	return p.unsupported(0, "RESTORE", "Recompute the rows instead: REFRESH STREAMING TABLE name WHERE predicate.")
}

// materializedViewClauses are what Databricks has between the name of a
// materialized view and its query, and PostgreSQL has not.
var materializedViewClauses = []string{
	"SCHEDULE", "TRIGGER ON UPDATE", "TBLPROPERTIES", "PARTITIONED BY", "CLUSTER BY", "COMMENT", "REFRESH POLICY",
	"DEFAULT COLLATION", "WITH ROW FILTER", "FLOW",
}

// createMaterializedView leaves PostgreSQL's own CREATE MATERIALIZED VIEW alone
// and refuses what Databricks adds to it.
func (p *parser) createMaterializedView() error {
	p.i += 3 // CREATE MATERIALIZED VIEW
	p.accept("IF", "NOT", "EXISTS")
	if _, err := p.tableName(); err != nil {
		return nil // Postgres says what is wrong with the name
	}
	if err := p.viewColumns(); err != nil {
		return err
	}
	for {
		for _, clause := range materializedViewClauses {
			if p.wordsAt(p.i, strings.Fields(clause)...) {
				return p.unsupported(p.i, clause+" of a materialized view",
					"Leave the clause out, or use a streaming table: CREATE STREAMING TABLE ... FLOW REPLACE WHERE predicate BY NAME query.")
			}
		}
		switch {
		case p.accept("USING"), p.accept("TABLESPACE"):
			p.i++
		case p.wordsAt(p.i, "WITH") && p.symbolAt(p.i+1, "("):
			p.i++
			if err := p.skipGroup(); err != nil {
				return nil
			}
		default:
			return nil
		}
	}
}

// viewColumns reads the columns of a view, if it names any, and refuses what
// only Databricks has there.
func (p *parser) viewColumns() error {
	if !p.symbolAt(p.i, "(") {
		return nil
	}
	end := p.closing(p.i)
	if end < 0 {
		return nil
	}
	for i := p.i; i < end; i++ {
		switch {
		case p.isExpectation(i):
			return p.unsupported(i, "an expectation on a materialized view", "Use a WHERE clause in its query.")
		case p.wordsAt(i, "COMMENT") && p.kindAt(i+1, String):
			return p.unsupported(i, "COMMENT in the columns of a materialized view", "Use COMMENT ON COLUMN.")
		case p.wordsAt(i, "MASK"):
			if i > p.i+1 && !p.symbolAt(i-1, ",") {
				return p.unsupported(i, "a column MASK", "Use column privileges, or a view over it.")
			}
		}
	}
	p.i = end + 1
	return nil
}
