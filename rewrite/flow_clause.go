package rewrite

// replaceWhere reads predicate BY NAME query, the end of the flow of CREATE
// STREAMING TABLE.
//
// The predicate ends at the first BY NAME outside parentheses. A query that
// begins before it (ORDER BY name holds the same two words) means that BY NAME
// is missing.
func (p *parser) replaceWhere() (*ReplaceWhere, error) {
	start, end := p.i, len(p.tokens)
	if p.wordsAt(start, "BY", "NAME") {
		return nil, p.expected(start, "a predicate before BY NAME")
	}
	byName := p.top(start, end, func(i int) bool { return p.wordsAt(i, "BY", "NAME") })
	query := p.queryStart(start)
	if byName < 0 || query >= 0 && query < byName {
		return nil, p.missingByName(start, query)
	}
	if err := p.balanced(start, byName); err != nil {
		return nil, err
	}
	return p.flow(start, byName, byName+2)
}

// missingByName returns the error for an inline flow without BY NAME; query is
// where its query begins, -1 if it has none. A bracket left open hides both,
// so it is the first thing to say.
func (p *parser) missingByName(start, query int) error {
	end := query
	if query < 0 {
		end = len(p.tokens)
	}
	if err := p.balanced(start, end); err != nil {
		return err
	}
	if query == start || start == len(p.tokens) {
		return p.expected(start, "a predicate")
	}
	return p.expected(end, "BY NAME between the predicate and the query")
}

// replaceWhereQuery reads predicate query, the end of CREATE FLOW, where
// nothing but the query's own first word separates the two.
func (p *parser) replaceWhereQuery() (*ReplaceWhere, error) {
	start, end := p.i, len(p.tokens)
	query := p.queryStart(start)
	if query >= 0 {
		end = query
	}
	if err := p.balanced(start, end); err != nil {
		return nil, err
	}
	if i := p.top(start, end, func(i int) bool { return p.wordsAt(i, "BY", "NAME") }); i >= 0 {
		return nil, p.syntaxError(i, `syntax error at or near "`+p.text(i)+`": in CREATE FLOW, BY NAME stands once, before REPLACE WHERE`)
	}
	switch {
	case end == start:
		return nil, p.expected(start, "a predicate")
	case query < 0:
		return nil, p.expected(end, "a query after the predicate")
	}
	return p.flow(start, query, query)
}

// flow checks the predicate from start to end and the query from there to the
// end of the statement.
func (p *parser) flow(start, end, query int) (*ReplaceWhere, error) {
	if !p.atQuery(query) {
		return nil, p.expected(query, "a query")
	}
	if err := p.misplacedClause(query); err != nil {
		return nil, err
	}
	if err := p.balanced(query, len(p.tokens)); err != nil {
		return nil, err
	}
	p.i = len(p.tokens)
	return &ReplaceWhere{Predicate: p.span(start, end), Query: p.span(query, len(p.tokens))}, nil
}

// atQuery reports that token i can begin a query.
func (p *parser) atQuery(i int) bool {
	for p.symbolAt(i, "(") {
		i++
	}
	return p.queryWordAt(i)
}

// queryWordAt reports that the word at token i begins a query wherever an
// expression may have ended. SELECT and TABLE are reserved; VALUES with a
// parenthesis is no column; WITH also occurs in the names of types (timestamp
// with time zone) and in IS JSON … WITH UNIQUE KEYS.
func (p *parser) queryWordAt(i int) bool {
	switch {
	case i > 0 && p.symbolAt(i-1, "."):
		return false
	case p.wordsAt(i, "SELECT"), p.wordsAt(i, "TABLE"):
		return true
	case p.wordsAt(i, "VALUES"):
		return p.symbolAt(i+1, "(")
	case p.wordsAt(i, "WITH"):
		return !p.wordsAt(i+1, "TIME", "ZONE") && !p.wordsAt(i+1, "UNIQUE")
	}
	return false
}

// queryStart returns where, behind a predicate that begins at start, a query
// begins; -1 if none does.
func (p *parser) queryStart(start int) int {
	return p.top(start, len(p.tokens), func(i int) bool {
		return p.queryWordAt(i) || i > start && p.symbolAt(i, "(") && p.groupIsQuery(i)
	})
}

// groupIsQuery reports that the parenthesis at token i begins a query and not
// a subquery of the predicate: behind the end of an expression, and followed
// by the end of the statement or by what only continues a query.
func (p *parser) groupIsQuery(i int) bool {
	if !p.atQuery(i) || !p.endsExpression(i-1) {
		return false
	}
	end := p.closing(i)
	if end < 0 || end+1 == len(p.tokens) {
		return end > 0
	}
	return p.kindAt(end+1, Word) && isAnyKeyword(p.text(end+1),
		"UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR")
}

// endsExpression reports that an expression can end with token i.
func (p *parser) endsExpression(i int) bool {
	switch p.tokens[i].Kind {
	case Operator:
		return false
	case Punctuation:
		return p.symbolAt(i, ")") || p.symbolAt(i, "]")
	case Word:
		if i > 0 && p.symbolAt(i-1, ".") {
			return true
		}
		return !inExpression[foldASCII(p.text(i))] && !(i > 0 && p.wordsAt(i-1, "TIME", "ZONE"))
	}
	return true
}

// inExpression are the words that an operand must follow.
var inExpression = wordSet(`all and any array asymmetric between case distinct else exists from ilike in is like not
	or overlaps row similar some symmetric then to when`)

// misplacedClause refuses, at its place, a table clause that follows the
// query: Postgres would point at a syntax error somewhere in the query.
func (p *parser) misplacedClause(query int) error {
	i := p.top(query, len(p.tokens), func(i int) bool {
		switch {
		case p.wordsAt(i, "PARTITIONED", "BY"):
			return true
		case p.wordsAt(i, "CLUSTER", "BY"):
			return p.symbolAt(i+2, "(") || p.wordsAt(i+2, "AUTO") || p.wordsAt(i+2, "NONE")
		case p.wordsAt(i, "COMMENT"):
			return i+2 == len(p.tokens) && p.kindAt(i+1, String) && p.endsExpression(i-1) && !reserved[foldASCII(p.text(i-1))]
		case p.wordsAt(i, "TBLPROPERTIES"):
			return p.symbolAt(i+1, "(") && p.kindAt(i+2, String)
		case p.wordsAt(i, "TRIGGER", "ON", "UPDATE"):
			return i+3 == len(p.tokens) || p.wordsAt(i+3, "AT", "MOST")
		case p.wordsAt(i, "SCHEDULE", "REFRESH", "EVERY"), p.wordsAt(i, "SCHEDULE", "REFRESH", "CRON"):
			return true
		case p.wordsAt(i, "SCHEDULE", "EVERY"):
			return p.kindAt(i+2, Number)
		case p.wordsAt(i, "SCHEDULE", "CRON"):
			return p.kindAt(i+2, String)
		}
		return false
	})
	if i < 0 {
		return nil
	}
	return p.syntaxError(i, `syntax error at or near "`+p.text(i)+`": a table clause stands before the flow, not after its query`)
}
