package rewrite

import "strings"

// clockKeywords are PostgreSQL's clock functions without brackets; true if a
// precision can follow.
var clockKeywords = map[string]bool{
	"current_date": false, "current_time": true, "current_timestamp": true, "localtime": true, "localtimestamp": true,
}

// clockFunctions do not move within a transaction, or within a statement;
// clock_timestamp() does, it is volatile. The last two are of compat/*.sql.
var clockFunctions = wordSet("now transaction_timestamp statement_timestamp curdate unix_timestamp")

// ResolveTemporal replaces what reads the clock in a translated predicate:
// current_date, current_timestamp(3), now() and their kin, by what value
// returns for the expression. value is called once for each distinct
// expression, so that all of its uses agree; its literal must be an operand as
// it stands, such as '2024-01-31'::date.
//
// A function of another schema than pg_catalog is the user's and stays, and so
// does age(x): it reads the clock, but has no expression of its own for it.
func ResolveTemporal(predicate string, o Lexical, value func(expression string) (literal string, err error)) (string, error) {
	t, err := newTokenText(Span{Text: predicate}, o)
	if err != nil {
		return "", err
	}
	literals := map[string]string{}
	for i := 0; i < len(t.tokens); {
		end := t.clockEnd(i)
		if end == i {
			i++
			continue
		}
		var expression strings.Builder
		for k := i; k < end; k++ {
			expression.WriteString(foldASCII(t.text(k)))
		}
		literal, known := literals[expression.String()]
		if !known {
			if literal, err = value(expression.String()); err != nil {
				return "", err
			}
			literals[expression.String()] = literal
		}
		t.replace(i, end, literal)
		i = end
	}
	sortEdits(t.edits)
	var b translationBuilder
	b.edited(t.sql, 0, t.edits, 0, len(t.sql))
	return b.translation().SQL, nil
}

// Calls returns the names, without their schemas, of the functions that a
// translated predicate calls, and its operators. Keywords that stand before a
// bracket are among them.
func Calls(predicate string, o Lexical) (functions, operators []string, err error) {
	t, err := newTokenText(Span{Text: predicate}, o)
	if err != nil {
		return nil, nil, err
	}
	for i := range t.tokens {
		switch {
		case t.is(i, Operator):
			operators = append(operators, t.text(i))
		case t.isName(i) && t.punctuation(i+1, "("):
			functions = append(functions, t.name(i))
		}
	}
	return functions, operators, nil
}

// clockEnd returns the place after the clock expression at i; i if there is
// none.
func (t *tokenText) clockEnd(i int) int {
	word := t.word(i)
	if word == "pg_catalog" && t.punctuation(i+1, ".") && t.is(i+2, Word) && clockFunctions[foldASCII(t.text(i+2))] &&
		t.punctuation(i+3, "(") && t.punctuation(i+4, ")") {
		return i + 5
	}
	precision, isKeyword := clockKeywords[word]
	switch {
	case t.punctuation(i+1, "."):
	case isKeyword && precision && t.punctuation(i+1, "(") && t.is(i+2, Number) && t.punctuation(i+3, ")"):
		return i + 4
	case isKeyword:
		return i + 1
	case clockFunctions[word] && t.punctuation(i+1, "(") && t.punctuation(i+2, ")"):
		return i + 3
	}
	return i
}
