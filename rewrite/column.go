package rewrite

import "strings"

// tableSpecification reads ( column or constraint [, …] ), which may be
// missing.
func (p *parser) tableSpecification(s *CreateStreamingTable) error {
	open := p.i
	if !p.acceptSymbol("(") {
		return nil
	}
	end := p.closing(open)
	if end < 0 {
		return p.balanced(open, len(p.tokens))
	}
	if err := p.balanced(open, end+1); err != nil {
		return err
	}
	for {
		element := p.top(p.i, end+1, func(i int) bool { return p.symbolAt(i, ",") || p.symbolAt(i, ")") })
		if err := p.tableElement(s, element); err != nil {
			return err
		}
		p.i = element + 1
		if element == end {
			return nil
		}
	}
}

// tableElement reads a column or a table constraint, up to token end.
func (p *parser) tableElement(s *CreateStreamingTable, end int) error {
	switch {
	case p.isExpectation(p.i):
		return p.refuseExpectation(p.i)
	case p.wordsAt(p.i, "LIKE"):
		return p.unsupported(p.i, "LIKE in the columns of a streaming table", "Name the columns, or leave them to the query.")
	case p.wordsAt(p.i, "CONSTRAINT"), p.wordsAt(p.i, "CHECK"), p.wordsAt(p.i, "UNIQUE"),
		p.wordsAt(p.i, "PRIMARY", "KEY"), p.wordsAt(p.i, "FOREIGN", "KEY"),
		p.wordsAt(p.i, "EXCLUDE", "USING"), p.wordsAt(p.i, "EXCLUDE") && p.symbolAt(p.i+1, "("):
		s.Constraints = append(s.Constraints, p.span(p.i, end))
		return nil
	}
	column, err := p.column(end)
	s.Columns = append(s.Columns, column)
	return err
}

// isExpectation reports that token i begins CONSTRAINT name EXPECT.
func (p *parser) isExpectation(i int) bool {
	return p.wordsAt(i, "CONSTRAINT") && p.wordsAt(i+2, "EXPECT")
}

func (p *parser) refuseExpectation(i int) error {
	return p.unsupported(i, "an expectation on a table with a REPLACE WHERE flow",
		"Use a CHECK constraint, or a WHERE clause in the flow's query.")
}

// columnProperties are the words that can follow a column's type.
var columnProperties = []string{
	"NOT", "NULL", "COMMENT", "DEFAULT", "CONSTRAINT", "CHECK", "PRIMARY", "UNIQUE", "REFERENCES",
	"GENERATED", "MASK", "COLLATE", "STORAGE", "COMPRESSION", "DEFERRABLE", "INITIALLY",
}

// column reads name type [property …], up to token end.
func (p *parser) column(end int) (ColumnDef, error) {
	column := ColumnDef{}
	if p.i < end {
		column.Offset = p.tokens[p.i].Start
	}
	var err error
	if column.Name, err = p.identifier("a column name", true); err != nil {
		return column, err
	}
	properties := p.top(p.i, end, func(i int) bool {
		return p.kindAt(i, Word) && isAnyKeyword(p.text(i), columnProperties...)
	})
	if properties < 0 {
		properties = end
	}
	if p.i < properties {
		column.Written = p.span(p.i, properties)
	}
	if column.Type, err = p.columnType(p.i, properties); err != nil {
		return column, err
	}
	return column, p.columnProperties(&column, properties, end)
}

// columnProperties takes the COMMENT out of the tokens from start to end and
// refuses what PostgreSQL does not have.
func (p *parser) columnProperties(column *ColumnDef, start, end int) error {
	if start == end {
		return nil
	}
	column.Rest = p.span(start, end)
	defer func() { column.Rest = column.Rest.trimmed() }()
	for p.i = start; p.i < end; {
		at := p.top(p.i, end, func(i int) bool {
			return p.isExpectation(i) || p.kindAt(i, Word) && isAnyKeyword(p.text(i), "COMMENT", "GENERATED", "MASK")
		})
		switch {
		case at < 0:
			p.i = end
		case p.isExpectation(at):
			return p.refuseExpectation(at)
		case p.wordsAt(at, "GENERATED"):
			return p.unsupported(at, "a GENERATED column of a streaming table", "Compute the column in the flow's query.")
		case p.wordsAt(at, "MASK"):
			return p.unsupported(at, "a column MASK", "Use column privileges, or a view over the table.")
		default:
			if err := p.columnComment(column, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// columnComment reads the COMMENT at token i and blanks it in the column's
// other properties, which keep their positions.
func (p *parser) columnComment(column *ColumnDef, i int) error {
	p.i = i + 1
	if p.symbolAt(p.i, "(") { // a function of that name
		return p.skipGroup()
	}
	if column.Comment != nil {
		return p.syntaxError(i, `syntax error at or near "`+p.text(i)+`": the column has two comments`)
	}
	comment, err := p.stringValue("the comment as a string")
	if err != nil {
		return err
	}
	column.Comment = &comment
	from, to := p.tokens[i].Start-column.Rest.Offset, p.tokens[p.i-1].End-column.Rest.Offset
	rest := column.Rest.Text
	rest = rest[:from] + strings.Repeat(" ", to-from) + rest[to:]
	column.Rest.Text = rest
	return nil
}
