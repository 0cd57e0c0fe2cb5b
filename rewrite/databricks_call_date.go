package rewrite

import "strings"

// textToDate translates to_date with a format; without one it is a function of
// rwproxy_compat already.
func textToDate(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	return t.parseInFormat(c, "date")
}

func textToTimestamp(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		t.replace(c.at, c.at+1, databricksPrefix+"to_timestamp")
		return nil
	}
	return t.parseInFormat(c, "timestamp")
}

// textToSeconds translates unix_timestamp with a format.
func textToSeconds(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	return t.parseInFormat(c, "seconds")
}

// parseInFormat makes a call with a text and a date format one that reads the
// text only if it has the shape of the format.
func (t *tokenText) parseInFormat(c call, result string) error {
	r := c.arguments[1]
	if err := t.translateFormat(c.name, r, true); err != nil {
		return err
	}
	format, err := t.constantValue(r)
	if err != nil {
		return err
	}
	shape, fault := formatShape(format)
	if fault != "" {
		return t.unsupported(r.from, fault+" in the date format of "+c.name, "Give it a year, and let no number run into one without a fixed length.")
	}
	t.replace(c.at, c.at+1, databricksPrefix+"parse_"+result)
	t.insertBefore(c.close, ", "+QuoteLiteral(shape))
	return nil
}

// secondFields are the fields of EXTRACT with a fraction; the others are
// whole numbers.
var secondFields = wordSet("second seconds sec secs s")

// integerField translates EXTRACT(field FROM x).
func integerField(t *tokenText, c call) error {
	field, value := t.word(c.open+1), tokenRange{c.open + 3, c.close}
	if t.word(c.open+2) != "from" || value.empty() {
		return nil
	}
	return t.field(c, field, value)
}

// datePart translates date_part('field', x).
func datePart(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	if !t.isConstant(c.arguments[0]) {
		return t.unsupported(c.arguments[0].from, "date_part of a field that is not a constant", "Write the field as a string.")
	}
	field, err := t.constantValue(c.arguments[0])
	if err != nil {
		return err
	}
	return t.field(c, foldASCII(field), c.arguments[1])
}

func (t *tokenText) field(c call, field string, value tokenRange) error {
	whole := tokenRange{c.at, c.close + 1}
	if translated := extractFields[field]; translated != "" {
		field = translated
	}
	switch {
	case field == "dow", field == "dayofweek":
		t.rebuild(whole, "rwproxy_compat.dayofweek(", value, ")")
	case secondFields[field]:
		t.rebuild(whole, "extract(second FROM "+databricksPrefix+"moment(", value, "))")
	case strings.Trim(field, "abcdefghijklmnopqrstuvwxyz") != "" || field == "":
		return t.unsupported(c.at, "this field of a date", "Use YEAR, QUARTER, MONTH, WEEK, DAY, DAYOFWEEK, DOY, HOUR, MINUTE or SECOND.")
	default:
		t.rebuild(whole, "(extract("+field+" FROM "+databricksPrefix+"moment(", value, "))::integer)")
	}
	return nil
}
