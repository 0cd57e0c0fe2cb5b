package rewrite

import "strings"

const dropForm = "DROP STREAMING TABLE [IF EXISTS] name [, ...] [CASCADE | RESTRICT]"

// parseDropTable reads DROP TABLE. What it cannot read Postgres is to refuse.
func parseDropTable(sql string, o Lexical) (Statement, error) {
	p, err := newParser(sql, o)
	if err != nil {
		return nil, nil
	}
	p.i = 2 // DROP TABLE
	if statement, err := p.drop(); err == nil {
		return statement, nil
	}
	return nil, nil
}

// dropStreamingTable reads DROP STREAMING TABLE.
func (p *parser) dropStreamingTable() (Statement, error) {
	p.form = dropForm
	p.i = 2 // DROP STREAMING
	if err := p.expect("TABLE"); err != nil {
		return nil, err
	}
	return p.drop()
}

// drop reads what follows TABLE.
func (p *parser) drop() (Statement, error) {
	s := &Drop{Text: p.statementText()}
	if p.accept("IF") {
		if err := p.expect("EXISTS"); err != nil {
			return nil, err
		}
	}
	for {
		name, err := p.tableName()
		if err != nil {
			return nil, err
		}
		s.Targets = append(s.Targets, name)
		if !p.acceptSymbol(",") {
			break
		}
	}
	if s.Cascade = p.accept("CASCADE"); !s.Cascade {
		p.accept("RESTRICT")
	}
	if !p.atEnd() {
		return nil, p.expected(p.i, `",", CASCADE, RESTRICT or the end of the statement`)
	}
	s.Native = p.nativeDrop()
	return s, nil
}

// nativeDrop returns the statement as Postgres reads it. STREAMING becomes
// blanks, so that the positions Postgres reports are those of the statement as
// typed.
func (p *parser) nativeDrop() string {
	var native strings.Builder
	copied := 0
	for i, token := range p.tokens {
		replacement := p.text(i)
		switch {
		case i == 1 && p.wordsAt(i, "STREAMING"):
			replacement = strings.Repeat(" ", len(replacement))
		case token.Kind == Backtick:
			replacement = `"` + strings.ReplaceAll(backtickName(replacement), `"`, `""`) + `"`
		}
		native.WriteString(p.sql[copied:token.Start] + replacement)
		copied = token.End
	}
	return native.String()
}
