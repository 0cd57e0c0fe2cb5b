package rewrite

import (
	"errors"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// PlacedError is a refusal by TranslateQuery or TranslatePredicate. A Span does
// not carry the text before it, so the Diagnostic's Position is exact only if
// that text is ASCII; Locate makes it exact.
type PlacedError struct {
	*pgdiag.Diagnostic
	Offset int // of the refused token in the statement, in bytes
}

// Unwrap returns the Diagnostic.
func (e *PlacedError) Unwrap() error { return e.Diagnostic }

// Locate returns err with the exact position in the statement that the
// translated Span was cut from. An error of another kind is returned as it is.
func Locate(err error, statement string) error {
	var placed *PlacedError
	if !errors.As(err, &placed) {
		return err
	}
	d := *placed.Diagnostic
	return d.At(CharPosition(statement, placed.Offset))
}
