package rewrite

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Overwrite is an Insert whose texts are translated and whose columns are
// known. It writes the statements that run it, in this order: the rows of the
// query are kept in a temporary table, the target's rows go, the kept ones are
// inserted.
//
// The temporary table has the types of the target's columns. So keeping a row
// coerces it as a plain INSERT would, and a condition sees the values that are
// going to be stored. Where a dialect stores other values a function makes them
// of those that are kept.
type Overwrite struct {
	Target      string // qualified and quoted
	Alias       string // of the target, "" without
	With, Query Translation
	Condition   Translation // of REPLACE ON
	SourceAlias string      // of the query, for REPLACE ON; "" without
	Columns     []OverwriteColumn
	Constants   []OverwriteConstant // of a PARTITION clause
	Kept        string              // the temporary table, qualified and quoted
}

// OverwriteColumn is a column of the query and the target's column it is for.
type OverwriteColumn struct {
	ColumnName        // of the target
	Source     string // the query's name for it
	Definition string // type and collation
	Default    string // what DEFAULT stands for, "" for NULL
	// Function makes a kept value what the dialect stores of it, cast to Type,
	// where that is not what PostgreSQL would store; then Kept is the type that
	// the value is kept with. Else they are "".
	Function, Kept, Type string
	// Computed says that the target alone makes its values; the query's can
	// only be DEFAULT.
	Computed bool
}

// OverwriteConstant is a column of the target with one value for all rows.
type OverwriteConstant struct {
	ColumnName
	Value Translation
	Type  string // that the value is cast to
	// Function is what makes the value one of Type where the dialect's cast is
	// another than PostgreSQL's, else "".
	Function string
}

// sourceAlias is what conditions of ours call the kept rows.
const sourceAlias = "rwproxy_source"

func keptColumn(i int) string { return "c" + strconv.Itoa(i+1) }

// stored is what is stored of column i of a kept row.
func (c OverwriteColumn) stored(i int) string {
	if c.Function == "" {
		return keptColumn(i)
	}
	return c.Function + "(" + keptColumn(i) + ")::" + c.Type
}

// Converts says whether a function makes some value what is stored.
func (o Overwrite) Converts() bool {
	return slices.ContainsFunc(o.Columns, func(c OverwriteColumn) bool { return c.Function != "" })
}

// Plain is the INSERT without what it replaces.
func (o Overwrite) Plain() Translation {
	names := make([]ColumnName, len(o.Columns))
	for i, c := range o.Columns {
		names[i] = c.ColumnName
	}
	return o.insertQuery(o.Target, names)
}

// CreateKept creates the temporary table.
func (o Overwrite) CreateKept() string {
	columns := make([]string, len(o.Columns))
	for i, c := range o.Columns {
		columns[i] = keptColumn(i) + " " + cmp.Or(c.Kept, c.Definition)
		if c.Default != "" {
			columns[i] += " default " + c.Default
		}
	}
	return "create temporary table " + o.Kept + " (" + strings.Join(columns, ", ") + ") on commit drop"
}

// Keep runs the query and keeps its rows.
func (o Overwrite) Keep() Translation {
	names := make([]ColumnName, len(o.Columns))
	for i, c := range o.Columns {
		names[i] = ColumnName{Name: keptColumn(i), Offset: c.Offset}
	}
	return o.insertQuery(o.Kept, names)
}

func (o Overwrite) insertQuery(into string, columns []ColumnName) Translation {
	var b translationParts
	if o.With.SQL != "" {
		b.part(o.With)
		b.text("\n")
	}
	b.text("insert into " + into + " (")
	b.names(columns)
	b.text(")\n")
	b.part(o.Query)
	return b.translation()
}

// Insert inserts the kept rows.
func (o Overwrite) Insert() Translation {
	var b translationParts
	o.insert(&b)
	return b.translation()
}

func (o Overwrite) insert(b *translationParts) {
	var names []ColumnName
	var values []string
	for i, c := range o.Columns {
		if !c.Computed {
			names, values = append(names, c.ColumnName), append(values, c.stored(i))
		}
	}
	for _, c := range o.Constants {
		names = append(names, c.ColumnName)
	}
	b.text("insert into " + o.Target + " as " + TargetAlias + " ")
	if len(names) > 0 {
		b.text("(")
		b.names(names)
		b.text(")")
	}
	b.text("\nselect " + strings.Join(values, ", "))
	for i, c := range o.Constants {
		if i > 0 || len(values) > 0 {
			b.text(", ")
		}
		c.write(b)
	}
	b.text("\nfrom " + o.Kept)
}

// Probe is a statement that fails if the value is no constant of its type.
func (c OverwriteConstant) Probe() Translation {
	var b translationParts
	b.text("select ")
	c.write(&b)
	return b.translation()
}

// Bare is a query of the value by itself, to be described.
func (c OverwriteConstant) Bare() Translation {
	var b translationParts
	b.text("select (")
	b.part(c.Value)
	b.text("\n)")
	return b.translation()
}

func (c OverwriteConstant) write(b *translationParts) {
	b.text(c.Function + "(")
	b.part(c.Value)
	b.text("\n)::" + c.Type)
}

// source writes the kept rows as a table expression in which the columns have
// the names that name gives them.
func (o Overwrite) source(b *translationParts, name func(OverwriteColumn) string, alias string) {
	b.text("(select ")
	for i, c := range o.Columns {
		if i > 0 {
			b.text(", ")
		}
		b.text(c.stored(i) + " as " + QuoteIdentifier(name(c)))
	}
	for i, c := range o.Constants {
		if i > 0 || len(o.Columns) > 0 {
			b.text(", ")
		}
		c.write(b)
		b.text(" as ")
		b.name(c.ColumnName)
	}
	b.text(" from " + o.Kept + ") as " + alias)
}

func targetName(c OverwriteColumn) string { return c.Name }
func sourceName(c OverwriteColumn) string { return c.Source }

// Source is the query by itself, to be described. PostgreSQL allows one WITH
// in front of a query, though one more in front of its INSERT.
func (o Overwrite) Source() Translation {
	if o.With.SQL == "" {
		return o.Query
	}
	var b translationParts
	b.part(o.With)
	if !beginsWithWith(o.Query.SQL) {
		b.text("\n")
		b.part(o.Query)
		return b.translation()
	}
	b.text("\nselect * from (\n")
	b.part(o.Query)
	b.text("\n) as " + sourceAlias)
	return b.translation()
}

// WithoutDefaults is a VALUES of PostgreSQL's with NULL in place of DEFAULT, to be
// described: by itself it cannot hold DEFAULT. Any other query stays as it is.
func WithoutDefaults(query string, o Lexical) Translation {
	t, err := newTokenText(Span{Text: query}, o)
	if err != nil || t.word(0) != "values" {
		return Translation{SQL: query}
	}
	for i := range t.tokens {
		begins := t.punctuation(i-1, "(") || t.punctuation(i-1, ",")
		ends := i+1 < len(t.tokens) && (t.punctuation(i+1, ",") || t.closes(i+1))
		if begins && t.word(i) == "default" && ends {
			t.replace(i, i+1, "NULL")
		}
	}
	return t.translation()
}

func beginsWithWith(query string) bool {
	t, err := newTokenText(Span{Text: query}, Lexical{})
	if err != nil {
		return false
	}
	i := 0
	for t.punctuation(i, "(") {
		i++
	}
	return t.word(i) == "with"
}
