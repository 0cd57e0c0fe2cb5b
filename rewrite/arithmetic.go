package rewrite

// term is one operand of a chain of operators, with its prefix operators.
type term struct {
	tokenRange
	primary int // behind the prefix operators
}

// chain is operands and the binary operators between them that bind stronger
// than a comparison: as many operators as terms less one.
type chain struct {
	terms     []term
	operators []int // places
}

// chainAround returns the chain that holds the operator at i; false if it
// cannot be told.
func (t *tokenText) chainAround(i int) (chain, bool) {
	for at := t.boundaryBefore(i); at < i; {
		c, end := t.readChain(at)
		if end > i {
			return c, true
		}
		at = t.behindChain(at, end)
	}
	return chain{}, false
}

// behindChain returns where the next chain can begin, after one at i that ends
// at end: behind the operators without an operand, if it is none.
func (t *tokenText) behindChain(i, end int) int {
	if end > i {
		return end
	}
	for t.is(i, Operator) && !t.comparison(i) {
		i++
	}
	return max(i, end+1)
}

// readChain reads the chain at i and returns the place after it. Each operator
// of a chain asks for it, so it is read once.
func (t *tokenText) readChain(i int) (chain, int) {
	if known, found := t.chains[i]; found {
		return known.chain, known.end
	}
	c, end := t.newChain(i)
	if t.chains == nil {
		t.chains = map[int]endedChain{}
	}
	t.chains[i] = endedChain{c, end}
	return c, end
}

// endedChain is a chain and the place after it.
type endedChain struct {
	chain
	end int
}

func (t *tokenText) newChain(i int) (chain, int) {
	var c chain
	end := i
	for {
		start := i
		for t.is(i, Operator) && !t.comparison(i) {
			i++
		}
		next := t.primaryEnd(i)
		if next == i {
			break
		}
		end = t.postfixEnd(next)
		c.terms = append(c.terms, term{tokenRange{start, end}, i})
		if i = t.infixEnd(end); i == end {
			return c, end
		}
		c.operators = append(c.operators, end)
	}
	if len(c.terms) > 0 { // the last operator has no operand
		c.operators = c.operators[:len(c.terms)-1]
	}
	return c, end
}

// operands returns the operands of operator k of the chain, by the levels of
// its operators: those of a lower level bind stronger, those of one level group
// from the left.
func (c chain) operands(k int, level func(place int) int) (left, right tokenRange) {
	own := level(c.operators[k])
	first, last := k, k+1
	for first > 0 && level(c.operators[first-1]) <= own {
		first--
	}
	for last < len(c.operators) && level(c.operators[last]) < own {
		last++
	}
	return tokenRange{c.terms[first].from, c.terms[k].to}, tokenRange{c.terms[k+1].from, c.terms[last].to}
}

// level returns how strongly the binary operator at a place binds in the
// dialect; 1 is the strongest.
func (t *tokenText) level(place int) int {
	operator := t.text(place)
	switch {
	case t.word(place) == "div", operator == "*", operator == "/", operator == "%":
		return 2
	case operator == "+", operator == "-":
		return 3
	case t.dialect == Postgres && operator == "^":
		return 1
	case t.dialect == Postgres:
		return 4
	}
	switch operator {
	case "||":
		return 3
	case "<<", ">>":
		return 4
	case "&":
		return 5
	case "^":
		return 6
	}
	return 7
}

// isDiv says whether the word at i is Databricks' operator DIV.
func (t *tokenText) isDiv(i int) bool { return t.word(i) == "div" && t.isInfixWord(i) }

// isInfixWord says whether the word at i is an operator, and not an alias.
func (t *tokenText) isInfixWord(i int) bool {
	before := i - 1
	if t.word(before) == "not" {
		before--
	}
	if !t.endsOperand(before) || !t.startsPrimary(i+1) {
		return false
	}
	return !t.punctuation(i+1, "(") || !t.inFromItem(i)
}

// inFromItem says whether what is at i follows a table of a FROM clause.
func (t *tokenText) inFromItem(i int) bool {
	for k := i - 1; k >= 0; k-- {
		switch w := t.word(k); {
		case t.closes(k):
			k = t.partner[k]
		case w == "from", w == "join":
			return true
		case t.partner[k] > k, leftBoundaries[w], w == "select":
			return false
		}
	}
	return false
}

// translateDiv makes a DIV b to a call.
func (t *tokenText) translateDiv(i int) error {
	c, ok := t.chainAround(i)
	if ok {
		for k, place := range c.operators {
			if place == i {
				left, right := c.operands(k, t.level)
				t.wrapInCall(i, tokenRange{left.from, right.to}, "rwproxy_compat.integral_divide(", ")")
				t.replace(i, i+1, ",")
				return nil
			}
		}
	}
	return t.syntaxErrorWithHint(i, "Put brackets around the operands of DIV.")
}
