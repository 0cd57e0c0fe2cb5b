package rewrite

import (
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// Describe is DESCRIBE of a table or one of its columns. Only if the table is a
// streaming table is it a statement of ours.
type Describe struct {
	Text     string
	Target   Name
	Column   string // "" for the table
	Offset   int    // of Column in the statement, in bytes
	Extended bool

	// Fault is what is wrong with the statement if it is ours, nil if nothing.
	Fault *pgdiag.Diagnostic
}

// DescribeHistory is DESCRIBE HISTORY of a table. Only if that is a streaming
// table is it a statement of ours.
type DescribeHistory struct {
	Text   string
	Target Name
	Fault  *pgdiag.Diagnostic // as in Describe
	limit  string             // "" for none
}

// Tag implements Statement.
func (*Describe) Tag() string { return "DESCRIBE" }

// Tag implements Statement.
func (*DescribeHistory) Tag() string { return "DESCRIBE" }

// ResultColumns are the names of the result's columns, all of type text.
func (d *Describe) ResultColumns() []string {
	if d.Column != "" {
		return []string{"info_name", "info_value"}
	}
	return []string{"col_name", "data_type", "comment"}
}

// Shadow implements Statement.
func (d *Describe) Shadow() string { return emptyResult(d.ResultColumns()) }

// Shadow implements Statement.
func (d *DescribeHistory) Shadow() string {
	shadow := "select * from rwproxy.table_history(" + d.Target.regclass() + ")"
	if d.limit != "" {
		shadow += " limit " + d.limit
	}
	return shadow
}

// emptyResult is a query without rows whose columns, of type text, have names.
func emptyResult(names []string) string {
	columns := make([]string, len(names))
	for i, name := range names {
		columns[i] = "null::pg_catalog.text as " + QuoteIdentifier(name)
	}
	return "select " + strings.Join(columns, ", ") + " where false"
}

const (
	describeForm        = "{DESCRIBE | DESC} [TABLE] [EXTENDED | FORMATTED] name [column]"
	describeHistoryForm = "{DESCRIBE | DESC} HISTORY name [LIMIT n]"
)

// describe reads DESCRIBE. It is nil, Postgres's to refuse, when it does not
// even name a table.
func (p *parser) describe() (Statement, error) {
	p.form = describeForm
	p.i++ // DESCRIBE
	if p.wordsAt(p.i, "HISTORY") && p.i+1 < len(p.tokens) && !p.symbolAt(p.i+1, ".") {
		return p.describeHistory()
	}
	s := &Describe{Text: p.statementText()}
	p.accept("TABLE")
	if (p.wordsAt(p.i, "EXTENDED") || p.wordsAt(p.i, "FORMATTED")) && p.i+1 < len(p.tokens) && !p.symbolAt(p.i+1, ".") {
		p.i++
		s.Extended = true
	}
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return nil, nil
	}
	if !p.atEnd() && !p.wordsAt(p.i, "AS") && !p.wordsAt(p.i, "PARTITION") {
		s.Offset = p.tokens[p.i].Start
		if s.Column, err = p.identifier("a column name", true); err != nil {
			s.Fault = p.expected(p.i, "a column name or the end of the statement")
			return s, nil
		}
	}
	switch {
	case p.wordsAt(p.i, "AS", "JSON"):
		s.Fault = p.unsupported(p.i, "DESCRIBE ... AS JSON", "Leave AS JSON out, or select from rwproxy.streaming_tables.")
	case p.wordsAt(p.i, "PARTITION"):
		s.Fault = p.unsupported(p.i, "DESCRIBE of a partition", "Leave PARTITION out: the table is one PostgreSQL table.")
	case !p.atEnd():
		s.Fault = p.expected(p.i, "the end of the statement")
	}
	return s, nil
}

// describeHistory reads HISTORY name [LIMIT n].
func (p *parser) describeHistory() (Statement, error) {
	p.form = describeHistoryForm
	s := &DescribeHistory{Text: p.statementText()}
	p.i++ // HISTORY
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return nil, nil
	}
	if p.accept("LIMIT") {
		n, err := p.wholeNumber()
		if err != nil {
			s.Fault = p.expected(p.i, "a whole number")
			return s, nil
		}
		s.limit = strconv.Itoa(n)
	}
	if !p.atEnd() {
		s.Fault = p.expected(p.i, "LIMIT or the end of the statement")
	}
	return s, nil
}
