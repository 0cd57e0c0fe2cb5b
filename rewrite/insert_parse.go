package rewrite

const (
	insertForm = "INSERT INTO [TABLE] name [(columns) | BY NAME] [[AS] alias] " +
		"REPLACE {WHERE predicate | USING (columns) | ON condition} query"
	overwriteForm = "INSERT OVERWRITE [TABLE] name [PARTITION (column = value, ...)] [(columns) | BY NAME] query"
)

// insert reads an INSERT that PostgreSQL does not have.
func (p *parser) insert() (Statement, error) {
	p.form = insertForm
	s := &Insert{Text: p.statementText(), lexical: p.lexical}
	if p.i = p.insertKeyword(); p.i > 0 {
		if err := p.balanced(0, p.i); err != nil {
			return nil, err
		}
		with := p.span(0, p.i)
		s.With = &with
	}
	p.i++
	if err := p.insertInto(s); err != nil {
		return nil, err
	}
	p.accept("TABLE")
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return nil, err
	}
	if err := p.insertOptions(s); err != nil {
		return nil, err
	}
	if p.wordsAt(p.i, "REPLACE") {
		err = p.replaceClause(s)
	} else {
		err = p.insertQuery(s, p.i, len(p.tokens))
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// insertKeyword is the place of INSERT, behind the WITH clause if there is one.
func (p *parser) insertKeyword() int {
	return p.top(0, len(p.tokens), func(i int) bool {
		return p.wordsAt(i, "INSERT", "INTO") || p.wordsAt(i, "INSERT", "OVERWRITE") || p.wordsAt(i, "INSERT", "WITH")
	})
}

// insertInto reads INTO or OVERWRITE.
func (p *parser) insertInto(s *Insert) error {
	switch {
	case p.wordsAt(p.i, "WITH"):
		return p.unsupported(p.i, "INSERT WITH SCHEMA EVOLUTION", "Add the columns with ALTER TABLE, then INSERT ... BY NAME.")
	case p.accept("OVERWRITE"):
		p.form = overwriteForm
		s.Replaces = ReplacesPartition
		directory := p.i
		if p.wordsAt(directory, "LOCAL") {
			directory++
		}
		if p.wordsAt(directory, "DIRECTORY") && p.kindAt(directory+1, String) {
			return p.unsupported(p.i, "INSERT OVERWRITE DIRECTORY", "COPY (query) TO writes a file.")
		}
		return nil
	}
	return p.expect("INTO")
}

// insertOptions reads what stands between the target and the query or REPLACE.
// Databricks' own pages disagree about the order, so any is taken.
func (p *parser) insertOptions(s *Insert) error {
	for {
		var err error
		switch {
		case p.wordsAt(p.i, "REPLACE") && (s.Alias != nil || !p.wordsAt(p.i+1, "REPLACE")), p.atQuery(p.i):
			return nil
		case p.symbolAt(p.i, "("):
			err = p.insertColumns(s)
		case p.wordsAt(p.i, "BY"):
			err = p.byName(s)
		case p.wordsAt(p.i, "PARTITION") && p.symbolAt(p.i+1, "("):
			err = p.partition(s)
		case p.wordsAt(p.i, "AS") || p.atBareAlias():
			err = p.targetAlias(s)
		default:
			return p.expectedAfterTarget(s)
		}
		if err != nil {
			return err
		}
	}
}

// expectedAfterTarget returns the error for what no INSERT has at i.
func (p *parser) expectedAfterTarget(s *Insert) error {
	switch {
	case p.wordsAt(p.i, "IF"):
		return p.unsupported(p.i, "IF NOT EXISTS of a partition", "Leave it out, or add WHERE NOT EXISTS (...) to the query.")
	case p.wordsAt(p.i, "DEFAULT", "VALUES"), p.wordsAt(p.i, "OVERRIDING"):
		return p.unsupported(p.i, p.text(p.i)+" in this INSERT", "Use PostgreSQL's own INSERT INTO name, without TABLE, BY NAME, PARTITION and REPLACE.")
	case p.wordsAt(p.i, "WHERE"), p.wordsAt(p.i, "USING"), p.wordsAt(p.i, "ON"):
		err := p.expected(p.i, "REPLACE before "+p.text(p.i))
		if s.Replaces == ReplacesPartition {
			err = p.expected(p.i, "a query; REPLACE WHERE, USING and ON stand behind INSERT INTO")
			err.Hint = "The statement has the form: " + insertForm
		}
		return err
	case s.Replaces == ReplacesPartition:
		return p.expected(p.i, "PARTITION, (columns), BY NAME or a query")
	}
	return p.expected(p.i, "(columns), BY NAME, REPLACE or a query")
}

// atBareAlias reports that the name at i is an alias without AS: what follows
// is no expression, so a name in front of one of these can be nothing else.
func (p *parser) atBareAlias() bool {
	isName := p.kindAt(p.i, QuotedIdentifier) || p.kindAt(p.i, Backtick) ||
		p.kindAt(p.i, Word) && isAlias(p.tokens[p.i], p.text(p.i))
	return isName && (p.wordsAt(p.i+1, "REPLACE") || p.wordsAt(p.i+1, "BY", "NAME"))
}

func (p *parser) targetAlias(s *Insert) error {
	if s.Alias != nil {
		return p.syntaxError(p.i, `syntax error at or near "`+excerpt(p.text(p.i))+`": the alias is given twice`)
	}
	p.accept("AS")
	alias, err := p.columnName("an alias")
	s.Alias = &alias
	return err
}

func (p *parser) columnName(what string) (ColumnName, error) {
	at := p.i
	name, err := p.identifier(what, true)
	if err != nil {
		return ColumnName{}, err
	}
	return ColumnName{Name: name, Offset: p.tokens[at].Start}, nil
}

func (p *parser) insertColumns(s *Insert) error {
	if s.Columns != nil || s.ByName {
		return p.syntaxError(p.i, `syntax error at or near "(": BY NAME and a column list exclude each other`)
	}
	var err error
	s.Columns, err = p.plainColumns()
	return err
}

func (p *parser) byName(s *Insert) error {
	at := p.i
	if err := p.expect("BY", "NAME"); err != nil {
		return err
	}
	switch {
	case s.ByName:
		return p.syntaxError(at, `syntax error at or near "`+p.text(at)+`": BY NAME is given twice`)
	case s.Columns != nil:
		return p.syntaxError(at, `syntax error at or near "`+p.text(at)+`": BY NAME and a column list exclude each other`)
	}
	s.ByName = true
	return nil
}

// plainColumns reads ( name [, …] ), names without fields or subscripts.
func (p *parser) plainColumns() ([]ColumnName, error) {
	if err := p.expectSymbol("("); err != nil {
		return nil, err
	}
	var columns []ColumnName
	for {
		column, err := p.columnName("a column name")
		if err != nil {
			return nil, err
		}
		columns = append(columns, column)
		switch {
		case p.acceptSymbol(")"):
			return columns, nil
		case p.symbolAt(p.i, "."), p.symbolAt(p.i, "["):
			return nil, p.unsupported(p.i, "a part of a column here", "Name whole columns.")
		case !p.acceptSymbol(","):
			return nil, p.expected(p.i, `"," or ")"`)
		}
	}
}

// partition reads PARTITION ( column [= value] [, …] ).
func (p *parser) partition(s *Insert) error {
	if s.Partition != nil {
		return p.syntaxError(p.i, `syntax error at or near "`+p.text(p.i)+`": PARTITION is given twice`)
	}
	p.i += 2 // PARTITION (
	for {
		name, err := p.columnName("a column name")
		if err != nil {
			return err
		}
		column := PartitionColumn{ColumnName: name}
		if p.acceptSymbol("=") {
			if column.Value, err = p.partitionValue(); err != nil {
				return err
			}
		}
		s.Partition = append(s.Partition, column)
		switch {
		case p.acceptSymbol(")"):
			return nil
		case !p.acceptSymbol(","):
			return p.expected(p.i, `"=", "," or ")"`)
		}
	}
}

func (p *parser) partitionValue() (*Span, error) {
	start := p.i
	end := p.top(start, len(p.tokens), func(i int) bool { return p.symbolAt(i, ",") || p.symbolAt(i, ")") })
	switch {
	case end < 0:
		return nil, p.expected(len(p.tokens), `")"`)
	case end == start:
		return nil, p.expected(start, "a value")
	}
	if err := p.balanced(start, end); err != nil {
		return nil, err
	}
	p.i = end
	value := p.span(start, end)
	return &value, nil
}
