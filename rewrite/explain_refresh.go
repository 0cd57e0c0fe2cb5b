package rewrite

// ExplainRefresh is EXPLAIN of a REFRESH: what it would do, and why. It changes
// nothing.
type ExplainRefresh struct {
	Refresh
	JSON bool // the result is one JSON value instead of lines of text
}

// Tag implements Statement.
func (*ExplainRefresh) Tag() string { return "EXPLAIN" }

// ResultColumns are the names of the result's columns, all of type text.
func (*ExplainRefresh) ResultColumns() []string { return []string{"QUERY PLAN"} }

// Shadow implements Statement. The column has the type that EXPLAIN gives it.
func (e *ExplainRefresh) Shadow() string {
	if e.JSON {
		return `select null::pg_catalog.json as "QUERY PLAN" where false`
	}
	return emptyResult(e.ResultColumns())
}

const explainRefreshForm = "EXPLAIN [(FORMAT {TEXT | JSON})] REFRESH [STREAMING] TABLE name [FULL | WHERE predicate]"

// explainRefresh reads EXPLAIN [(FORMAT …)] REFRESH ….
func (p *parser) explainRefresh() (Statement, error) {
	p.form = explainRefreshForm
	s := &ExplainRefresh{Refresh: Refresh{Text: p.statementText()}}
	p.i++ // EXPLAIN
	if p.acceptSymbol("(") {
		if err := p.explainOptions(s); err != nil {
			return nil, err
		}
	}
	if !p.wordsAt(p.i, "REFRESH") { // EXPLAIN ANALYZE and EXPLAIN VERBOSE
		return nil, p.explainOption(p.i)
	}
	if err := p.refreshInto(&s.Refresh); err != nil {
		return nil, err
	}
	return s, nil
}

// explainOptions reads FORMAT [=] … and the bracket that closes.
func (p *parser) explainOptions(s *ExplainRefresh) error {
	for {
		if !p.wordsAt(p.i, "FORMAT") {
			return p.explainOption(p.i)
		}
		p.i++
		switch {
		case p.accept("TEXT"):
			s.JSON = false
		case p.accept("JSON"):
			s.JSON = true
		default:
			return p.expected(p.i, "TEXT or JSON")
		}
		if p.acceptSymbol(")") {
			return nil
		}
		if !p.acceptSymbol(",") {
			return p.expected(p.i, `"," or ")"`)
		}
	}
}

// explainOption is the error for an option of EXPLAIN other than FORMAT.
func (p *parser) explainOption(i int) error {
	switch {
	case p.wordsAt(i, "ANALYZE"), p.wordsAt(i, "ANALYSE"):
		return p.unsupported(i, "EXPLAIN ANALYZE of a REFRESH", "Leave ANALYZE out: EXPLAIN shows what the refresh would do. "+
			"The view rwproxy.refreshes shows what refreshes have done.")
	case p.kindAt(i, Word):
		return p.unsupported(i, "the EXPLAIN option "+excerpt(p.text(i))+" for a REFRESH", "The one option that it has is FORMAT.")
	}
	return p.expected(i, "FORMAT")
}
