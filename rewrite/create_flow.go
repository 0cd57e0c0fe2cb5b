package rewrite

const createFlowForm = "CREATE FLOW name [COMMENT 'text'] AS INSERT INTO target BY NAME REPLACE WHERE predicate query"

// flowElement is the class of the errors for what a flow's INSERT may not
// have.
const flowElement = "PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR: "

// createFlow reads CREATE FLOW name [COMMENT text] AS INSERT INTO target BY
// NAME REPLACE WHERE predicate query.
func (p *parser) createFlow() (Statement, error) {
	p.form = createFlowForm
	s := &CreateFlow{Text: p.statementText()}
	p.i += 2 // CREATE FLOW
	if p.wordsAt(p.i, "IF", "NOT", "EXISTS") {
		return nil, p.unsupported(p.i, "IF NOT EXISTS of a flow", "Leave IF NOT EXISTS out.")
	}
	var err error
	if s.Name, err = p.flowName(); err != nil {
		return nil, err
	}
	if p.accept("COMMENT") {
		comment, err := p.stringValue("the comment as a string")
		if err != nil {
			return nil, err
		}
		s.Comment = &comment
	}
	if err := p.expect("AS"); err != nil {
		return nil, err
	}
	if err := p.flowInsert(); err != nil {
		return nil, err
	}
	if s.Target, err = p.tableName(); err != nil {
		return nil, err
	}
	if err := p.flowByName(); err != nil {
		return nil, err
	}
	flow, err := p.replaceWhereQuery()
	if err != nil {
		return nil, err
	}
	s.Flow = *flow
	return s, nil
}

// flowName reads a flow's name, which has one part.
func (p *parser) flowName() (string, error) {
	start := p.i
	name, err := p.identifier("a flow name", true)
	if err != nil || !p.symbolAt(p.i, ".") {
		return name, err
	}
	for p.acceptSymbol(".") && !p.atEnd() {
		p.i++
	}
	return "", p.errorAt(start, featureNotSupportedCode,
		`flow with multipart name "`+excerpt(p.span(start, p.i).Text)+`" is not supported`,
		"MULTIPART_FLOW_NAME_NOT_SUPPORTED", "A flow lives in the schema of its target; give it a single name.")
}

// flowInsert reads INSERT INTO, up to the target.
func (p *parser) flowInsert() error {
	if p.wordsAt(p.i, "AUTO") || p.wordsAt(p.i, "APPLY") {
		return p.unsupported(p.i, "an AUTO CDC flow", "Use a REPLACE WHERE flow.")
	}
	if err := p.expect("INSERT"); err != nil {
		return err
	}
	if p.wordsAt(p.i, "OVERWRITE") {
		return p.flowElement(p.i, "an INSERT OVERWRITE flow", "INSERT OVERWRITE flows not supported.")
	}
	if p.wordsAt(p.i, "ONCE") {
		return p.refuseOnce()
	}
	if err := p.expect("INTO"); err != nil {
		return err
	}
	if p.wordsAt(p.i, "ONCE") && !p.wordsAt(p.i+1, "BY") && !p.symbolAt(p.i+1, ".") {
		return p.refuseOnce()
	}
	p.accept("TABLE")
	return nil
}

func (p *parser) refuseOnce() error {
	return p.unsupported(p.i, "a flow that runs ONCE", "Use plain INSERT INTO ... SELECT, or REFRESH STREAMING TABLE ... WHERE, to back-fill.")
}

// flowByName reads BY NAME REPLACE WHERE, behind the target.
func (p *parser) flowByName() error {
	switch {
	case p.symbolAt(p.i, "("):
		return p.flowElement(p.i, "the column list of a flow target", "Column schema may not be specified for flow target.")
	case p.wordsAt(p.i, "PARTITION"):
		return p.flowElement(p.i, "the partition specification of a flow target", "Partition spec may not be specified for flow target.")
	case p.wordsAt(p.i, "IF"):
		return p.flowElement(p.i, "IF NOT EXISTS in a flow", "IF NOT EXISTS not supported for flows.")
	case p.wordsAt(p.i, "REPLACE"):
		return p.syntaxError(p.i, `syntax error at or near "`+p.text(p.i)+`": in CREATE FLOW, BY NAME stands before REPLACE WHERE`)
	case p.atQuery(p.i):
		err := p.expected(p.i, "BY NAME REPLACE WHERE")
		return err.WithDetail(flowElement + "Only INSERT INTO by name flows supported.")
	}
	if err := p.expect("BY", "NAME"); err != nil {
		return err
	}
	switch {
	case p.wordsAt(p.i, "REPLACE", "USING"):
		return p.unsupported(p.i, "a REPLACE USING flow", "Use BY NAME REPLACE WHERE predicate query.")
	case p.atQuery(p.i):
		return p.unsupported(p.i, "an append flow", "Use BY NAME REPLACE WHERE predicate query.")
	}
	return p.expect("REPLACE", "WHERE")
}

// flowElement refuses a part of a flow's INSERT, in Spark's words too.
func (p *parser) flowElement(i int, what, spark string) error {
	return p.unsupported(i, what, "The statement has the form: "+createFlowForm).WithDetail(flowElement + spark)
}
