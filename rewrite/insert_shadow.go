package rewrite

import "errors"

// Shadow implements Statement.
func (s *Insert) Shadow() string { return s.ShadowIn(s.lexical).SQL }

// ShadowIn is the Shadow of the statement as o reads it. Without parameters
// there is nothing to describe. With parameters the shadow holds the parts of
// the statement that have some where Postgres infers the same types for them as
// in the statement itself: the query under an INSERT into the target, a
// condition in a DELETE. The first of its parts fails whenever it is run, before
// anything is written.
func (s *Insert) ShadowIn(o Lexical) Translation {
	var b translationParts
	if s.Parameter() < 0 {
		b.text(noRows)
		return b.translation()
	}
	in := *s
	in.lexical = o
	in.shadow(&b)
	return b.translation()
}

func (s *Insert) shadow(b *translationParts) {
	list, from := Translation{}, 0
	b.text("with ")
	if s.With != nil {
		list = s.shadowText(*s.With)
		var recursive bool
		if from, recursive = withList(list.SQL); recursive {
			b.text("recursive ")
		}
	}
	b.text("rwproxy_never as (insert into ")
	s.shadowTarget(b)
	b.text(" select where pg_catalog.nextval(0::pg_catalog.regclass) is null)")
	if from > 0 {
		b.text(",\n")
		b.tail(list, from)
	}
	if s.has(s.With) || s.has(&s.Query) {
		b.text(",\nrwproxy_rows as (")
		s.shadowRows(b)
		b.text(")")
	}
	for i, c := range s.Partition {
		if s.has(c.Value) {
			b.text(",\n" + keptColumn(i) + "_of_rwproxy as (update ")
			s.shadowTarget(b)
			b.text(" set ")
			b.name(c.ColumnName)
			b.text(" = (")
			b.part(s.shadowText(*c.Value))
			b.text("\n) where false)")
		}
	}
	b.text("\n")
	s.shadowDelete(b)
}

func (s *Insert) has(part *Span) bool {
	return part != nil && FirstParameter(part.Text, s.lexical) >= 0
}

func (s *Insert) shadowTarget(b *translationParts) {
	b.builder.add(s.Target.SQL(), s.Target.Offset, false)
}

// withList returns where the common table expressions of a WITH clause begin, 0
// if there are none, and whether it is recursive.
func withList(text string) (from int, recursive bool) {
	tokens, err := Tokens(text, Lexical{})
	if err != nil || len(tokens) < 2 {
		return 0, false
	}
	first := 1
	if isKeyword(text[tokens[1].Start:tokens[1].End], "RECURSIVE") && len(tokens) > 2 {
		first, recursive = 2, true
	}
	return tokens[first].Start, recursive
}

// shadowRows is the query under an INSERT. Where BY NAME needs a database to
// tell the columns, it is the query alone; a parameter that is a column of it
// by itself is text then.
func (s *Insert) shadowRows(b *translationParts) {
	query := s.shadowText(s.Query)
	names, known := s.shadowColumns()
	if !known {
		b.text("select from (")
		b.part(query)
		b.text("\n) as " + sourceAlias)
		return
	}
	b.text("insert into ")
	s.shadowTarget(b)
	if names != nil {
		b.text(" (")
		b.names(names)
		b.text(")")
	}
	b.text("\n")
	b.part(query)
}

// shadowColumns are the columns of the INSERT, nil for those of the table, if
// the text tells them.
func (s *Insert) shadowColumns() (names []ColumnName, known bool) {
	if !s.ByName {
		return s.Columns, true
	}
	source := readSource(PredicateContext{Query: &s.Query, Lexical: s.lexical})
	for _, item := range source.items {
		name := source.text.outputName(item)
		if name == "" || source.text.star(item) {
			return nil, false
		}
		names = append(names, ColumnName{Name: name, Offset: s.Query.Offset})
	}
	return names, names != nil
}

func (s *Insert) shadowDelete(b *translationParts) {
	b.text("delete from ")
	s.shadowTarget(b)
	if !s.has(&s.Condition) {
		b.text(" where false")
		return
	}
	if s.Alias != nil {
		b.text(" as ")
		b.name(*s.Alias)
	}
	if s.Replaces == ReplacesOn {
		b.text(" using (")
		b.part(s.shadowText(s.Query))
		b.text("\n) as ")
		if s.SourceAlias != nil {
			b.name(*s.SourceAlias)
		} else {
			b.text(sourceAlias)
		}
	}
	b.text(" where false and (")
	b.part(s.shadowText(s.Condition))
	b.text("\n)")
}

// shadowText translates a part as far as it can be without a database.
func (s *Insert) shadowText(part Span) Translation {
	translation, err := TranslateQuery(part, noCatalog{}, s.lexical)
	if err != nil {
		var b translationBuilder
		b.add(part.Text, part.Offset, true)
		return b.translation()
	}
	return translation
}

// noCatalog knows nothing.
type noCatalog struct{}

var errNoCatalog = errors.New("there is no catalog")

func (noCatalog) Aggregates([]string) (map[string]bool, error) { return nil, errNoCatalog }
func (noCatalog) Operators([]string) (map[string]bool, error)  { return nil, nil }
func (noCatalog) Functions([]string) (map[string]bool, error)  { return nil, nil }
func (noCatalog) Columns(string) ([]Column, error)             { return nil, errNoCatalog }
