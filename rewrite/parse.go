package rewrite

import (
	"fmt"
	"strings"
)

// Parse reads one statement. It returns nil and no error for one that is not
// ours: Postgres is to run it as it is.
//
// An error is a *pgdiag.Diagnostic with its position in sql: 42601 for a
// statement that is ours by its first words but malformed, 0A000 for a clause
// or statement of Databricks SQL that rwproxy does not have, 22023 for a value
// out of range.
func Parse(sql string, o Lexical) (Statement, error) {
	form := headOf(lexer{sql: sql, lexical: o})
	switch form {
	case native:
		return parseEventLog(sql, o)
	case dropTable:
		return parseDropTable(sql, o)
	}
	p, err := newParser(sql, o)
	if err != nil {
		if form.mayBeNative() {
			return nil, nil
		}
		return nil, err
	}
	switch form {
	case createStreamingTable:
		return p.createStreamingTable()
	case createFlow:
		return p.createFlow()
	case refreshTable, refreshOther:
		return p.refresh()
	case explainRefresh:
		return p.explainRefresh()
	case refreshMaterializedView:
		return nil, p.refreshMaterializedView()
	case dropStreamingTable:
		return p.dropStreamingTable()
	case insert:
		return p.insert()
	case alterStreamingTable:
		return p.alterStreamingTable()
	case describe:
		return p.describe()
	case showCreateTable:
		return p.showCreateTable()
	case showProperties:
		return p.showProperties()
	case grantRefresh:
		return p.refuseGrantRefresh(), nil
	case restore:
		return nil, p.refuseRestore()
	case createMaterializedView:
		return nil, p.createMaterializedView()
	default:
		return nil, p.refuse(form)
	}
}

// mayBeNative reports that a statement of this form may be PostgreSQL's own, or
// about an object that is not ours.
func (f form) mayBeNative() bool {
	switch f {
	case refreshMaterializedView, createMaterializedView, describe, showCreateTable, showProperties, restore:
		return true
	}
	return false
}

// refuse returns the error for a statement that rwproxy knows but does not
// have.
func (p *parser) refuse(form form) error {
	switch form {
	case createOrReplaceStreamingTable:
		return p.errorAt(2, syntaxErrorCode, "CREATE OR REPLACE is not allowed for a streaming table",
			"STREAMING_TABLE_OPERATION_NOT_ALLOWED.CREATE_OR_REPLACE", "Use CREATE OR REFRESH STREAMING TABLE.")
	case createOrRefreshOther:
		return p.createOrRefreshOther()
	case createPrivate:
		at := p.find(0, "PRIVATE")
		return p.unsupported(at, "a PRIVATE streaming table", "Leave PRIVATE out and use GRANT to say who may read the table.")
	case createTemporary:
		return p.temporary(1)
	case createOrReplaceFlow:
		return p.unsupported(2, "replacing a flow", "Use CREATE OR REFRESH STREAMING TABLE ... "+
			"FLOW REPLACE WHERE ... BY NAME ... to change the flow of a table.")
	case dropFlow:
		return p.unsupported(0, "DROP FLOW", "DROP TABLE of its target drops a flow; "+
			"CREATE OR REFRESH STREAMING TABLE changes it.")
	case explainInsert:
		return p.unsupported(0, "EXPLAIN of an INSERT that PostgreSQL does not have",
			"Explain its query by itself, and a DELETE with its condition for the rows that it replaces.")
	case prepare:
		return p.unsupported(0, "PREPARE of a statement that PostgreSQL does not have",
			"Run it as it is, or have the driver prepare it: the extended protocol does, with parameters.")
	case createOrReplaceMaterializedView:
		return p.unsupported(2, "CREATE OR REPLACE MATERIALIZED VIEW", "Use DROP MATERIALIZED VIEW and CREATE MATERIALIZED VIEW.")
	default:
		return fmt.Errorf("no refusal for the form %d", form)
	}
}

// createOrRefreshOther refuses CREATE OR REFRESH of anything but a streaming
// table.
func (p *parser) createOrRefreshOther() error {
	const first = 3 // the word after CREATE OR REFRESH
	switch {
	case p.wordsAt(first, "MATERIALIZED"):
		return p.unsupported(first, "CREATE OR REFRESH MATERIALIZED VIEW",
			"Use CREATE MATERIALIZED VIEW and REFRESH MATERIALIZED VIEW, or a streaming table.")
	case p.wordsAt(first, "TEMPORARY"), p.wordsAt(first, "TEMP"):
		return p.temporary(first)
	}
	p.form = createStreamingTableForm
	return p.expected(first, "STREAMING TABLE")
}

func (p *parser) temporary(i int) error {
	return p.unsupported(i, "a temporary streaming table", "Leave "+strings.ToUpper(p.text(i))+" out: other sessions refresh the table too.")
}
