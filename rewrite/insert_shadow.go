package rewrite

import (
	"errors"
	"strings"
)

// Shadow implements Statement. Without parameters there is nothing to
// describe. With parameters the shadow holds the parts of the statement that
// have some where Postgres infers the same types for them as in the statement
// itself: the query under an INSERT into the target, a condition in a DELETE.
// The first of its parts fails whenever it is run, before anything is written.
func (s *Insert) Shadow() string {
	if s.Parameter() < 0 {
		return noRows
	}
	target := s.Target.SQL()
	parts := []string{"rwproxy_never as (insert into " + target + " select where pg_catalog.nextval(0::pg_catalog.regclass) is null)"}
	recursive := ""
	if s.With != nil {
		var list string
		if recursive, list = s.withList(); list != "" {
			parts = append(parts, list)
		}
	}
	if s.has(s.With) || s.has(&s.Query) {
		parts = append(parts, "rwproxy_rows as ("+s.shadowRows(target)+")")
	}
	for i, c := range s.Partition {
		if s.has(c.Value) {
			parts = append(parts, keptColumn(i)+"_of_rwproxy as (update "+target+" set "+QuoteIdentifier(c.Name)+
				" = ("+s.shadowText(*c.Value)+"\n) where false)")
		}
	}
	return "with " + recursive + strings.Join(parts, ",\n") + "\n" + s.shadowDelete(target)
}

func (s *Insert) has(part *Span) bool {
	return part != nil && FirstParameter(part.Text, s.lexical) >= 0
}

// withList returns the common table expressions of the WITH clause, and
// "recursive " if it is so.
func (s *Insert) withList() (recursive, list string) {
	text := s.shadowText(*s.With)
	tokens, err := Tokens(text, s.lexical)
	if err != nil || len(tokens) < 2 {
		return "", ""
	}
	first := 1
	if isKeyword(text[tokens[1].Start:tokens[1].End], "RECURSIVE") {
		first, recursive = 2, "recursive "
	}
	return recursive, text[tokens[first].Start:]
}

// shadowRows is the query under an INSERT. Where BY NAME needs a database to
// tell the columns, it is the query alone; a parameter that is a column of it
// by itself is text then.
func (s *Insert) shadowRows(target string) string {
	query := s.shadowText(s.Query)
	columns, known := s.shadowColumns()
	if !known {
		return "select from (" + query + "\n) as " + sourceAlias
	}
	return "insert into " + target + columns + "\n" + query
}

// shadowColumns is the column list of the INSERT, if the text tells it.
func (s *Insert) shadowColumns() (list string, known bool) {
	var names []string
	for _, c := range s.Columns {
		names = append(names, QuoteIdentifier(c.Name))
	}
	if s.ByName {
		source := readSource(PredicateContext{Query: &s.Query, Lexical: s.lexical})
		if len(source.items) == 0 {
			return "", false
		}
		for _, item := range source.items {
			name := source.text.outputName(item)
			if name == "" || source.text.star(item) {
				return "", false
			}
			names = append(names, QuoteIdentifier(name))
		}
	}
	if names == nil {
		return "", true
	}
	return " (" + strings.Join(names, ", ") + ")", true
}

func (s *Insert) shadowDelete(target string) string {
	if !s.has(&s.Condition) {
		return "delete from " + target + " where false"
	}
	alias, using := "", ""
	if s.Alias != nil {
		alias = " as " + QuoteIdentifier(s.Alias.Name)
	}
	if s.Replaces == ReplacesOn {
		using = " using (" + s.shadowText(s.Query) + "\n) as " + sourceAlias
		if s.SourceAlias != nil {
			using = strings.TrimSuffix(using, sourceAlias) + QuoteIdentifier(s.SourceAlias.Name)
		}
	}
	return "delete from " + target + alias + using + " where false and (" + s.shadowText(s.Condition) + "\n)"
}

// shadowText translates a part as far as it can be without a database.
func (s *Insert) shadowText(part Span) string {
	translation, err := TranslateQuery(part, noCatalog{}, s.lexical)
	if err != nil {
		return part.Text
	}
	return translation.SQL
}

// noCatalog knows nothing.
type noCatalog struct{}

var errNoCatalog = errors.New("there is no catalog")

func (noCatalog) Aggregates([]string) (map[string]bool, error) { return nil, errNoCatalog }
func (noCatalog) Operators([]string) (map[string]bool, error)  { return nil, nil }
func (noCatalog) Functions([]string) (map[string]bool, error)  { return nil, nil }
func (noCatalog) Columns(string) ([]string, error)             { return nil, errNoCatalog }
