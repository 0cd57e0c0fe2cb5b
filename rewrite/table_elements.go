package rewrite

// TableElements writes the declared columns and constraints of a table as
// CREATE TABLE takes them.
func TableElements(columns []ColumnDef, constraints []Span) Translation {
	var b translationParts
	separator := ""
	for _, c := range columns {
		b.text(separator)
		c.write(&b)
		separator = ",\n"
	}
	for _, constraint := range constraints {
		b.text(separator)
		b.builder.add(constraint.Text, constraint.Offset, true)
		separator = "\n,\n" // the line end closes a line comment
	}
	b.text("\n")
	return b.translation()
}

// Element is the column as ADD COLUMN takes it.
func (c ColumnDef) Element() Translation {
	var b translationParts
	c.write(&b)
	return b.translation()
}

func (c ColumnDef) write(b *translationParts) {
	b.name(ColumnName{Name: c.Name, Offset: c.Offset})
	b.text(" ")
	b.builder.add(c.Type, c.Place, false)
	if c.Rest.Text != "" {
		b.text(" ")
		b.builder.add(c.Rest.Text, c.Rest.Offset, true)
		b.text("\n") // closes a line comment
	}
}
