package rewrite

import "strings"

// Keywords of PostgreSQL 14 to 18 that are not unreserved, as pg_get_keywords
// lists them. A word that any of the majors has is in the list.
const (
	// columnNameKeywords may name a table or a column, but not a function.
	columnNameKeywords = `between bigint bit boolean char character coalesce dec decimal exists extract float
		greatest grouping inout int integer interval json json_array json_arrayagg json_exists json_object
		json_objectagg json_query json_scalar json_serialize json_table json_value least merge_action national nchar
		none normalize nullif numeric out overlay position precision real row setof smallint substring time timestamp
		treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces xmlparse xmlpi
		xmlroot xmlserialize xmltable`

	// reservedKeywords may not name a table; some may name a function.
	reservedKeywords = `all analyse analyze and any array as asc asymmetric authorization binary both case cast check
		collate collation column concurrently constraint create cross current_catalog current_date current_role
		current_schema current_time current_timestamp current_user default deferrable desc distinct do else end except
		false fetch for foreign freeze from full grant group having ilike in initially inner intersect into is isnull
		join lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order
		outer overlaps placing primary references returning right select session_user similar some symmetric
		system_user table tablesample then to trailing true union unique user using variadic verbose when where window
		with`
)

var (
	needsQuotes = wordSet(columnNameKeywords + " " + reservedKeywords)
	reserved    = wordSet(reservedKeywords)
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(words) {
		set[word] = true
	}
	return set
}

// foldASCII lowers the ASCII letters of s, as PostgreSQL folds a bare
// identifier and recognises a keyword in a multibyte encoding.
func foldASCII(s string) string {
	for i := range len(s) {
		if s[i] >= 'A' && s[i] <= 'Z' {
			folded := []byte(s)
			for ; i < len(folded); i++ {
				if folded[i] >= 'A' && folded[i] <= 'Z' {
					folded[i] |= 0x20
				}
			}
			return string(folded)
		}
	}
	return s
}

// isKeyword reports that word is the keyword, given in upper case.
func isKeyword(word, keyword string) bool {
	if len(word) != len(keyword) {
		return false
	}
	for i := range len(word) {
		c := word[i]
		if c >= 'a' && c <= 'z' {
			c &^= 0x20
		}
		if c != keyword[i] {
			return false
		}
	}
	return true
}
