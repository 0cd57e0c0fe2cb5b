package refresh

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/rewrite"
)

// planReplaced finds out which rows of the target go.
func (i *insertion) planReplaced(ctx context.Context, source []string) error {
	switch i.statement.Replaces {
	case rewrite.ReplacesWhere:
		return i.planWhere(ctx)
	case rewrite.ReplacesUsing:
		return i.planUsing(source)
	case rewrite.ReplacesOn:
		return i.planOn(ctx)
	case rewrite.ReplacesPartition:
		return i.planPartition()
	}
	return nil
}

func (i *insertion) planWhere(ctx context.Context) error {
	st := i.statement
	name := rewrite.Name{Catalog: i.client.Database(), Schema: i.target.schema, Table: i.target.name}
	if st.Alias != nil {
		name = rewrite.Name{Table: st.Alias.Name}
	}
	lexical := i.settings.lexical
	condition, err := rewrite.TranslatePredicate(st.Condition,
		rewrite.PredicateContext{Target: name, Lexical: lexical, Catalog: catalog{ctx, i.client}})
	if err != nil {
		return i.located(err)
	}
	window := rewrite.Window{Target: i.target.sql(), Predicate: condition.SQL}
	where := predicate{typed: st.Condition, statement: st.Text, lexical: lexical, translation: condition, columns: i.target.columns}
	if err := where.checkTarget(ctx, i.client, window); err != nil {
		return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
			switch {
			case d.Code == "42903":
				d.Hint = "A predicate selects rows of the table one by one."
			case d.Code == "42703" && d.Hint == "":
				d.Hint = "The columns of " + i.target.name + " are " + i.target.names() + "."
			}
		})
	}
	i.deletes = []rewrite.Translation{{SQL: window.Delete()}}
	if i.settings.checks {
		i.planChecks(condition)
	}
	return nil
}

// planUsing checks that each column is there on both sides. By position it has
// to have the same place in both, under its name; VALUES has no names.
func (i *insertion) planUsing(source []string) error {
	st := i.statement
	for _, c := range st.Using {
		if _, found := i.target.column(c.Name); !found {
			return i.unresolvedUsing(c, "table", i.target.names())
		}
		at := slices.IndexFunc(i.sql.Columns, func(o rewrite.OverwriteColumn) bool { return o.Name == c.Name })
		switch {
		case at >= 0 && (st.ByName || st.Values > 0 || source[at] == c.Name):
			continue
		case !st.ByName && slices.Contains(source, c.Name):
			return i.fail(c.Offset, "42802", fmt.Sprintf("column %q has not the same place in the table and in the query", c.Name),
				"INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS", "Use BY NAME before REPLACE USING.")
		}
		return i.unresolvedUsing(c, "query", strings.Join(source, ", "))
	}
	statement := i.sql.DeleteUsing(st.Using)
	i.deletes = []rewrite.Translation{statement}
	return nil
}

func (i *insertion) unresolvedUsing(c rewrite.ColumnName, where, names string) error {
	return i.fail(c.Offset, "42703", fmt.Sprintf("column %q cannot be resolved in the %s", c.Name, where),
		"UNRESOLVED_INSERT_REPLACE_USING_COLUMN", "The "+where+" has the columns "+names+".")
}

func (i *insertion) planOn(ctx context.Context) error {
	condition, err := rewrite.TranslateQuery(i.statement.Condition, catalog{ctx, i.client}, i.settings.lexical)
	if err != nil {
		return i.located(err)
	}
	i.sql.Condition = condition
	if _, err := i.describe(ctx, i.sql.ProbeOn()); err != nil {
		return conditionError(err)
	}
	i.deletes = []rewrite.Translation{i.sql.DeleteOn()}
	return nil
}

// conditionError gives an error in the condition of REPLACE ON the SQLSTATE
// and class of the dialect.
func conditionError(err error) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		d.Message = strings.Replace(d.Message, " in WHERE", " in a condition", 1)
		switch {
		case d.Code == "42702":
			d.Detail = "DELTA_INSERT_REPLACE_ON_AMBIGUOUS_COLUMNS_IN_CONDITION"
			d.Hint = "Both the table and the query have the column; qualify it with the alias of one."
		case d.Code == "42703", d.Code == "42P01" && strings.Contains(d.Message, "FROM-clause entry"):
			d.Code = "42703"
			d.Detail = "DELTA_INSERT_REPLACE_ON_UNRESOLVED_COLUMNS_IN_CONDITION"
			d.Hint = cmp.Or(d.Hint, "The condition can name the columns of the table, and those of the query by its alias.")
		case isNotBoolean(d):
			d.Code = "42K09"
			d.Message = strings.Replace(d.Message, "argument of WHERE", "condition", 1)
			d.Detail = "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
			d.Hint = notBooleanHint
		}
	})
}

// planPartition is for INSERT OVERWRITE: the whole table goes, or the
// partition that is named, or in dynamic mode those that get a row.
func (i *insertion) planPartition() error {
	for _, p := range i.statement.Partition {
		if p.Value == nil && !i.stores(p.Name) {
			return i.missingPartitionColumn(p.Name, p.Offset)
		}
	}
	if i.settings.dynamic {
		key := i.target.partitionKey
		if slices.ContainsFunc(key, func(name string) bool { return !i.isConstant(name) }) {
			return i.planDynamic(key)
		}
	}
	if len(i.sql.Constants) > 0 {
		i.deletes = []rewrite.Translation{i.sql.DeleteConstants()}
	} else {
		i.deletes = []rewrite.Translation{i.sql.DeleteAll()}
	}
	return nil
}

func (i *insertion) planDynamic(key []string) error {
	for _, name := range key {
		if !i.stores(name) {
			return i.missingPartitionColumn(name, i.statement.Query.Offset)
		}
	}
	statements := i.sql.DeleteEqual(key)
	i.deletes = statements[:]
	return nil
}

// stores reports that the statement itself gives the column its value.
func (i *insertion) stores(name string) bool {
	return i.isConstant(name) || slices.ContainsFunc(i.sql.Columns, func(c rewrite.OverwriteColumn) bool { return c.Name == name && !c.Computed })
}

func (i *insertion) missingPartitionColumn(name string, offset int) error {
	return i.fail(offset, "42703", fmt.Sprintf("the query does not return partition column %q", name),
		"UNRESOLVED_COLUMN", "The partitions to replace are those of the rows that the query returns.")
}
