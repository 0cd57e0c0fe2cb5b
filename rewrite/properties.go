package rewrite

import (
	"maps"
	"slices"
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

// ownPrefix begins rwproxy's own properties. A misspelt one would silently do
// nothing, so unknown ones are refused.
const ownPrefix = "rwproxy."

// dialectProperty says whose meaning the flow's text has.
const dialectProperty = "rwproxy.dialect"

// The table properties that say how a refresh is to be done, and their values:
// the first one is the default.
const (
	// PolicyProperty says whether a refresh may be incremental.
	PolicyProperty    = "rwproxy.refresh_policy"
	PolicyAuto        = "auto"        // when it is proved to be exact and costs less
	PolicyIncremental = "incremental" // always: it fails rather than recompute the window
	PolicyFull        = "full"        // never

	// ApplyProperty says how a refresh writes its rows.
	ApplyProperty     = "rwproxy.apply"
	ApplyAuto         = "auto"          // the way that writes less
	ApplyDeleteInsert = "delete_insert" // every row of the window is deleted, then inserted
	ApplyDiff         = "diff"          // only the rows that differ are
)

// ownProperties are rwproxy's own properties and the values they take.
var ownProperties = map[string][]string{
	dialectProperty: {Postgres.String(), Databricks.String()},
	PolicyProperty:  {PolicyAuto, PolicyIncremental, PolicyFull},
	ApplyProperty:   {ApplyAuto, ApplyDeleteInsert, ApplyDiff},
}

// readProperties reads TBLPROPERTIES ( key [=] value [, …] ).
func readProperties(p *parser, s *CreateStreamingTable) error {
	p.i++
	properties, notices, err := p.properties()
	s.Properties = properties
	s.Notices = append(s.Notices, notices...)
	return err
}

// properties reads ( key [=] value [, …] ). The notices say which of them have
// no effect.
func (p *parser) properties() (properties map[string]string, notices []*pgdiag.Diagnostic, err error) {
	if err := p.expectSymbol("("); err != nil {
		return nil, nil, err
	}
	properties = map[string]string{}
	for {
		notice, err := p.property(properties)
		if err != nil {
			return nil, nil, err
		}
		if notice != nil {
			notices = append(notices, notice)
		}
		if !p.acceptSymbol(",") {
			break
		}
	}
	if !p.acceptSymbol(")") {
		return nil, nil, p.expected(p.i, `"," or ")"`)
	}
	return properties, notices, nil
}

// property reads one property into properties.
func (p *parser) property(properties map[string]string) (notice *pgdiag.Diagnostic, err error) {
	at := p.i
	key, err := p.foldedPropertyKey()
	if err != nil {
		return nil, err
	}
	valueAt := p.i
	if p.symbolAt(p.i, "=") {
		valueAt++
	}
	value, err := p.propertyValue()
	if err != nil {
		return nil, err
	}
	if _, twice := properties[key]; twice {
		return nil, p.errorAt(at, syntaxErrorCode, `table property "`+excerpt(key)+`" is given twice`, "DUPLICATE_KEY", "")
	}
	switch {
	case key == resetAllowed:
		if value, err = p.oneOf(valueAt, key, value, []string{"true", "false"}); err != nil {
			return nil, err
		}
	case key == channel:
		notice = p.noEffect(at, key, "NOTICE")
	case strings.HasPrefix(key, pipelinesPrefix):
		return p.noEffect(at, key, "WARNING"), nil
	case strings.HasPrefix(key, ownPrefix):
		values, known := ownProperties[key]
		if !known {
			return nil, p.errorAt(at, invalidParameterCode, `unrecognized table property "`+excerpt(key)+`"`, "",
				"The ones that rwproxy has are: "+strings.Join(slices.Sorted(maps.Keys(ownProperties)), ", ")+".")
		}
		if value, err = p.oneOf(valueAt, key, value, values); err != nil {
			return nil, err
		}
	}
	properties[key] = value
	return notice, nil
}

// oneOf returns the one of values that the value at token i is, without regard
// to case.
func (p *parser) oneOf(i int, key, value string, values []string) (string, error) {
	if folded := foldASCII(value); slices.Contains(values, folded) {
		return folded, nil
	}
	return "", p.errorAt(i, invalidParameterCode,
		"could not parse value '"+excerpt(foldASCII(value))+"' for table property '"+key+"'", "",
		"The value is "+strings.Join(values, " or ")+".")
}

// foldedPropertyKey reads a key. Those of the engine are compared without case.
func (p *parser) foldedPropertyKey() (string, error) {
	key, err := p.propertyKey()
	if folded := foldASCII(key); strings.HasPrefix(folded, pipelinesPrefix) || strings.HasPrefix(folded, ownPrefix) {
		return folded, err
	}
	return key, err
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
