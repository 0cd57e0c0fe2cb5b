package rewrite

// MayBeOurs reports that a query text may hold a statement of rwproxy's: it
// holds one of the words that each of them needs, as a word of its own.
// Strings and comments count too, so true means that Split and Parse have to
// look; false is certain. It reads the text once and allocates nothing.
func MayBeOurs(sql []byte) bool {
	drop := false
	for i := 0; i < len(sql); {
		if !isWordByte[sql[i]] {
			i++
			continue
		}
		start := i
		for i < len(sql) && isWordByte[sql[i]] {
			i++
		}
		switch word := sql[start:i]; {
		case isLowered(word, "streaming"), isLowered(word, "flow"), isLowered(word, "refresh"):
			return true
		case isLowered(word, "drop"):
			drop = true
		case drop && isLowered(word, "table"):
			return true
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

// isLowered reports that word is keyword, which is in lower case.
func isLowered(word []byte, keyword string) bool {
	if len(word) != len(keyword) {
		return false
	}
	for i, c := range word {
		if c|0x20 != keyword[i] {
			return false
		}
	}
	return true
}
