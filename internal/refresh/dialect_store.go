package refresh

import (
	"context"
	_ "embed" // SQL files
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/rewrite"
)

// The types, by their names in format_type, between which the two store a value
// otherwise.
var (
	wholeTypes    = map[string]bool{"smallint": true, "integer": true, "bigint": true}
	floatingTypes = map[string]bool{"real": true, "double precision": true}
	textTypes     = map[string]bool{"text": true, "character varying": true, "character": true}
	// writtenTypes have one text in Databricks, which databricks_string makes.
	writtenTypes = map[string]bool{
		"smallint": true, "integer": true, "bigint": true, "boolean": true, "uuid": true,
		"date": true, "timestamp without time zone": true, "timestamp with time zone": true,
	}
)

// storeFunction returns the function that makes a value of column from what
// Databricks stores of it in column to, "" if PostgreSQL stores the same: there
// a fraction is cut off in a column of whole numbers, where PostgreSQL rounds.
func storeFunction(from, to column, dialect rewrite.Dialect) (string, error) {
	const function = compatSchema + ".databricks_"
	if dialect != rewrite.Databricks || from.base == to.base {
		return "", nil
	}
	hasFraction := floatingTypes[from.base] || from.base == "numeric"
	switch {
	case wholeTypes[to.base] && hasFraction:
		return function + "to_" + to.base, nil
	case to.base == "numeric" && floatingTypes[from.base]:
		return function + "to_decimal", nil
	case textTypes[to.base] && writtenTypes[from.base]:
		return function + "string", nil
	case textTypes[to.base] && from.base == "numeric" && strings.Contains(from.typ, "("):
		return "", nil
	case textTypes[to.base] && (hasFraction || from.base == "interval" || strings.HasSuffix(from.base, "[]")),
		strings.HasSuffix(to.base, "[]") && strings.HasSuffix(from.base, "[]") && differentElements(from.base, to.base):
		return "", pgdiag.New("0A000", "storing "+from.typ+" as "+to.typ+" in column "+strconv.Quote(to.name)+
			" is not supported with rwproxy.dialect = 'databricks'").
			WithDetail("UNSUPPORTED_FEATURE").
			WithHint("Cast the value in the query, a number that becomes a text to DECIMAL(p, s) first.")
	}
	return "", nil
}

// differentElements says whether storeFunction would convert the elements.
func differentElements(from, to string) bool {
	function, err := storeFunction(column{base: strings.TrimSuffix(from, "[]")}, column{base: strings.TrimSuffix(to, "[]")}, rewrite.Databricks)
	return function != "" || err != nil
}

//go:embed base_types.sql
var baseTypesSQL string

// typesOf returns columns with the types of a description.
func typesOf(ctx context.Context, s pgsession.Session, description pgsession.Description) ([]column, error) {
	oids, modifiers := make([]string, len(description.Columns)), make([]string, len(description.Columns))
	for i, c := range description.Columns {
		oids[i] = strconv.FormatUint(uint64(c.TypeOID), 10)
		modifiers[i] = strconv.FormatInt(int64(c.TypeModifier), 10)
	}
	rows, err := s.Query(ctx, baseTypesSQL, oids, modifiers)
	if err != nil {
		return nil, err
	}
	columns := make([]column, len(rows))
	for i, r := range rows {
		columns[i] = column{name: description.Columns[i].Name, typ: r[0].Text, base: r[1].Text}
	}
	return columns, nil
}

// storeInDialect has the rows kept with the query's own types where the dialect
// stores other values than PostgreSQL would.
func (i *insertion) storeInDialect(ctx context.Context) error {
	if i.settings.lexical.Dialect != rewrite.Databricks {
		return nil
	}
	source := i.sql
	if i.statement.HasDefault {
		source.Query = rewrite.WithoutDefaults(source.Query.SQL, rewrite.Lexical{BackslashEscapes: i.settings.lexical.BackslashEscapes})
	}
	types, err := i.types(ctx, source.Source())
	if err != nil {
		return err
	}
	for n := range i.sql.Columns {
		c := &i.sql.Columns[n]
		to, _ := i.target.column(c.Name)
		if c.Computed {
			continue
		}
		function, err := storeFunction(types[n], to, rewrite.Databricks)
		if err != nil {
			return i.atQuery(err)
		}
		if function != "" {
			c.Function, c.Kept, c.Type = function, types[n].typ, to.castType
		}
	}
	for n := range i.sql.Constants {
		c := &i.sql.Constants[n]
		value, err := i.types(ctx, c.Bare())
		if err != nil {
			return err
		}
		to, _ := i.target.column(c.Name)
		if c.Function, err = storeFunction(value[0], to, rewrite.Databricks); err != nil {
			return i.atQuery(err)
		}
	}
	return nil
}

func (i *insertion) types(ctx context.Context, query rewrite.Translation) ([]column, error) {
	description, err := i.client.Describe(ctx, query.SQL)
	if err != nil {
		return nil, relocate(err, i.statement.Text, query, 0)
	}
	return typesOf(ctx, i.client, description)
}

func (i *insertion) atQuery(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		d.Position = rewrite.CharPosition(i.statement.Text, i.statement.Query.Offset)
	})
}
