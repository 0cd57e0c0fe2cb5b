package refresh

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/rewrite"
)

// plan translates the statement, resolves its names and has Postgres check it.
// It reads catalogs only.
func (i *insertion) plan(ctx context.Context) error {
	if err := i.resolveTarget(ctx); err != nil {
		return err
	}
	st := i.statement
	i.sql = rewrite.Overwrite{Target: i.target.sql(), Kept: "pg_temp." + rewrite.QuoteIdentifier(viewName("rwproxy_kept"))}
	if st.Alias != nil {
		i.sql.Alias = st.Alias.Name
	}
	if st.SourceAlias != nil {
		i.sql.SourceAlias = st.SourceAlias.Name
	}
	return i.frame.asFlow(ctx, func() error { return i.planQuery(ctx) })
}

// planQuery is plan for what has to be read as the client's own text.
func (i *insertion) planQuery(ctx context.Context) error {
	st := i.statement
	if err := i.translateQuery(ctx); err != nil {
		return err
	}
	source, err := i.sourceColumns(ctx)
	if err != nil {
		return err
	}
	if err := i.constants(ctx); err != nil {
		return err
	}
	targets, err := i.columns(source)
	if err != nil {
		return err
	}
	for n, target := range targets {
		c, _ := i.target.column(target.Name)
		column := rewrite.OverwriteColumn{ColumnName: target, Source: source[n], Definition: c.definition(), Computed: c.computed}
		switch {
		case c.computed:
			column.Definition = "pg_catalog.text" // DEFAULT is all it can get
		case st.HasDefault:
			column.Default = c.defaultSQL
		}
		i.sql.Columns = append(i.sql.Columns, column)
	}
	if _, err := i.describe(ctx, i.sql.Plain()); err != nil {
		return err
	}
	if err := i.storeInDialect(ctx); err != nil {
		return err
	}
	return i.planReplaced(ctx, source)
}

func (i *insertion) translateQuery(ctx context.Context) error {
	st := i.statement
	var asked rewrite.Catalog = catalog{ctx, i.client}
	if st.With != nil {
		with, err := rewrite.TranslateQuery(*st.With, asked, i.settings.lexical)
		if err != nil {
			return i.located(err)
		}
		i.sql.With = with
		asked = withCatalog{catalog{ctx, i.client}, with.SQL}
	}
	query, err := rewrite.TranslateQuery(st.Query, asked, i.settings.lexical)
	if err != nil {
		return i.located(err)
	}
	i.sql.Query = query
	return nil
}

// withCatalog describes queries behind a WITH clause.
type withCatalog struct {
	catalog
	with string
}

// Columns implements rewrite.Catalog.
func (c withCatalog) Columns(query string) ([]rewrite.Column, error) {
	columns, err := c.catalog.Columns(c.with + "\nselect * from (\n" + query + "\n) as q")
	return columns, withoutPosition(err)
}

// sourceColumns returns the names of the query's columns. VALUES gets those
// that PostgreSQL gives it: by itself it cannot hold DEFAULT.
func (i *insertion) sourceColumns(ctx context.Context) ([]string, error) {
	if n := i.statement.Values; n > 0 {
		names := make([]string, n)
		for k := range names {
			names[k] = fmt.Sprintf("column%d", k+1)
		}
		return names, nil
	}
	names, err := i.describe(ctx, i.sql.Source())
	if err == nil && len(names) == 0 {
		err = i.fail(i.statement.Query.Offset, "42601", "the query of an INSERT must return columns", "",
			"Use SELECT, WITH ... SELECT, VALUES or TABLE.")
	}
	return names, err
}

// constants resolves the columns of a PARTITION clause that have a value.
func (i *insertion) constants(ctx context.Context) error {
	for _, p := range i.statement.Partition {
		c, found := i.target.column(p.Name)
		if !found {
			return i.undefinedColumn(p.ColumnName)
		}
		if p.Value == nil {
			continue
		}
		value, err := rewrite.TranslateQuery(*p.Value, catalog{ctx, i.client}, i.settings.lexical)
		if err != nil {
			return i.located(err)
		}
		constant := rewrite.OverwriteConstant{ColumnName: p.ColumnName, Value: value, Type: c.castType}
		if _, err := i.describe(ctx, constant.Probe()); err != nil {
			return err
		}
		i.sql.Constants = append(i.sql.Constants, constant)
	}
	return nil
}

// columns returns the target's column for each of the query's.
func (i *insertion) columns(source []string) ([]rewrite.ColumnName, error) {
	switch st := i.statement; {
	case st.ByName:
		return i.columnsByName(source)
	case st.Columns != nil:
		return i.listedColumns(source)
	default:
		return i.columnsByPosition(source)
	}
}

func (i *insertion) listedColumns(source []string) ([]rewrite.ColumnName, error) {
	listed := i.statement.Columns
	for _, c := range listed {
		if _, found := i.target.column(c.Name); !found {
			return nil, i.undefinedColumn(c)
		}
	}
	if len(source) != len(listed) {
		return nil, i.arity(len(source) > len(listed), len(listed), len(source))
	}
	return listed, nil
}

// columnsByPosition takes the target's columns in their order, those of a
// PARTITION clause with a value left out. At the end there may be some more
// that the target fills.
func (i *insertion) columnsByPosition(source []string) ([]rewrite.ColumnName, error) {
	var columns []rewrite.ColumnName
	required := 0
	for _, c := range i.target.columns {
		if i.isConstant(c.name) {
			continue
		}
		columns = append(columns, rewrite.ColumnName{Name: c.name, Offset: i.statement.Query.Offset})
		if !c.hasDefault {
			required = len(columns)
		}
	}
	if len(source) > len(columns) || len(source) < required {
		return nil, i.arity(len(source) > len(columns), len(columns), len(source))
	}
	return columns[:len(source)], nil
}

func (i *insertion) isConstant(name string) bool {
	return slices.ContainsFunc(i.sql.Constants, func(c rewrite.OverwriteConstant) bool { return c.Name == name })
}

// arity is the error for a query of too many or too few columns.
func (i *insertion) arity(tooMany bool, want, got int) error {
	message, class := "INSERT has more target columns than expressions", "NOT_ENOUGH_DATA_COLUMNS"
	if tooMany {
		message, class = "INSERT has more expressions than target columns", "TOO_MANY_DATA_COLUMNS"
	}
	return i.fail(i.statement.Query.Offset, "21S01", message,
		fmt.Sprintf("INSERT_COLUMN_ARITY_MISMATCH.%s: columns of %q: %d, of the query: %d.", class, i.target.name, want, got),
		"List the columns behind the table's name, or use BY NAME.")
}

// columnsByName matches names without case: exactly, or else the one that
// differs in nothing but case.
func (i *insertion) columnsByName(source []string) ([]rewrite.ColumnName, error) {
	if len(source) > len(i.target.columns) {
		return nil, i.arity(true, len(i.target.columns), len(source))
	}
	offset := i.statement.Query.Offset
	columns := make([]rewrite.ColumnName, len(source))
	taken := map[string]bool{}
	for n, name := range source {
		target, found := i.targetColumn(name)
		switch {
		case !found:
			return nil, i.extraColumn(name)
		case taken[target]:
			return nil, i.fail(offset, "42711", fmt.Sprintf("the query returns column %q more than once", name),
				"DELTA_DUPLICATE_COLUMNS_ON_INSERT", "BY NAME needs a name of its own for each column.")
		}
		taken[target] = true
		columns[n] = rewrite.ColumnName{Name: target, Offset: offset}
	}
	return columns, nil
}

// targetColumn returns the column of the target that a name of the query
// stands for.
func (i *insertion) targetColumn(name string) (string, bool) {
	if _, found := i.target.column(name); found {
		return name, true
	}
	var matches []string
	for _, c := range i.target.columns {
		if strings.EqualFold(c.name, name) {
			matches = append(matches, c.name)
		}
	}
	if len(matches) != 1 {
		return "", false
	}
	return matches[0], true
}

func (i *insertion) extraColumn(name string) error {
	hint := "The columns of " + i.target.name + " are " + i.target.names() + "."
	switch {
	case name == "?column?":
		hint = "Give every expression a name with AS. " + hint
	case i.statement.Values > 0:
		hint = "The columns of VALUES have no names of their own; list the table's columns instead of BY NAME. " + hint
	}
	return i.fail(i.statement.Query.Offset, "42KDG", fmt.Sprintf("column %q of the query is not a column of %q", name, i.target.name),
		"DELTA_METADATA_MISMATCH", hint)
}

// names lists the columns for a hint.
func (t insertTarget) names() string { return columnList(t.columns) }
