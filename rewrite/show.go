package rewrite

import "github.com/rwproxy/rwproxy/internal/pgdiag"

// ShowCreateTable is SHOW CREATE TABLE. Only if the table is a streaming table
// is it a statement of ours.
type ShowCreateTable struct {
	Text   string
	Target Name
	Fault  *pgdiag.Diagnostic // as in Describe
}

// ShowProperties is SHOW TBLPROPERTIES. Only if the table is a streaming table
// is it a statement of ours.
type ShowProperties struct {
	Text   string
	Target Name
	Key    *string            // the one property that is asked for
	Fault  *pgdiag.Diagnostic // as in Describe
}

// Tag implements Statement.
func (*ShowCreateTable) Tag() string { return "SHOW" }

// Tag implements Statement.
func (*ShowProperties) Tag() string { return "SHOW" }

// ResultColumns are the names of the result's columns, all of type text.
func (*ShowCreateTable) ResultColumns() []string { return []string{"createtab_stmt"} }

// ResultColumns are the names of the result's columns, all of type text.
func (*ShowProperties) ResultColumns() []string { return []string{"key", "value"} }

// Shadow implements Statement.
func (s *ShowCreateTable) Shadow() string { return emptyResult(s.ResultColumns()) }

// Shadow implements Statement.
func (s *ShowProperties) Shadow() string { return emptyResult(s.ResultColumns()) }

// showCreateTable reads SHOW CREATE TABLE name. It is nil, Postgres's to
// refuse, when it does not even name a table.
func (p *parser) showCreateTable() (Statement, error) {
	p.form = "SHOW CREATE TABLE name"
	s := &ShowCreateTable{Text: p.statementText()}
	p.i += 3 // SHOW CREATE TABLE
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return nil, nil
	}
	switch {
	case p.wordsAt(p.i, "AS", "SERDE"):
		s.Fault = p.unsupported(p.i, "SHOW CREATE TABLE ... AS SERDE", "Leave AS SERDE out.")
	case !p.atEnd():
		s.Fault = p.expected(p.i, "the end of the statement")
	}
	return s, nil
}

// showProperties reads SHOW TBLPROPERTIES name [( key )].
func (p *parser) showProperties() (Statement, error) {
	p.form = "SHOW TBLPROPERTIES name [(key)]"
	s := &ShowProperties{Text: p.statementText()}
	p.i += 2 // SHOW TBLPROPERTIES
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return nil, nil
	}
	if p.acceptSymbol("(") {
		at := p.i
		key, err := p.foldedPropertyKey()
		switch {
		case err != nil:
			s.Fault = p.expected(at, "a property key")
			return s, nil
		case !p.acceptSymbol(")"):
			s.Fault = p.expected(p.i, `")"`)
			return s, nil
		}
		s.Key = &key
	}
	if !p.atEnd() {
		s.Fault = p.expected(p.i, `"(" or the end of the statement`)
	}
	return s, nil
}
