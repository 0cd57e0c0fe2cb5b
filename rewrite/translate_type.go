package rewrite

import "strings"

// typeNames are Databricks types that PostgreSQL does not have. Those it has
// (DECIMAL, TIMESTAMP, FLOAT) keep PostgreSQL's meaning.
var typeNames = map[string]string{
	"string":        "text",
	"tinyint":       "smallint",
	"byte":          "smallint",
	"short":         "smallint",
	"long":          "bigint",
	"double":        "double precision",
	"binary":        "bytea",
	"timestamp_ntz": "timestamp without time zone",
	"timestamp_ltz": "timestamp with time zone",
}

// unsupportedTypes are Databricks types that PostgreSQL has nothing for.
var unsupportedTypes = wordSet("map struct variant void")

// translateType edits the type name at i.
func (t *tokenText) translateType(i int) error {
	arrays := i
	for t.word(i) == "array" && t.operator(i+1, "<") {
		i += 2
	}
	switch {
	case t.isUnsupportedType(i):
		return t.refuseType(i)
	case arrays < i:
		return t.translateArrayType(arrays, i)
	}
	if name := t.databricksType(i); name != "" {
		t.replace(i, i+1, name)
	}
	return nil
}

// isUnsupportedType says whether a type is named at i that PostgreSQL has
// nothing for.
func (t *tokenText) isUnsupportedType(i int) bool {
	name := t.word(i)
	return unsupportedTypes[name] && (t.operator(i+1, "<") || name == "variant" || name == "void")
}

func (t *tokenText) refuseType(i int) error {
	return t.unsupported(i, "the type "+strings.ToUpper(t.word(i)), "Use jsonb.")
}

// databricksType returns PostgreSQL's name for the type name at i, "" if it is
// the same.
func (t *tokenText) databricksType(i int) string {
	name := typeNames[t.word(i)]
	if t.dialect == Databricks && databricksTypeNames[t.word(i)] != "" {
		name = databricksTypeNames[t.word(i)]
	}
	if t.punctuation(i+1, ".") || t.word(i+1) == "precision" {
		return ""
	}
	if w := t.word(i); t.dialect == Databricks && (w == "decimal" || w == "dec" || w == "numeric") && t.punctuation(i+1, "(") {
		return ""
	}
	return name
}

// translateArrayType makes ARRAY<type>, which begins at i and whose elements'
// type is at element, to type[].
func (t *tokenText) translateArrayType(i, element int) error {
	depth := (element - i) / 2
	end := element + 1
	if t.punctuation(end, "(") {
		end = t.skip(end)
	}
	closes := end
	for open := depth; open > 0; closes++ {
		text := t.text(closes)
		if !t.is(closes, Operator) || strings.Trim(text, ">") != "" || len(text) > open {
			return t.syntaxErrorWithHint(closes, "An ARRAY<...> ends with >.")
		}
		open -= len(text)
	}
	name := t.databricksType(element)
	if name == "" {
		name = t.text(element)
	}
	t.rebuild(tokenRange{i, closes}, name, tokenRange{element + 1, end}, strings.Repeat("[]", depth))
	return nil
}

// translateCast edits the type in the brackets of CAST, which open at i.
func (t *tokenText) translateCast(i int) error {
	for k := i + 1; k < t.partner[i]; k = t.skip(k) {
		if t.word(k) == "as" {
			return t.translateType(k + 1)
		}
	}
	return nil
}
