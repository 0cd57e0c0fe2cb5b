package rewrite

import "strings"

// columnType returns the type that the tokens from to end (exclusive) name, as
// PostgreSQL text.
func (p *parser) columnType(from, end int) (string, error) {
	arrays := 0
	for from+1 < end && p.wordsAt(from, "ARRAY") && p.symbolAt(from+1, "<") {
		arrays++
		from += 2
	}
	if p.wordsAt(from, "VARIANT") || (p.wordsAt(from, "MAP") || p.wordsAt(from, "STRUCT")) && p.symbolAt(from+1, "<") {
		return "", p.unsupported(from, "the type "+strings.ToUpper(p.text(from)), "Use jsonb.")
	}
	elementEnd := end
	if arrays > 0 {
		for elementEnd = from; elementEnd < end && p.text(elementEnd)[0] != '>'; {
			elementEnd++
		}
	}
	if from == elementEnd {
		return "", p.expected(from, "a type")
	}
	rest, err := p.closeArrays(elementEnd, end, arrays)
	if err != nil {
		return "", err
	}
	name := p.typeName(from, elementEnd) + strings.Repeat("[]", arrays)
	if rest < end {
		name += p.span(rest, end).Text
	}
	return name, nil
}

// closeArrays returns the token after the > of arrays, which begin at token i.
func (p *parser) closeArrays(i, end, arrays int) (int, error) {
	for arrays > 0 {
		closers := ""
		if i < end {
			closers = p.text(i)
		}
		if closers == "" || strings.Trim(closers, ">") != "" || len(closers) > arrays {
			return 0, p.expected(i, `">"`)
		}
		arrays -= len(closers)
		i++
	}
	return i, nil
}

// typeName translates the name that the tokens from to end are.
func (p *parser) typeName(from, end int) string {
	text := p.span(from, end).Text
	translated, ok := typeNames[foldASCII(p.text(from))]
	qualified := p.symbolAt(from+1, ".") || p.wordsAt(from+1, "PRECISION") // double precision is PostgreSQL's own
	if !ok || !p.kindAt(from, Word) || qualified && from+1 < end {
		return text
	}
	return translated + text[p.tokens[from].End-p.tokens[from].Start:]
}
