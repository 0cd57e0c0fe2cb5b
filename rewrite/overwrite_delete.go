package rewrite

// DeleteAll deletes every row of the target.
func (o Overwrite) DeleteAll() Translation {
	return Translation{SQL: "delete from " + o.Target}
}

// DeleteConstants deletes the rows that have the constants' values.
func (o Overwrite) DeleteConstants() Translation {
	var b translationParts
	b.text("delete from " + o.Target + " as " + TargetAlias)
	for i, c := range o.Constants {
		b.text([]string{"\nwhere ", "\nand "}[min(i, 1)])
		b.name(c.ColumnName)
		b.text(" is not distinct from ")
		c.write(&b)
	}
	return b.translation()
}

// DeleteUsing deletes the rows that equal a kept row in the columns. NULL
// equals nothing.
func (o Overwrite) DeleteUsing(columns []ColumnName) Translation {
	var b translationParts
	b.text("delete from " + o.Target + " as " + TargetAlias + "\nwhere exists (select from ")
	o.source(&b, targetName, sourceAlias)
	for i, c := range columns {
		b.text([]string{" where ", " and "}[min(i, 1)] + sourceAlias + ".")
		b.name(c)
		b.text(" = " + TargetAlias + ".")
		b.name(c)
	}
	b.text(")")
	return b.translation()
}

// DeleteEqual deletes the rows of the partitions, by their key columns, that
// a kept row is in. Two statements, because only = can be hashed: the second
// is for keys that hold a NULL, and Postgres sees at once if there is none.
func (o Overwrite) DeleteEqual(keys []string) [2]Translation {
	columns := make([]ColumnName, len(keys))
	for i, key := range keys {
		columns[i] = ColumnName{Name: key, Offset: -1}
	}
	var b translationParts
	b.text("delete from " + o.Target + " as " + TargetAlias + "\nwhere exists (select from ")
	o.source(&b, targetName, sourceAlias)
	writeNullKey(&b, " where ", sourceAlias, keys)
	b.text(")")
	writeNullKey(&b, "\nand ", TargetAlias, keys)
	b.text("\nand exists (select from ")
	o.source(&b, targetName, sourceAlias)
	for i, c := range columns {
		b.text([]string{" where ", " and "}[min(i, 1)] + sourceAlias + "." + QuoteIdentifier(c.Name) +
			" is not distinct from " + TargetAlias + "." + QuoteIdentifier(c.Name))
	}
	b.text(")")
	return [2]Translation{o.DeleteUsing(columns), b.translation()}
}

// writeNullKey writes that one of the keys is NULL.
func writeNullKey(b *translationParts, head, alias string, keys []string) {
	b.text(head + "(")
	for i, key := range keys {
		b.text([]string{"", " or "}[min(i, 1)] + alias + "." + QuoteIdentifier(key) + " is null")
	}
	b.text(")")
}

// DeleteOn deletes the rows for which a kept row makes the condition true. The
// condition sees the kept rows under the names of the query.
func (o Overwrite) DeleteOn() Translation {
	var b translationParts
	b.text("delete from " + o.Target + o.targetAlias() + "\nwhere exists (select from ")
	o.source(&b, sourceName, o.sourceAlias())
	b.text(whereStart)
	b.part(o.Condition)
	b.text(whereEnd + ")")
	return b.translation()
}

// ProbeOn is a statement that fails if the condition is not valid. It needs no
// kept rows. Other than in DeleteOn the target's and the query's columns are in
// one scope, so a bare name that both have is ambiguous.
func (o Overwrite) ProbeOn() Translation {
	var b translationParts
	b.text("delete from " + o.Target + o.targetAlias() + "\nusing (select ")
	for i, c := range o.Columns {
		if i > 0 {
			b.text(", ")
		}
		b.text("null::" + c.Definition + " as " + QuoteIdentifier(c.Source))
	}
	b.text(") as " + o.sourceAlias() + whereStart)
	b.part(o.Condition)
	b.text(whereEnd)
	return b.translation()
}

func (o Overwrite) targetAlias() string {
	if o.Alias == "" {
		return ""
	}
	return " as " + QuoteIdentifier(o.Alias)
}

func (o Overwrite) sourceAlias() string {
	if o.SourceAlias == "" {
		return sourceAlias
	}
	return QuoteIdentifier(o.SourceAlias)
}
