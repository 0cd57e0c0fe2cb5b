package rewrite

import (
	"cmp"
	"slices"
	"strings"
)

// translateChain translates the operators of the chain around the operator at
// i, unless it is done.
func (t *tokenText) translateChain(i int, done map[int]bool) error {
	if done[i] {
		return nil
	}
	c, ok := t.chainAround(i)
	if !ok {
		for ; t.is(i, Operator) && !t.comparison(i); i++ {
			done[i] = true // nor have those behind it operands
		}
		return nil
	}
	if len(c.operators) > maxNesting {
		return t.tooLong(c.operators[maxNesting])
	}
	for _, place := range c.operators {
		done[place] = true
	}
	// What binds stronger is inside, and comes first.
	order := make([]int, len(c.operators))
	mixed := false
	for k, place := range c.operators {
		order[k] = k
		mixed = mixed || len(c.operators) > 1 && regrouped[t.text(place)]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(t.level(c.operators[a]), t.level(c.operators[b]))
	})
	for _, operand := range c.terms {
		if t.operator(operand.from, "~") && len(c.operators) > 0 {
			t.wrap(operand.tokenRange, "(", ")") // it binds weaker in PostgreSQL
		}
	}
	for _, k := range order {
		t.translateBinary(c, k, mixed)
	}
	return nil
}

// regrouped are operators that PostgreSQL groups otherwise among others.
var regrouped = map[string]bool{"||": true, "<<": true, ">>": true, "&": true, "^": true, "|": true}

// translateBinary translates operator k of a chain. mixed says that brackets
// have to group the operators as Databricks does.
func (t *tokenText) translateBinary(c chain, k int, mixed bool) {
	place := c.operators[k]
	left, right := c.operands(k, t.level)
	both := tokenRange{left.from, right.to}
	switch operator := t.text(place); {
	case t.word(place) == "div":
		t.wrapInCall(place, both, "rwproxy_compat.integral_divide(", ")")
		t.replace(place, place+1, ",")
	case operator == "/":
		t.wrapInCall(place, both, databricksPrefix+"divide(", ")")
		t.replace(place, place+1, ",")
	case operator == "||":
		t.asText(place, left)
		t.asText(place, right)
		if mixed {
			t.wrap(both, "(", ")")
		}
	case operator == "^":
		t.replace(place, place+1, "#")
		t.wrap(both, "(", ")")
	case operator == "+" || operator == "-":
		name := sumFunctions[operator]
		if t.isDays(right) || t.isDays(left) {
			name = dayFunctions[operator]
		}
		t.wrapInCall(place, both, databricksPrefix+name, ")")
		t.replace(place, place+1, ",")
	case mixed && t.level(place) > 2:
		t.wrap(both, "(", ")")
	}
}

// The functions that + and - are, and those of a date and a constant of days.
var (
	sumFunctions = map[string]string{"+": "add(", "-": "subtract("}
	dayFunctions = map[string]string{"+": "plus(", "-": "minus("}
)

// isDays says whether r is an interval constant of days, weeks, months or
// years: a date with it is a date.
func (t *tokenText) isDays(r tokenRange) bool {
	if t.word(r.from) != "interval" {
		return false
	}
	if literal := t.interval(r.from); literal.end == r.to {
		return !slices.ContainsFunc(literal.parts, func(p intervalPart) bool { return !dayUnits[p.unit] })
	}
	if !t.is(r.from+1, String) {
		return false
	}
	for k := r.from + 2; k < r.to; k++ { // YEAR TO MONTH
		if w := t.word(k); w != "to" && !dayUnits[w] {
			return false
		}
	}
	if r.to > r.from+2 {
		return true
	}
	words := strings.Fields(strings.Trim(foldASCII(t.text(r.from+1)), "'"))
	for i, word := range words {
		if i%2 == 0 && !isDecimal(word) || i%2 == 1 && !dayUnits[intervalUnits[word]] {
			return false
		}
	}
	return len(words) > 0 && len(words)%2 == 0
}

var dayUnits = wordSet("day week month year")

// termAround returns the operand that the postfix at i belongs to.
func (t *tokenText) termAround(i int) (term, bool) {
	for at := t.boundaryBefore(i); at < i; {
		c, end := t.readChain(at)
		for _, operand := range c.terms {
			if operand.primary < i && i < operand.to {
				return operand, true
			}
		}
		at = t.behindChain(at, end)
	}
	return term{}, false
}
