package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// resetAllowed is the table property that forbids a full refresh when it is
// false.
const resetAllowed = "pipelines.reset.allowed"

// channel is the table property that names a Databricks release channel. It is
// stored; any other property of theirs that rwproxy does not have is dropped.
const channel = "pipelines.channel"

// pipelinesPrefix begins the properties that belong to the engine; Databricks
// compares them without case.
const pipelinesPrefix = "pipelines."

// readProperties reads TBLPROPERTIES ( key [=] value [, …] ).
func readProperties(p *parser, s *CreateStreamingTable) error {
	p.i++
	if err := p.expectSymbol("("); err != nil {
		return err
	}
	s.Properties = map[string]string{}
	for {
		if err := p.property(s); err != nil {
			return err
		}
		if !p.acceptSymbol(",") {
			break
		}
	}
	if !p.acceptSymbol(")") {
		return p.expected(p.i, `"," or ")"`)
	}
	return nil
}

// property reads one property into s.
func (p *parser) property(s *CreateStreamingTable) error {
	at := p.i
	key, err := p.propertyKey()
	if err != nil {
		return err
	}
	valueAt := p.i
	if p.symbolAt(p.i, "=") {
		valueAt++
	}
	value, err := p.propertyValue()
	if err != nil {
		return err
	}
	if folded := foldASCII(key); strings.HasPrefix(folded, pipelinesPrefix) {
		key = folded
	}
	if _, twice := s.Properties[key]; twice {
		return p.errorAt(at, syntaxErrorCode, `table property "`+excerpt(key)+`" is given twice`, "DUPLICATE_KEY", "")
	}
	switch {
	case key == resetAllowed:
		value = foldASCII(value)
		if value != "true" && value != "false" {
			return p.errorAt(valueAt, invalidParameterCode,
				"could not parse value '"+excerpt(value)+"' for table property '"+key+"'", "", "The value is true or false.")
		}
	case key == channel:
		s.Notices = append(s.Notices, p.noEffect(at, key, "NOTICE"))
	case strings.HasPrefix(key, pipelinesPrefix):
		s.Notices = append(s.Notices, p.noEffect(at, key, "WARNING"))
		return nil
	}
	s.Properties[key] = value
	return nil
}

// noEffect says that a property changes nothing.
func (p *parser) noEffect(at int, key, severity string) *pgdiag.Diagnostic {
	code := "01000"
	if severity == "NOTICE" {
		code = "00000"
	}
	notice := p.errorAt(at, code, `table property "`+excerpt(key)+`" has no effect`, "",
		resetAllowed+" is the one pipelines property that rwproxy acts on.")
	notice.Severity = severity
	return notice
}

// propertyKey reads a string, or identifiers joined by dots, as typed.
func (p *parser) propertyKey() (string, error) {
	const what = "a property key"
	if p.atString() {
		at := p.i
		key, err := p.stringPiece()
		if err == nil && key == "" {
			return "", p.expected(at, what)
		}
		return key, err
	}
	var key strings.Builder
	for {
		switch {
		case p.kindAt(p.i, Word):
			key.WriteString(p.text(p.i))
		case p.kindAt(p.i, Backtick):
			key.WriteString(unquote(p.text(p.i), '`'))
		default:
			return "", p.expected(p.i, what)
		}
		p.i++
		if !p.acceptSymbol(".") {
			return key.String(), nil
		}
		key.WriteByte('.')
	}
}

// propertyValue reads [=] and a string, number, TRUE or FALSE. Only behind =
// are several strings one value: without it the first is the key.
func (p *parser) propertyValue() (string, error) {
	const what = "a value: a string, a number, TRUE or FALSE"
	equals := p.acceptSymbol("=")
	switch {
	case p.atString() && equals:
		return p.stringValue(what)
	case p.atString():
		return p.stringPiece()
	case p.kindAt(p.i, Number):
		p.i++
		return p.text(p.i - 1), nil
	case p.accept("TRUE"):
		return "true", nil
	case p.accept("FALSE"):
		return "false", nil
	}
	return "", p.expected(p.i, what)
}
