package rewrite

// Split returns the statements of a query text without their semicolons and
// the white space around them; empty ones are dropped. Comments stay.
//
// It cuts where PostgreSQL's grammar ends a statement: not at a semicolon in
// parentheses (CREATE RULE … DO (…; …)) nor at one in the BEGIN ATOMIC … END
// body of a function. A text that Postgres cannot read ends in a statement
// that reaches to the end of the text.
func Split(sql string, o Lexical) []Span {
	var spans []Span
	s := splitter{lexer: lexer{sql: sql, lexical: o}}
	for start := 0; start < len(sql); {
		end := s.statement()
		if s.tokens > 0 {
			spans = append(spans, Span{Text: sql[start:end], Offset: start}.trimmed())
		}
		start = end + 1
	}
	return spans
}

// splitter finds the end of one statement after the other.
type splitter struct {
	lexer
	tokens int // of the current statement
}

// statement returns where the statement at pos ends: at its semicolon or at
// the end of the text. It moves past the semicolon.
func (s *splitter) statement() int {
	s.tokens = 0
	s.backticks = headOf(s.lexer) != native
	var body routineBody
	parentheses := 0
	for {
		token, ok, err := s.next()
		if err != nil {
			s.tokens++
			return len(s.sql)
		}
		if !ok {
			return len(s.sql)
		}
		text := s.sql[token.Start:token.End]
		switch {
		case token.Kind == Word:
			body.word(s.tokens, text, parentheses)
		case text == "(":
			parentheses++
		case text == ")":
			parentheses = max(parentheses-1, 0)
		case text == ";" && parentheses == 0 && body.depth == 0:
			return token.Start
		}
		body.previous = text
		s.tokens++
	}
}

// routineBody follows a statement's words into the body of CREATE FUNCTION or
// CREATE PROCEDURE.
type routineBody struct {
	previous string // token
	routine  bool   // the statement creates a function or procedure
	create   bool   // it began with CREATE
	depth    int    // of BEGIN ATOMIC … END and of CASE … END in it
}

// word takes the statement's next word, its nth token.
func (b *routineBody) word(n int, word string, parentheses int) {
	switch {
	case n == 0:
		b.create = isKeyword(word, "CREATE")
	case !b.create || b.previous == ".":
	case !b.routine:
		// CREATE FUNCTION or CREATE OR REPLACE FUNCTION
		atHead := n == 1 && isKeyword(b.previous, "CREATE") || n == 3 && isKeyword(b.previous, "REPLACE")
		b.routine = atHead && isAnyKeyword(word, "FUNCTION", "PROCEDURE")
	case b.depth == 0:
		if parentheses == 0 && isKeyword(word, "ATOMIC") && isKeyword(b.previous, "BEGIN") {
			b.depth = 1
		}
	case isKeyword(b.previous, "AS"): // a label may be any keyword
	case isKeyword(word, "CASE"):
		b.depth++
	case isKeyword(word, "END"):
		b.depth--
	}
}
