package rewrite

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Translation is PostgreSQL text made from a Span, and where each part of it
// comes from.
type Translation struct {
	SQL    string
	pieces []piece // in the order of SQL, without gaps
}

// piece is a run of Translation.SQL.
type piece struct {
	start  int  // in bytes of SQL
	origin int  // byte offset in the statement, -1 for text that has none
	copied bool // byte for byte; else the whole piece stands for what was at origin
}

// Origin returns the place in the statement of a position that Postgres
// reports in t.SQL: the byte offset, from 0, of the character at position,
// which counts characters from 1. Text that replaced a token comes from where
// that token began. It returns -1 for text that stands for nothing in the
// statement and for a position outside of t.SQL; the position behind the last
// character, where Postgres reports an unexpected end, is inside.
func (t Translation) Origin(position int) int {
	p, offset := t.pieceAt(position)
	if p.copied {
		return p.origin + offset - p.start
	}
	return p.origin
}

// pieceAt returns the piece that holds the character at a position, and where
// that is in bytes of t.SQL; one that comes from nowhere if there is none.
func (t Translation) pieceAt(position int) (p piece, offset int) {
	offset = byteOffset(t.SQL, position)
	if offset < 0 || len(t.pieces) == 0 {
		return piece{origin: -1}, offset
	}
	i, found := slices.BinarySearchFunc(t.pieces, offset, func(p piece, offset int) int {
		return cmp.Compare(p.start, offset)
	})
	if !found {
		i--
	}
	return t.pieces[i], offset
}

// byteOffset is the inverse of CharPosition; -1 when text is shorter than
// position says.
func byteOffset(text string, position int) int {
	if position < 1 {
		return -1
	}
	offset := 0
	for ; position > 1; position-- {
		if offset >= len(text) {
			return -1
		}
		_, size := utf8.DecodeRuneInString(text[offset:])
		offset += size
	}
	return offset
}

// edit replaces text[start:end] by replacement, or by parts.
type edit struct {
	start, end  int
	replacement string
	parts       []part // nil: replacement
	order       editOrder
	far         int // the other end of what an insertion belongs to
	sequence    int // of what is wrapped twice, the later is outside
	standsFor   int // of an insertion, 1 more than the byte it comes from; 0 for none
}

// part is text of its own, or a piece of the text that moves: with the edits
// in it, and the places it comes from.
type part struct {
	text     string
	from, to int // bytes; the piece if to > from
}

// editOrder is how edits that begin at the same byte follow each other.
type editOrder uint8

const (
	insertedAfter  editOrder = iota // belongs to what ends there
	insertedBefore                  // belongs to what begins there
	replacing
)

// translationBuilder puts a Translation together.
type translationBuilder struct {
	sql    strings.Builder
	pieces []piece
}

// generate appends text that has no origin.
func (b *translationBuilder) generate(text string) { b.add(text, -1, false) }

// edited appends the part [from, to) of a text that begins at offset of the
// statement, with those of the edits, which are sorted, that lie in it and
// belong to it.
func (b *translationBuilder) edited(text string, offset int, edits []edit, from, to int) {
	low := from
	first, _ := slices.BinarySearchFunc(edits, from, func(e edit, from int) int { return cmp.Compare(e.start, from) })
	for _, e := range edits[first:] {
		if e.start > to {
			break
		}
		belongsBefore := e.order == insertedAfter && e.start == low
		belongsBehind := e.order == insertedBefore && e.start == to
		if e.start < from || e.end > to || belongsBefore || belongsBehind {
			continue
		}
		b.add(text[from:e.start], offset+from, true)
		origin := offset + e.start
		if e.order != replacing {
			origin = -1
			if e.standsFor > 0 {
				origin = offset + e.standsFor - 1
			}
		}
		b.add(e.replacement, origin, false)
		for _, p := range e.parts {
			if p.to > p.from {
				b.edited(text, offset, edits, p.from, p.to)
			} else {
				b.add(p.text, origin, false)
			}
		}
		from = e.end
	}
	b.add(text[from:to], offset+from, true)
}

func (b *translationBuilder) add(text string, origin int, copied bool) {
	if text == "" {
		return
	}
	b.pieces = append(b.pieces, piece{start: b.sql.Len(), origin: origin, copied: copied})
	b.sql.WriteString(text)
}

func (b *translationBuilder) translation() Translation {
	return Translation{SQL: b.sql.String(), pieces: b.pieces}
}

// sortEdits orders edits by place. Of two insertions at one place, that of the
// longer stretch is outside.
func sortEdits(edits []edit) {
	slices.SortStableFunc(edits, func(a, b edit) int {
		inside := cmp.Compare(a.sequence, b.sequence)
		if a.order == insertedBefore {
			inside = -inside
		}
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.order, b.order), cmp.Compare(b.far, a.far), inside)
	})
}
