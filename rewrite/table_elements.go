package rewrite

// TableElements writes the declared columns and constraints of a table as
// CREATE TABLE takes them.
func TableElements(st *CreateStreamingTable) Translation {
	var b translationParts
	separator := ""
	for _, c := range st.Columns {
		b.text(separator)
		c.write(&b)
		separator = ",\n"
	}
	for i, constraint := range st.Constraints {
		b.text(separator)
		meaning := Translation{}
		if i < len(st.Meanings) {
			meaning = st.Meanings[i]
		}
		b.meaning(constraint, meaning)
		separator = "\n,\n" // the line end closes a line comment
	}
	b.text("\n")
	return b.translation()
}

// meaning writes what is declared, in the meaning that a dialect gave it.
func (j *translationParts) meaning(declared Span, m Translation) {
	if m.SQL == "" {
		j.builder.add(declared.Text, declared.Offset, true)
		return
	}
	j.part(m)
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
	b.builder.add(c.Type, c.Written.Offset, false)
	if c.Rest.Text != "" {
		b.text(" ")
		b.meaning(c.Rest, c.Meaning)
		b.text("\n") // closes a line comment
	}
}
