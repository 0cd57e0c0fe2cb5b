package rewrite

import (
	"strings"
	"unicode/utf8"
)

// CharPosition returns the position of a byte of text as an ErrorResponse
// counts: in characters, from 1. A byte that is no valid UTF-8 counts as one.
// An offset past the end is the position after the last character.
func CharPosition(text string, byteOffset int) int {
	return utf8.RuneCountInString(text[:min(max(byteOffset, 0), len(text))]) + 1
}

// excerptLength bounds what an error repeats of a statement, in bytes.
const excerptLength = 64

// excerpt returns the beginning of text for an error message.
func excerpt(text string) string {
	if len(text) <= excerptLength {
		return text
	}
	return strings.ToValidUTF8(text[:excerptLength], "") + "..."
}
