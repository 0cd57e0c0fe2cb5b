package rewrite

import "strings"

// QuoteIdentifier returns s as an identifier, in quotes where Postgres would
// fold it or take it for a keyword. s holds no U+0000.
func QuoteIdentifier(s string) string {
	if isBareIdentifier(s) && !needsQuotes[s] {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}

func isBareIdentifier(s string) bool {
	if s == "" || isDigit(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isDigit(c) && c != '_' && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// QuoteLiteral returns s as a string constant that reads the same whether
// standard_conforming_strings is on or off. s holds no U+0000.
func QuoteLiteral(s string) string {
	quoted := "'" + strings.ReplaceAll(s, "'", "''") + "'"
	if strings.Contains(s, `\`) {
		return "E" + strings.ReplaceAll(quoted, `\`, `\\`)
	}
	return quoted
}

// SQL returns the name as Postgres reads it: schema and table. The catalog is
// left out, it is for the caller to compare with the current database.
func (n Name) SQL() string {
	if n.Schema == "" {
		return QuoteIdentifier(n.Table)
	}
	return QuoteIdentifier(n.Schema) + "." + QuoteIdentifier(n.Table)
}

// regclass is the relation of the name when the expression is evaluated, null
// if there is none.
func (n Name) regclass() string {
	return "pg_catalog.to_regclass(" + QuoteLiteral(n.SQL()) + ")"
}
