package rewrite

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

// translateType edits the type name at i.
func (t *tokenText) translateType(i int) {
	name := typeNames[t.word(i)]
	if name == "" || t.punctuation(i+1, ".") || t.word(i+1) == "precision" {
		return
	}
	t.replace(i, i+1, name)
}

// translateCast edits the type in the brackets of CAST, which open at i.
func (t *tokenText) translateCast(i int) {
	for k := i + 1; k < t.partner[i]; k = t.skip(k) {
		if t.word(k) == "as" {
			t.translateType(k + 1)
		}
	}
}
