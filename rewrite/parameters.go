package rewrite

import (
	"strconv"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// FirstParameter returns the byte offset of a statement's first parameter
// ($1), -1 if it has none.
func FirstParameter(sql string, o Lexical) int {
	tokens, _ := Tokens(sql, o) // those before an error are returned with it
	for _, token := range tokens {
		if token.Kind == Parameter {
			return token.Start
		}
	}
	return -1
}

// SubstituteParameters replaces every parameter of a statement by what literal
// returns for its number, from 1, in parentheses: so it stays one operand
// wherever it stands. The positions of the result lead back to the statement
// by Origin.
//
// The literal has to keep the type that the parameter was given, as
// '2024-01-31'::date does.
func SubstituteParameters(sql string, o Lexical, literal func(n int) string) (Translation, error) {
	return replaceParameters(sql, o, func(n int) string { return Bracketed(literal(n)) })
}

// Bracketed is what SubstituteParameters puts in the place of a parameter.
func Bracketed(literal string) string { return "(" + literal + ")" }

func replaceParameters(sql string, o Lexical, replacement func(n int) string) (Translation, error) {
	tokens, err := Tokens(sql, o)
	if err != nil {
		return Translation{}, err
	}
	var edits []edit
	for _, token := range tokens {
		if token.Kind != Parameter {
			continue
		}
		text := sql[token.Start:token.End]
		n, err := strconv.ParseUint(text[1:], 10, 16)
		if err != nil || n == 0 {
			return Translation{}, NoParameter(sql, token.Start)
		}
		edits = append(edits, edit{start: token.Start, end: token.End, replacement: replacement(int(n)), order: replacing})
	}
	var b translationBuilder
	b.edited(sql, 0, edits, 0, len(sql))
	return b.translation(), nil
}

// DeclareParameters casts parameters to the types that they are declared with,
// by name: so Postgres infers what it would have been told of them. The type
// of one that is not declared, or as "", is left open.
func DeclareParameters(sql string, o Lexical, types []string) (Translation, error) {
	return replaceParameters(sql, o, func(n int) string {
		parameter := "$" + strconv.Itoa(n)
		if n > len(types) || types[n-1] == "" {
			return parameter
		}
		return Bracketed(parameter + "::" + types[n-1])
	})
}

// NoParameter returns Postgres's error for a parameter, at an offset of the
// statement, that has no value.
func NoParameter(sql string, offset int) *pgdiag.Diagnostic {
	end := offset + 1
	for end < len(sql) && isDigit(sql[end]) {
		end++
	}
	return pgdiag.New("42P02", "there is no parameter "+excerpt(sql[offset:end])).At(CharPosition(sql, offset))
}
