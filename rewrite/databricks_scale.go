package rewrite

import "strconv"

// textFunction makes a value a text as Databricks writes it.
const textFunction = databricksPrefix + "string("

// textOperand is an operand of which a text is made.
type textOperand struct {
	tokenRange
	at     int // the token that makes the text
	around int // the SELECT it is in, -1 without
}

// asText makes the operand in r a text; what is wrong with it is wrong at token
// at. How is decided by writeTexts, when the FROM clause around it is
// translated and the types of its columns can be asked for.
func (t *tokenText) asText(at int, r tokenRange) {
	t.texts = append(t.texts, textOperand{r, at, t.selectAround(r.from)})
}

// selectAround returns the place of the SELECT that token i belongs to, -1
// without.
func (t *tokenText) selectAround(i int) int {
	for k := i - 1; k >= 0; k-- {
		switch {
		case t.closes(k):
			k = t.partner[k]
		case t.word(k) == "select":
			return k
		}
	}
	return -1
}

// writeTexts writes the operands in the SELECT s as texts. A decimal's text
// has all the digits behind the point that its type declares, and PostgreSQL
// tells the types of columns, literals and casts only: of coalesce(7, 0.5) it
// forgets that Databricks' type has one digit.
func (t *tokenText) writeTexts(s selectClauses, c Catalog) error {
	columns := map[string][]Column{} // by what is in front of their names
	for _, operand := range t.texts {
		if operand.around != s.at {
			continue
		}
		bare := t.withoutBrackets(operand.tokenRange)
		scaled := t.isScaledConstant(bare)
		inFrom := s.from.from <= operand.from && operand.from < s.from.to
		if isName := bare.from < bare.to && t.nameEnd(bare.from) == bare.to; isName && !s.from.empty() && !inFrom && c != nil {
			var err error
			if scaled, err = t.isScaledColumn(bare, s, c, columns); err != nil {
				return err
			}
		}
		t.writeText(operand, scaled)
	}
	return nil
}

// writeOtherTexts writes the operands that are in no SELECT.
func (t *tokenText) writeOtherTexts() {
	for _, operand := range t.texts {
		if operand.around < 0 {
			t.writeText(operand, t.isScaledConstant(t.withoutBrackets(operand.tokenRange)))
		}
	}
}

func (t *tokenText) writeText(operand textOperand, scaled bool) {
	if scaled {
		t.wrapInCall(operand.at, operand.tokenRange, "cast(", " as text)")
		return
	}
	t.wrapInCall(operand.at, operand.tokenRange, textFunction, ")")
}

func (t *tokenText) withoutBrackets(r tokenRange) tokenRange {
	for t.punctuation(r.from, "(") && t.skip(r.from) == r.to {
		r = tokenRange{r.from + 1, r.to - 1}
	}
	return r
}

// isScaledConstant says whether r is a number, or a cast to DECIMAL.
func (t *tokenText) isScaledConstant(r tokenRange) bool {
	if (t.operator(r.from, "-") || t.operator(r.from, "+")) && r.to == r.from+2 {
		r.from++
	}
	if r.to == r.from+1 {
		return t.is(r.from, Number) && isDecimal(t.text(r.from))
	}
	isCast := t.word(r.from) == "cast" && t.punctuation(r.from+1, "(") && t.skip(r.from+1) == r.to
	last := -1 // the type
	for k := r.from; k < r.to; k = t.skip(k) {
		if isCast && k == r.from+1 {
			for as := k + 1; as < r.to-1; as = t.skip(as) {
				if t.word(as) == "as" {
					last = as + 1
				}
			}
		}
		if !isCast && t.punctuation(k, "::") {
			last = k + 1
		}
	}
	end := r.to
	if isCast {
		end--
	}
	return last > 0 && castFunctions[t.word(last)] == "to_decimal" && t.typeEnd(last) == end && t.termIs(r, isCast)
}

// termIs says whether r is one term with its casts, and not a chain of
// operators of which the last is cast.
func (t *tokenText) termIs(r tokenRange, isCast bool) bool {
	next := t.primaryEnd(r.from)
	return isCast || next > r.from && t.postfixEnd(next) == r.to
}

// isScaledColumn says whether r names a column of the tables of s that is a
// decimal with a declared scale.
func (t *tokenText) isScaledColumn(r tokenRange, s selectClauses, c Catalog, known map[string][]Column) (bool, error) {
	name := r.to - 1
	star, key := tokenRange{}, ""
	if name > r.from {
		star = tokenRange{r.from, name} // with the dot
		key = t.sql[t.tokens[star.from].Start:t.tokens[star.to-1].End]
	}
	key += strconv.Itoa(s.at)
	columns, found := known[key]
	if !found {
		var err error
		if columns, err = t.describe(s.at, c, " SELECT ", star, "* ", s.from); err != nil {
			if t.isNested(s.at) {
				return false, t.unsupported(r.from, "a text made of a column that only the query around it tells", "Cast it to DECIMAL(p, s) first, or to another type.")
			}
			return false, err
		}
		known[key] = columns
	}
	scaled, count := false, 0
	for _, column := range columns {
		if column.Name == t.name(name) {
			scaled = column.Scaled
			count++
		}
	}
	return scaled && count == 1, nil
}
