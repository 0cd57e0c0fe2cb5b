package rewrite

// EventLog is a statement of Postgres's that reads event_log(TABLE(name)),
// which is no PostgreSQL: TABLE cannot begin an argument. Only if each of the
// tables is a streaming table is it a statement of ours.
type EventLog struct {
	Text    string
	Targets []Name
	// Native is the statement with rwproxy.event_log(…) instead.
	Native Translation
}

// Tag implements Statement.
func (*EventLog) Tag() string { return "SELECT" }

// Shadow implements Statement.
func (e *EventLog) Shadow() string { return e.Native.SQL }

// parseEventLog looks for event_log(TABLE(name)) in a statement of Postgres's.
// It returns nil if there is none.
func parseEventLog(sql string, o Lexical) (Statement, error) {
	if !containsFolded(sql, "event_log") {
		return nil, nil
	}
	p, err := newParser(sql, o)
	if err != nil {
		return nil, nil // Postgres is to refuse it
	}
	s := &EventLog{Text: p.statementText()}
	var edits []edit
	for i := range p.tokens {
		if !p.eventLogAt(i) {
			continue
		}
		p.i = i + 4
		name, err := p.tableName()
		if err != nil || !p.symbolAt(p.i, ")") || !p.symbolAt(p.i+1, ")") {
			continue
		}
		s.Targets = append(s.Targets, name)
		edits = append(edits, edit{
			start: p.tokens[i].Start, end: p.tokens[p.i+1].End, order: replacing,
			replacement: "rwproxy.event_log(" + name.regclass() + ")",
		})
	}
	if len(s.Targets) == 0 {
		return nil, nil
	}
	var b translationBuilder
	b.edited(s.Text, 0, edits, 0, len(s.Text))
	s.Native = b.translation()
	return s, nil
}

// eventLogAt reports that event_log ( TABLE ( stands at token i.
func (p *parser) eventLogAt(i int) bool {
	return p.wordsAt(i, "EVENT_LOG") && p.symbolAt(i+1, "(") && p.wordsAt(i+2, "TABLE") && p.symbolAt(i+3, "(") &&
		!(i > 0 && p.symbolAt(i-1, "."))
}

// containsFolded reports that text holds word, which is in lower case, in any
// case.
func containsFolded(text, word string) bool {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && foldASCII(text[i:i+len(word)]) == word {
			return true
		}
	}
	return false
}
