package rewrite

import "strings"

const refreshForm = "REFRESH [STREAMING] TABLE name [FULL | WHERE predicate] [SYNC | ASYNC]"

// refresh reads REFRESH [STREAMING] TABLE name and its options.
func (p *parser) refresh() (Statement, error) {
	p.form = refreshForm
	s := &Refresh{Text: p.statementText()}
	if err := p.refreshInto(s); err != nil {
		return nil, err
	}
	return s, nil
}

// refreshInto reads a REFRESH, which begins at the next token.
func (p *parser) refreshInto(s *Refresh) error {
	p.i++ // REFRESH
	p.accept("STREAMING")
	if !p.accept("TABLE") {
		return p.expected(p.i, "[STREAMING] TABLE")
	}
	var err error
	if s.Target, err = p.tableName(); err != nil {
		return err
	}
	var options refreshOptions
	for !p.atEnd() {
		if p.accept("WHERE") {
			if s.Where, err = p.refreshWhere(&options); err != nil {
				return err
			}
			break
		}
		if err := options.take(p, p.i); err != nil {
			return err
		}
		p.i++
	}
	if options.full && s.Where != nil {
		return p.unsupported(options.fullAt, "FULL together with WHERE", "FULL reloads the flow's own window and removes "+
			"every other row; WHERE replaces the rows that its predicate matches. Run the one you mean.")
	}
	s.Full, s.Async = options.full, options.async
	return nil
}

// refreshOptions are the words of a REFRESH behind its table.
type refreshOptions struct {
	full, sync, async bool
	fullAt            int
}

// take takes the option at token i.
func (o *refreshOptions) take(p *parser, i int) error {
	var option *bool
	switch {
	case p.wordsAt(i, "FULL"):
		option = &o.full
		o.fullAt = i
	case p.wordsAt(i, "SYNC"):
		option = &o.sync
	case p.wordsAt(i, "ASYNC"):
		option = &o.async
	default:
		return p.expected(i, "FULL, WHERE, SYNC, ASYNC or the end of the statement")
	}
	if *option {
		return p.syntaxError(i, `syntax error at or near "`+p.text(i)+`": the option is given twice`)
	}
	*option = true
	if o.sync && o.async {
		return p.syntaxError(i, `syntax error at or near "`+p.text(i)+`": SYNC and ASYNC exclude each other`)
	}
	return nil
}

// refreshWhere reads the predicate, the rest of the statement but for the
// options at its end: a last SYNC or ASYNC is always the option, never a
// column, and FULL cannot be one.
func (p *parser) refreshWhere(options *refreshOptions) (*Span, error) {
	start, end := p.i, len(p.tokens)
	for end > start && p.isOption(end-1) && !(end-1 > start && p.symbolAt(end-2, ".")) {
		end--
	}
	if end == start {
		return nil, p.expected(start, "a predicate")
	}
	if err := p.balanced(start, end); err != nil {
		return nil, err
	}
	if i := p.queryStart(start); i >= 0 {
		return nil, p.syntaxError(i, `syntax error at or near "`+p.text(i)+`": REFRESH takes a predicate, the query is the flow's`)
	}
	for i := end; i < len(p.tokens); i++ {
		if err := options.take(p, i); err != nil {
			return nil, err
		}
	}
	p.i = len(p.tokens)
	predicate := p.span(start, end)
	return &predicate, nil
}

func (p *parser) isOption(i int) bool {
	return p.wordsAt(i, "FULL") || p.wordsAt(i, "SYNC") || p.wordsAt(i, "ASYNC")
}

// refreshMaterializedView leaves PostgreSQL's own REFRESH MATERIALIZED VIEW
// alone and refuses what Databricks adds to it.
func (p *parser) refreshMaterializedView() error {
	p.i += 2 // REFRESH MATERIALIZED
	if !p.accept("VIEW") {
		return nil
	}
	p.accept("CONCURRENTLY")
	if _, err := p.tableName(); err != nil {
		return nil // Postgres says what is wrong with the name
	}
	for i := p.i; i < len(p.tokens); i++ {
		if p.isOption(i) || p.wordsAt(i, "WHERE") {
			return p.unsupported(i, "REFRESH MATERIALIZED VIEW with "+strings.ToUpper(p.text(i)),
				"A materialized view is always recomputed as a whole, and before the statement returns: "+
					"REFRESH MATERIALIZED VIEW name.")
		}
	}
	return nil
}
