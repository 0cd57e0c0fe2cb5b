package console

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of a filter.
const (
	maxFilter     = 4096
	maxConditions = 20
	maxValues     = 100
)

// condition is one comparison of a filter. All conditions of a filter must be
// true.
type condition struct {
	field    string
	operator string // =, <, <=, >, >=, in or like
	values   []string
}

// filterField is what a filter may say of a field.
type filterField struct {
	operators []string
	check     func(value string) error // nil if every value will do
}

// parseFilter reads a filter: comparisons of fields with literals in single
// quotes, joined with AND. "" is no condition. An error says what is wrong, and
// where.
func parseFilter(text string, fields map[string]filterField) ([]condition, error) {
	if len(text) > maxFilter {
		return nil, invalid(fmt.Sprintf("filter: longer than %d bytes", maxFilter))
	}
	p := &filterParser{text: text, fields: fields}
	if p.next(); p.kind == 0 && p.err == nil {
		return nil, nil
	}
	var conditions []condition
	for {
		c, err := p.condition()
		if err != nil {
			return nil, err
		}
		if conditions = append(conditions, c); len(conditions) > maxConditions {
			return nil, invalid(fmt.Sprintf("filter: more than %d conditions", maxConditions))
		}
		switch {
		case p.kind == 0 && p.err == nil:
			return conditions, nil
		case !p.word("and"):
			return nil, p.expected("AND or the end")
		}
		p.next()
	}
}

// filterParser is a lexer with the token that comes next.
type filterParser struct {
	text   string
	fields map[string]filterField

	offset int // of what follows the token, in bytes
	start  int // of the token
	// kind is 'w' for a word, 's' for a string, the first character of an
	// operator, parenthesis or comma, 0 at the end.
	kind  byte
	value string
	err   error // of the lexer
}

func (p *filterParser) next() {
	for p.offset < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.offset]) >= 0 {
		p.offset++
	}
	p.start, p.kind, p.value = p.offset, 0, ""
	if p.offset == len(p.text) {
		return
	}
	switch c := p.text[p.offset]; {
	case isWord(c):
		for p.offset < len(p.text) && isWord(p.text[p.offset]) {
			p.offset++
		}
		p.kind, p.value = 'w', p.text[p.start:p.offset]
	case c == '\'':
		p.literal()
	case strings.IndexByte("=(),", c) >= 0:
		p.offset++
		p.kind, p.value = c, string(c)
	case c == '<' || c == '>':
		p.offset++
		if p.offset < len(p.text) && p.text[p.offset] == '=' {
			p.offset++
		}
		p.kind, p.value = c, p.text[p.start:p.offset]
	default:
		p.err = p.expected("a field, an operator or a value in single quotes")
	}
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// literal reads a string, in which two quotes are one.
func (p *filterParser) literal() {
	var value strings.Builder
	for p.offset++; ; {
		length := strings.IndexByte(p.text[p.offset:], '\'')
		if length < 0 {
			p.err = invalid(fmt.Sprintf("filter: the quote at character %d is not closed", p.position()))
			return
		}
		value.WriteString(p.text[p.offset : p.offset+length])
		p.offset += length + 1
		if p.offset == len(p.text) || p.text[p.offset] != '\'' {
			break
		}
		value.WriteByte('\'')
		p.offset++
	}
	p.kind, p.value = 's', value.String()
}

// position is that of the token, in characters from 1.
func (p *filterParser) position() int {
	return len([]rune(p.text[:p.start])) + 1
}

func (p *filterParser) expected(what string) error {
	if p.err != nil {
		return p.err
	}
	return invalid(fmt.Sprintf("filter: expected %s at character %d", what, p.position()))
}

func (p *filterParser) word(keyword string) bool {
	return p.kind == 'w' && strings.EqualFold(p.value, keyword)
}

func (p *filterParser) condition() (condition, error) {
	if p.kind != 'w' {
		return condition{}, p.expected("the name of a field")
	}
	c := condition{field: strings.ToLower(p.value)}
	field, known := p.fields[c.field]
	if !known {
		return c, p.expected("one of the fields " + strings.Join(slices.Sorted(maps.Keys(p.fields)), ", "))
	}
	p.next()
	c.operator = strings.ToLower(p.value)
	if p.kind == 0 || p.kind == 's' || !slices.Contains(field.operators, c.operator) {
		return c, p.expected("one of the operators " + strings.ToUpper(strings.Join(field.operators, ", ")))
	}
	p.next()
	err := p.values(&c, field)
	return c, err
}

// values reads what stands right of the operator.
func (p *filterParser) values(c *condition, field filterField) error {
	list := c.operator == "in"
	if list {
		if p.kind != '(' {
			return p.expected("a list in parentheses")
		}
		p.next()
	}
	for {
		if p.kind != 's' {
			return p.expected("a value in single quotes")
		}
		if field.check != nil {
			if err := field.check(p.value); err != nil {
				return invalid(fmt.Sprintf("filter: the value at character %d is not %s", p.position(), err))
			}
		}
		if strings.IndexByte(p.value, 0) >= 0 {
			return p.expected("a value without NUL")
		}
		c.values = append(c.values, p.value)
		p.next()
		switch {
		case !list:
			return p.err
		case p.kind == ',' && len(c.values) < maxValues:
			p.next()
		case p.kind == ')':
			p.next()
			return p.err
		default:
			return p.expected(fmt.Sprintf("a comma and at most %d values, or a closing parenthesis", maxValues))
		}
	}
}

// parseTime reads a time as RFC 3339 has it; without a zone it is UTC, and a
// space may stand for the T.
func parseTime(value string) (time.Time, error) {
	value = strings.Replace(value, " ", "T", 1)
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", time.DateOnly} {
		if t, err := time.Parse(layout, value); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("a time such as %s", strconv.Quote("2024-05-01T12:00:00.000Z"))
}
