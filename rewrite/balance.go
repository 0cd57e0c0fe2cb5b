package rewrite

// balanced checks that the brackets among the tokens from to end (exclusive)
// pair up, and that no semicolon is among them.
func (p *parser) balanced(from, end int) error {
	var open []int
	for i := from; i < end; i++ {
		switch text := p.text(i); text {
		case "(", "[":
			open = append(open, i)
		case ")", "]":
			if len(open) == 0 || p.text(open[len(open)-1]) != opening[text] {
				return p.syntaxError(i, `syntax error at or near "`+text+`": it closes nothing`)
			}
			open = open[:len(open)-1]
		case ";":
			return p.syntaxError(i, `syntax error at or near ";"`)
		}
	}
	if len(open) > 0 {
		return p.syntaxError(open[0], `syntax error at or near "`+p.text(open[0])+`": it is never closed`)
	}
	return nil
}

var opening = map[string]string{")": "(", "]": "["}

// top returns the first place among the tokens from to end, outside brackets,
// that match accepts; -1 if there is none. match sees an opening bracket as
// outside itself.
func (p *parser) top(from, end int, match func(i int) bool) int {
	depth := 0
	for i := from; i < end; i++ {
		if depth == 0 && match(i) {
			return i
		}
		switch p.text(i) {
		case "(", "[":
			depth++
		case ")", "]":
			depth = max(depth-1, 0)
		}
	}
	return -1
}

// skipGroup moves past the parenthesised group that must be next.
func (p *parser) skipGroup() error {
	if !p.symbolAt(p.i, "(") {
		return p.expected(p.i, `"("`)
	}
	end := p.closing(p.i)
	if end < 0 {
		return p.balanced(p.i, len(p.tokens))
	}
	if err := p.balanced(p.i, end+1); err != nil {
		return err
	}
	p.i = end + 1
	return nil
}

// closing returns the token that closes the parenthesis at token i, -1 if none
// does.
func (p *parser) closing(i int) int {
	depth := 0
	for ; i < len(p.tokens); i++ {
		switch p.text(i) {
		case "(":
			depth++
		case ")":
			depth--
			if depth == 0 {
				return i
			}
		}
	}
	return -1
}
