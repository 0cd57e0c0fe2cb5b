package rewrite

// databricksTypeNames are types that the two call alike and mean otherwise.
var databricksTypeNames = map[string]string{
	"float": "real", "timestamp": "timestamp with time zone",
	"decimal": "numeric(10,0)", "dec": "numeric(10,0)", "numeric": "numeric(10,0)",
}

// DatabricksColumnType returns the PostgreSQL type of a declared column. typ is
// what the statement's grammar made of what was written. Locate makes the
// positions of its errors exact.
func DatabricksColumnType(written Span, typ string) (string, error) {
	w, err := newTokenText(written, Lexical{Dialect: Databricks})
	if err != nil {
		return "", err
	}
	for i := range w.tokens {
		if isTinyint[w.word(i)] {
			return "", w.refuseTinyint(i)
		}
	}
	return DatabricksType(typ), nil
}

// DatabricksType returns the type of PostgreSQL's that Databricks calls typ.
func DatabricksType(typ string) string {
	t, err := newTokenText(Span{Text: typ}, Lexical{Dialect: Databricks})
	if err != nil || len(t.tokens) == 0 {
		return typ
	}
	if name := t.databricksType(0); name != "" && (len(t.tokens) == 1 || t.punctuation(1, "[")) {
		t.replace(0, 1, name)
	}
	return t.translation().SQL
}

// castFunctions are what a cast to a type calls.
var castFunctions = map[string]string{
	"smallint": "to_smallint", "short": "to_smallint",
	"int": "to_integer", "integer": "to_integer", "bigint": "to_bigint", "long": "to_bigint",
	"float": "to_float", "real": "to_float", "double": "to_double",
	"decimal": "to_decimal", "dec": "to_decimal", "numeric": "to_decimal",
	"boolean": "to_boolean", "string": "string", "text": "string", "binary": "to_binary",
	"timestamp": "to_timestamp", "timestamp_ltz": "to_timestamp", "timestamp_ntz": "to_timestamp_ntz",
}

// castTo returns what stands in front of and behind the operand of a cast to
// the type in r.
func (t *tokenText) castTo(r tokenRange) (before, after string, err error) {
	name := t.word(r.from)
	function := castFunctions[name]
	isDecimal := function == "to_decimal"
	switch {
	case isTinyint[name]:
		return "", "", t.refuseTinyint(r.from)
	case t.isUnsupportedType(r.from):
		return "", "", t.refuseType(r.from)
	case name == "date" && r.to == r.from+1:
		return "rwproxy_compat.to_date(", ")", nil
	case name == "double" && t.word(r.from+1) == "precision":
		r.from++
	case isDecimal && t.punctuation(r.from+1, "(") && t.skip(r.from+1) == r.to && t.isPrecision(r.from+2, r.to-1):
		return databricksPrefix + "to_decimal(", ")::numeric" + t.sql[t.tokens[r.from+1].Start:t.tokens[r.to-1].End], nil
	case isDecimal && r.to == r.from+1:
		return databricksPrefix + "to_decimal(", ")::numeric(10,0)", nil
	}
	if function == "" || r.to != r.from+1 {
		return "", "", t.unsupported(r.from, "a cast to this type under the dialect of Databricks",
			"Cast to BOOLEAN, a number, STRING, BINARY, DATE or TIMESTAMP, or set rwproxy.dialect to postgres.")
	}
	return databricksPrefix + function + "(", ")", nil
}

// isQualifiedType says that the type at i is named with its schema: it is
// PostgreSQL's, as Databricks has no such names.
func (t *tokenText) isQualifiedType(i int) bool { return t.punctuation(i+1, ".") }

// qualifiedTypeEnd returns the place after the type at i, whose names in
// backticks it translates.
func (t *tokenText) qualifiedTypeEnd(i int) int {
	end := t.typeEnd(i)
	for ; i < end; i++ {
		t.translateBacktick(i)
	}
	return end
}

// databricksCast translates CAST(x AS type).
func databricksCast(t *tokenText, c call) error {
	as := -1
	for k := c.open + 1; k < c.close; k = t.skip(k) {
		if t.word(k) == "as" {
			as = k
		}
	}
	if as <= c.open+1 || as+1 == c.close || t.isQualifiedType(as+1) {
		return nil
	}
	before, after, err := t.castTo(tokenRange{as + 1, c.close})
	if err != nil {
		return err
	}
	t.writeCast(c.at, tokenRange{c.at, c.close + 1}, tokenRange{c.open + 1, as}, before, after)
	return nil
}

// writeCast puts a cast's operand, with what castTo returned around it, in place
// of whole; at is the token that is wrong if the cast is.
func (t *tokenText) writeCast(at int, whole, operand tokenRange, before, after string) {
	if before == textFunction {
		t.asText(at, operand)
		before, after = "", ""
	}
	t.rebuild(whole, before, operand, after)
}

// isTinyint are the names of a type that PostgreSQL lacks: in its smallest one
// a sum that overflows a TINYINT is no error.
var isTinyint = wordSet("tinyint byte")

func (t *tokenText) refuseTinyint(i int) error {
	return t.unsupported(i, "the type TINYINT under the dialect of Databricks", "Use SMALLINT.")
}

// translateColonCast translates the cast whose :: is at i, and returns the
// place after its type.
func (t *tokenText) translateColonCast(i int) (next int, err error) {
	if t.word(i+1) == "pg_catalog" && t.punctuation(i+2, ".") {
		return t.qualifiedTypeEnd(i + 1), nil // PostgreSQL's own, beyond doubt
	}
	operand, ok := t.termAround(i)
	end := t.typeEnd(i + 1)
	if !ok || end == i+1 {
		return 0, t.syntaxErrorWithHint(i, "Use CAST(... AS ...).")
	}
	if t.isQualifiedType(i + 1) {
		return t.qualifiedTypeEnd(i + 1), nil
	}
	before, after, err := t.castTo(tokenRange{i + 1, end})
	if err != nil {
		return 0, err
	}
	if before == textFunction {
		t.asText(i, tokenRange{operand.primary, i})
		t.replaceBytes(t.tokens[i].Start, t.tokens[end-1].End, "")
		return end, nil
	}
	t.wrapInCall(i, tokenRange{operand.primary, end}, before, "")
	t.replace(i, end, after)
	return end, nil
}
