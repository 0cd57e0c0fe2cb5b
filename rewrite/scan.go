package rewrite

// MayBeOurs reports that a query text may hold a statement of rwproxy's: it
// holds one of the words that each of them needs, as a word of its own.
// Strings and comments count too, so true means that Split and Parse have to
// look; false is certain. It reads the text once and allocates nothing.
//
// DESC, SHOW and the like are common words in queries and count only where a
// statement begins: behind a semicolon, or anywhere in a text in which a
// comment may have stood in front of a statement.
func MayBeOurs(sql []byte) bool {
	drop, insert, by := false, false, false
	first, commented := true, false
	for i := 0; i < len(sql); {
		if c := sql[i]; !isWordByte[c] {
			switch {
			case c == ';':
				first = true
			case isSpace(c):
			case first && (c == '-' || c == '/'):
				commented = true
			default:
				first = false
			}
			i++
			continue
		}
		start := i
		for i < len(sql) && isWordByte[sql[i]] {
			i++
		}
		begins := first || commented
		first = false
		switch word := sql[start:i]; len(word) {
		case 2:
			by = by || insert && isLowered(word, "by")
		case 4:
			if isLowered(word, "flow") || begins && (isLowered(word, "desc") || isLowered(word, "show")) {
				return true
			}
			drop = drop || isLowered(word, "drop")
			if by && isLowered(word, "name") {
				return true
			}
		case 5:
			if (drop || insert) && isLowered(word, "table") {
				return true
			}
		case 6:
			if insert && isLowered(word, "schema") {
				return true
			}
			insert = insert || isLowered(word, "insert")
		case 7:
			if isLowered(word, "refresh") || insert && isLowered(word, "replace") || begins && isLowered(word, "restore") {
				return true
			}
		case 8:
			if begins && isLowered(word, "describe") {
				return true
			}
		case 9:
			if isLowered(word, "streaming") || isLowered(word, "event_log") ||
				insert && (isLowered(word, "overwrite") || isLowered(word, "partition")) {
				return true
			}
		case 12:
			if isLowered(word, "materialized") {
				return true
			}
		}
	}
	return false
}

// isWordByte are the bytes of bare identifiers.
var isWordByte = func() (table [256]bool) {
	for c := range table {
		table[c] = isIdentifierPart(byte(c))
	}
	return table
}()

// isLowered reports that word is keyword, which is as long and in lower case.
func isLowered(word []byte, keyword string) bool {
	for i, c := range word {
		if c|0x20 != keyword[i] && c != keyword[i] {
			return false
		}
	}
	return true
}
