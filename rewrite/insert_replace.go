package rewrite

// replaceClause reads REPLACE and everything behind it.
func (p *parser) replaceClause(s *Insert) error {
	at := p.i
	switch {
	case s.Replaces == ReplacesPartition:
		return p.syntaxError(at, `syntax error at or near "`+p.text(at)+`": REPLACE stands behind INSERT INTO, not INSERT OVERWRITE`)
	case s.Partition != nil:
		return p.syntaxError(at, `syntax error at or near "`+p.text(at)+`": PARTITION and REPLACE exclude each other`)
	}
	p.i++
	switch {
	case p.accept("WHERE"):
		s.Replaces = ReplacesWhere
		return p.conditionAndQuery(s, "the predicate")
	case p.accept("ON"):
		s.Replaces = ReplacesOn
		return p.conditionAndQuery(s, "the condition")
	case p.accept("USING"):
		return p.replaceUsing(s)
	}
	return p.expected(p.i, "WHERE, USING or ON behind REPLACE")
}

func (p *parser) replaceUsing(s *Insert) error {
	s.Replaces = ReplacesUsing
	if s.Columns != nil {
		return p.errorAt(p.i-2, featureNotSupportedCode, "a column list with REPLACE USING is not supported", "UNSUPPORTED_FEATURE",
			"Use BY NAME, and name the query's columns like the table's.")
	}
	var err error
	if s.Using, err = p.plainColumns(); err != nil {
		return err
	}
	if p.wordsAt(p.i, "BY", "NAME") {
		return p.byNameBehind()
	}
	return p.insertQuery(s, p.i, len(p.tokens))
}

func (p *parser) byNameBehind() error {
	return p.syntaxError(p.i, `syntax error at or near "`+p.text(p.i)+`": in INSERT, BY NAME stands before REPLACE`)
}

// conditionAndQuery reads a condition and the query behind it, which only the
// query's first word tells apart.
func (p *parser) conditionAndQuery(s *Insert, what string) error {
	start, end := p.i, len(p.tokens)
	query := p.sourceStart(s, start)
	if query >= 0 {
		end = query
	}
	if err := p.balanced(start, end); err != nil {
		return err
	}
	if i := p.top(start, end, func(i int) bool { return p.wordsAt(i, "BY", "NAME") }); i >= 0 {
		p.i = i
		return p.byNameBehind()
	}
	if i := p.top(start, end, p.atOverriding); i >= 0 {
		return p.overriding(i)
	}
	if i := p.top(start, end, p.atReplaceClause); i >= 0 {
		return p.syntaxError(i, `syntax error at or near "`+p.text(i)+`": an INSERT has one REPLACE clause`)
	}
	switch {
	case end == start:
		return p.expected(start, what)
	case query < 0:
		return p.expected(end, "a query after "+what)
	}
	s.Condition = p.span(start, end)
	if s.Replaces == ReplacesOn {
		return p.aliasedQuery(s, query)
	}
	return p.insertQuery(s, query, len(p.tokens))
}

func (p *parser) atReplaceClause(i int) bool {
	return p.wordsAt(i, "REPLACE", "WHERE") || p.wordsAt(i, "REPLACE", "ON") || p.wordsAt(i, "REPLACE", "USING")
}

// sourceStart is queryStart for a query in parentheses that may have an alias.
func (p *parser) sourceStart(s *Insert, start int) int {
	if query := p.queryStart(start); query >= 0 || s.Replaces != ReplacesOn {
		return query
	}
	return p.top(start, len(p.tokens), func(i int) bool {
		return i > start && p.symbolAt(i, "(") && p.atQuery(i) && p.endsExpression(i-1) && p.isAliasToEnd(p.closing(i)+1)
	})
}

// isAliasToEnd reports that [AS] alias is all there is from token i on.
func (p *parser) isAliasToEnd(i int) bool {
	if i == 0 {
		return false // nothing closes the query
	}
	if p.wordsAt(i, "AS") {
		i++
	}
	return i+1 == len(p.tokens) && isNameToken(p.tokens[i])
}

// aliasedQuery reads the query of REPLACE ON, and its alias.
func (p *parser) aliasedQuery(s *Insert, query int) error {
	end := len(p.tokens)
	if p.symbolAt(query, "(") {
		if closing := p.closing(query); closing > 0 && p.isAliasToEnd(closing+1) {
			p.i, end = closing+1, closing+1
			p.accept("AS")
			alias, err := p.columnName("an alias")
			if err != nil {
				return err
			}
			s.SourceAlias = &alias
		}
	}
	return p.insertQuery(s, query, end)
}

// insertQuery reads the query in the tokens from start to end.
func (p *parser) insertQuery(s *Insert, start, end int) error {
	if p.atOverriding(start) {
		return p.overriding(start)
	}
	if !p.atQuery(start) {
		return p.expected(start, "a query")
	}
	if err := p.balanced(start, end); err != nil {
		return err
	}
	if err := p.refuseInsertTail(start, end); err != nil {
		return err
	}
	if p.wordsAt(start, "VALUES") {
		s.Values = 1
		for i, depth := start+1, 0; i < end; i++ {
			switch p.text(i) {
			case "(", "[":
				depth++
			case ")", "]":
				depth--
			case ",":
				if depth == 1 {
					s.Values++
				}
			}
			if depth == 0 {
				break
			}
		}
	}
	for i := start; i < end && !s.HasDefault; i++ {
		s.HasDefault = p.wordsAt(i, "DEFAULT")
	}
	s.Query = p.span(start, end)
	p.i = len(p.tokens)
	return nil
}

// refuseInsertTail refuses what PostgreSQL has behind the query of an INSERT.
func (p *parser) refuseInsertTail(start, end int) error {
	i := p.top(start, end, func(i int) bool {
		if p.wordsAt(i-1, "AS") || p.symbolAt(i-1, ".") {
			return false
		}
		return p.wordsAt(i, "RETURNING") || p.wordsAt(i, "DO", "NOTHING") || p.wordsAt(i, "DO", "UPDATE")
	})
	switch {
	case i < 0:
		return nil
	case p.wordsAt(i, "RETURNING"):
		return p.unsupported(i, "RETURNING in this INSERT", "SELECT the rows afterwards, in the same transaction.")
	}
	for i > start && !p.wordsAt(i, "ON", "CONFLICT") {
		i--
	}
	return p.unsupported(i, "ON CONFLICT in this INSERT",
		"REPLACE USING (columns) replaces the rows that have the same key.")
}
