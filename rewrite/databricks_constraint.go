package rewrite

import "strings"

// constraintWords can follow the DEFAULT of a column.
var constraintWords = wordSet("not null constraint check primary unique references collate storage compression deferrable initially")

// DatabricksConstraints returns the properties of a declared column, or a
// constraint of a table, with their expressions translated: that of DEFAULT and
// those in the brackets of CHECK and WHERE. typ is the type of the column as
// PostgreSQL names it; its DEFAULT is what Databricks stores of the expression.
// Locate makes the positions of its errors exact.
func DatabricksConstraints(rest Span, typ string, c Catalog, o Lexical) (Translation, error) {
	t, err := newTokenText(rest, o)
	if err != nil {
		return Translation{}, err
	}
	for i := 0; i < len(t.tokens); i = t.skip(i) {
		expression, isDefault := tokenRange{}, t.word(i) == "default"
		switch {
		case isDefault && i+1 < len(t.tokens):
			expression = tokenRange{i + 1, t.skip(i + 1)}
			for expression.to < len(t.tokens) && !constraintWords[t.word(expression.to)] {
				expression.to = t.skip(expression.to)
			}
		case (t.word(i) == "check" || t.word(i) == "where") && t.punctuation(i+1, "(") && t.partner[i+1] > i+2:
			expression = tokenRange{i + 2, t.partner[i+1]}
		default:
			continue
		}
		translated, err := t.translateAlone(expression, c, typ, isDefault)
		if err != nil {
			return Translation{}, err
		}
		t.replace(expression.from, expression.to, translated)
	}
	return t.translation(), nil
}

// translateAlone translates the expression in r as a text of its own.
func (t *tokenText) translateAlone(r tokenRange, c Catalog, typ string, isDefault bool) (string, error) {
	start, end := t.tokens[r.from].Start, t.tokens[r.to-1].End
	e, err := newTokenText(Span{Text: t.sql[start:end], Offset: t.offset + start}, t.lexical)
	if err != nil {
		return "", err
	}
	if err := e.translateSpellings(c); err != nil {
		return "", err
	}
	whole := tokenRange{0, len(e.tokens)}
	name, _, _ := strings.Cut(foldASCII(typ), "(")
	switch {
	case !isDefault, e.isStoredAs(name):
	case name == "text":
		e.asText(0, whole)
	case storedTypes[name] != "":
		e.wrapInCall(0, whole, databricksPrefix+storedTypes[name]+"(", ")")
	}
	e.writeOtherTexts()
	e.fixBackslashes()
	translated, err := e.balancedTranslation()
	return translated.SQL, err
}

// isStoredAs says whether the text is a constant, or a call of storing's own
// function, that is stored in a column of the type as it is.
func (t *tokenText) isStoredAs(typ string) bool {
	n := len(t.tokens)
	isText := n == 1 || n == 5 && t.text(2) == "pg_catalog" && t.text(4) == "text" // 'x'::pg_catalog.text
	switch {
	case t.word(0) == "null":
		return n == 1 || t.punctuation(1, "::") && t.typeEnd(2) == n
	case t.is(0, String), t.is(0, QuotedIdentifier):
		return typ == "text" && isText
	case n == 1:
		return t.is(0, Number) && typ != "text" && strings.Trim(t.text(0), "0123456789") == ""
	}
	function := storedTypes[typ]
	if typ == "text" {
		function = "string"
	}
	return t.word(0) == compatSchema && t.punctuation(1, ".") && t.text(2) == "databricks_"+function &&
		t.punctuation(3, "(") && t.skip(3) == len(t.tokens)
}

// compatSchema holds the functions that a translation calls.
const compatSchema = "rwproxy_compat"

// ForDatabricks returns an expression, or a constraint, that PostgreSQL has
// printed, so that it means under the dialect of Databricks what PostgreSQL
// means by it: types have their schema, and strings no backslash of their own.
func ForDatabricks(printed string) string {
	t, err := newTokenText(Span{Text: printed}, Lexical{})
	if err != nil {
		return printed
	}
	for i := range t.tokens {
		if !t.punctuation(i, "::") || t.punctuation(i+2, ".") {
			continue
		}
		end := t.nameEnd(i + 1)
		if t.word(end) == "precision" || t.word(end) == "varying" {
			end++
		}
		if t.word(i+1) == "timestamp" || t.word(i+1) == "time" {
			end = t.typeEnd(i + 1)
		}
		if name := t.sql[t.tokens[i+1].Start:t.tokens[end-1].End]; builtinTypes[name] != "" {
			t.replace(i+1, end, "pg_catalog."+builtinTypes[name])
		}
	}
	t.fixBackslashes()
	return t.translation().SQL
}

// builtinTypes are the names of types in schema pg_catalog by those that
// PostgreSQL prints.
var builtinTypes = map[string]string{
	"smallint": "int2", "integer": "int4", "bigint": "int8", "numeric": "numeric", "real": "float4", "double precision": "float8",
	"text": "text", "character varying": "varchar", "bpchar": "bpchar", "boolean": "bool", "bytea": "bytea", "date": "date",
	"timestamp without time zone": "timestamp", "timestamp with time zone": "timestamptz", "interval": "interval",
	"uuid": "uuid", "json": "json", "jsonb": "jsonb", "regclass": "regclass",
}

// storedTypes are the functions that make a value what Databricks stores of it
// in a column of a type, where PostgreSQL rounds instead.
var storedTypes = map[string]string{
	"smallint": "to_smallint", "int2": "to_smallint", "int": "to_integer", "integer": "to_integer", "int4": "to_integer",
	"bigint": "to_bigint", "int8": "to_bigint", "numeric": "to_decimal", "decimal": "to_decimal", "dec": "to_decimal",
}
