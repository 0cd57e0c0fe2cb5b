package rewrite

// isOurInsert reports that the statement at l, which begins with INSERT or
// WITH, is an INSERT that PostgreSQL does not have. It decides by what
// PostgreSQL's grammar never has at that place, so an INSERT of PostgreSQL's
// is none of ours whatever its tables and columns are called.
func (l *lexer) isOurInsert() bool {
	token, text := l.head()
	if token.Kind == Word && isKeyword(text, "WITH") {
		if !l.toInsert() {
			return false
		}
	}
	switch _, text := l.head(); {
	case isKeyword(text, "OVERWRITE"):
		return true
	case isKeyword(text, "WITH"):
		_, text = l.head()
		return isKeyword(text, "SCHEMA")
	case !isKeyword(text, "INTO"):
		return false
	}
	token, text = l.head()
	if token.Kind == Word && isKeyword(text, "TABLE") {
		return true
	}
	for isNameToken(token) {
		if token, text = l.head(); text != "." {
			return l.departs(token, text)
		}
		token, _ = l.head()
	}
	return false
}

// toInsert moves past the INSERT of a statement that began with WITH. INTO is
// reserved, so no common table expression is meant.
func (l *lexer) toInsert() bool {
	depth := 0
	for {
		token, text := l.head()
		switch {
		case text == "", text == ";" && depth == 0:
			return false
		case text == "(":
			depth++
		case text == ")":
			depth--
		case depth > 0 || token.Kind != Word:
		case isKeyword(text, "SELECT"):
			return false
		case isKeyword(text, "INSERT"):
			if l.followedBy("INTO", "OVERWRITE", "WITH") {
				return true
			}
		}
	}
}

// departs reports that an INSERT leaves PostgreSQL's grammar between its
// target and its query. token is the one behind the target.
func (l *lexer) departs(token Token, text string) bool {
	alias, list := false, false
	for ; text != ""; token, text = l.head() {
		switch {
		case text == "(" && !list:
			list = true
			if !l.skipGroup() {
				return false
			}
		case token.Kind == Word && isKeyword(text, "REPLACE"):
			return true
		case token.Kind == Word && isKeyword(text, "OVERRIDING") && l.followedBy("SYSTEM", "USER"):
			l.head()                       // SYSTEM, USER
			l.head()                       // VALUE
			return l.followedBy("REPLACE") // where PostgreSQL has a query
		case token.Kind == Word && isKeyword(text, "BY") && l.followedBy("NAME"):
			return true
		case token.Kind == Word && isKeyword(text, "PARTITION") && l.followedBy("("):
			return true
		case token.Kind == Word && isKeyword(text, "AS") && !alias:
			alias = true
			l.head()
		case isNameToken(token) && isAlias(token, text) && !alias:
			alias = true
		default:
			return false
		}
	}
	return false
}

// followedBy reports that one of the words is next. l stays where it is.
func (l *lexer) followedBy(words ...string) bool {
	ahead := *l
	_, text := ahead.head()
	return isAnyKeyword(text, words...)
}

// isAlias reports that a name can be the alias of a target without AS, and is
// not what PostgreSQL has behind one.
func isAlias(token Token, text string) bool {
	return token.Kind != Word || !reserved[foldASCII(text)] && !isAnyKeyword(text, "VALUES", "OVERRIDING")
}

func isNameToken(token Token) bool {
	return token.Kind == Word || token.Kind == QuotedIdentifier || token.Kind == Backtick
}

// skipGroup moves past the rest of a parenthesised group.
func (l *lexer) skipGroup() bool {
	for depth := 1; depth > 0; {
		switch _, text := l.head(); text {
		case "":
			return false
		case "(":
			depth++
		case ")":
			depth--
		}
	}
	return true
}

// head returns the next token and its text, "" at the end of what can be read.
func (l *lexer) head() (Token, string) {
	token, ok, err := l.next()
	if err != nil || !ok {
		return Token{Kind: Punctuation}, ""
	}
	return token, l.sql[token.Start:token.End]
}
