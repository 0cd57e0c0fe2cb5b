package rewrite

// translationParts puts a Translation together from others.
type translationParts struct{ builder translationBuilder }

// text appends text of ours.
func (j *translationParts) text(text string) { j.builder.generate(text) }

// name appends an identifier that stands at offset of the statement.
func (j *translationParts) name(c ColumnName) {
	j.builder.add(QuoteIdentifier(c.Name), c.Offset, false)
}

// names appends identifiers with commas between.
func (j *translationParts) names(names []ColumnName) {
	for i, name := range names {
		if i > 0 {
			j.text(", ")
		}
		j.name(name)
	}
}

// part appends another translation.
func (j *translationParts) part(t Translation) {
	start := j.builder.sql.Len()
	for _, p := range t.pieces {
		p.start += start
		j.builder.pieces = append(j.builder.pieces, p)
	}
	j.builder.sql.WriteString(t.SQL)
}

// tail appends what another translation has from a byte of its SQL on.
func (j *translationParts) tail(t Translation, from int) {
	start := j.builder.sql.Len() - from
	for i, p := range t.pieces {
		switch {
		case i+1 < len(t.pieces) && t.pieces[i+1].start <= from:
			continue
		case p.start < from && p.copied:
			p.origin += from - p.start
		}
		p.start = max(p.start, from) + start
		j.builder.pieces = append(j.builder.pieces, p)
	}
	j.builder.sql.WriteString(t.SQL[from:])
}

func (j *translationParts) translation() Translation { return j.builder.translation() }
