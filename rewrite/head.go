package rewrite

// form is what the first words of a statement say it is.
type form uint8

const (
	native form = iota // PostgreSQL's own: not ours to read
	createStreamingTable
	createOrReplaceStreamingTable
	createOrRefreshOther // CREATE OR REFRESH of something else
	createPrivate
	createTemporary
	createFlow
	createOrReplaceFlow
	refreshTable
	refreshMaterializedView
	refreshOther
	dropTable
	dropStreamingTable
	dropFlow
	alterStreamingTable
	explainRefresh
	explainInsert
	prepare // PREPARE … AS a statement of ours
	insert
	describe
	showCreateTable
	showProperties
	restore
	grantRefresh
	createMaterializedView
	createOrReplaceMaterializedView
)

// heads are the first words that make a statement ours. Of two heads the
// longer one comes first.
var heads = []struct {
	words []string
	form  form
}{
	{[]string{"CREATE", "OR", "REFRESH", "STREAMING"}, createStreamingTable},
	{[]string{"CREATE", "STREAMING"}, createStreamingTable},
	{[]string{"CREATE", "OR", "REPLACE", "STREAMING"}, createOrReplaceStreamingTable},
	{[]string{"CREATE", "OR", "REFRESH", "PRIVATE"}, createPrivate},
	{[]string{"CREATE", "PRIVATE", "STREAMING"}, createPrivate},
	{[]string{"CREATE", "TEMPORARY", "STREAMING"}, createTemporary},
	{[]string{"CREATE", "TEMP", "STREAMING"}, createTemporary},
	{[]string{"CREATE", "OR", "REFRESH", "FLOW"}, createOrReplaceFlow},
	{[]string{"CREATE", "OR", "REPLACE", "FLOW"}, createOrReplaceFlow},
	{[]string{"CREATE", "OR", "REFRESH"}, createOrRefreshOther},
	{[]string{"CREATE", "FLOW"}, createFlow},
	{[]string{"REFRESH", "STREAMING"}, refreshTable},
	{[]string{"REFRESH", "TABLE"}, refreshTable},
	{[]string{"REFRESH", "MATERIALIZED"}, refreshMaterializedView},
	{[]string{"REFRESH"}, refreshOther},
	{[]string{"DROP", "STREAMING"}, dropStreamingTable},
	{[]string{"DROP", "TABLE"}, dropTable},
	{[]string{"DROP", "FLOW"}, dropFlow},
	{[]string{"ALTER", "STREAMING"}, alterStreamingTable},
	{[]string{"DESCRIBE"}, describe},
	{[]string{"DESC"}, describe},
	{[]string{"SHOW", "CREATE", "TABLE"}, showCreateTable},
	{[]string{"SHOW", "TBLPROPERTIES"}, showProperties},
	{[]string{"RESTORE"}, restore},
	{[]string{"CREATE", "MATERIALIZED", "VIEW"}, createMaterializedView},
	{[]string{"CREATE", "OR", "REPLACE", "MATERIALIZED"}, createOrReplaceMaterializedView},
}

// longestHead is the number of words in the longest head.
const longestHead = 4

// headOf reads the first words of the statement at l. It is handed a copy of
// the lexer, and reads no further than a word that decides.
func headOf(l lexer) form {
	l.backticks = true
	start := l
	words := l.words(longestHead, "CREATE", "REFRESH", "DROP", "ALTER", "EXPLAIN", "INSERT", "WITH",
		"DESCRIBE", "DESC", "SHOW", "RESTORE", "GRANT", "REVOKE", "PREPARE")
	switch {
	case len(words) == 0:
		return native
	case isKeyword(words[0], "PREPARE"):
		return formIf(l.prepares(), prepare)
	case isKeyword(words[0], "EXPLAIN") && start.explainsInsert():
		return explainInsert
	case isKeyword(words[0], "EXPLAIN"):
		return formIf(l.explained(), explainRefresh)
	case isAnyKeyword(words[0], "INSERT", "WITH"):
		return formIf(start.isOurInsert(), insert)
	case isAnyKeyword(words[0], "GRANT", "REVOKE"):
		return formIf(start.grantsRefresh(), grantRefresh)
	}
	for _, head := range heads {
		if startsWith(words, head.words) {
			return head.form
		}
	}
	return native
}

// formIf is the form of a statement that is ours only if it goes on as it must.
func formIf(ours bool, f form) form {
	if ours {
		return f
	}
	return native
}

// words returns up to n of the words at l, none if the first is not one of
// firsts. After EXPLAIN and PREPARE it stops. l moves past the words.
func (l *lexer) words(n int, firsts ...string) []string {
	var words []string
	for len(words) < n {
		before := *l
		token, ok, err := l.next()
		if err != nil || !ok || token.Kind != Word {
			*l = before
			break
		}
		word := l.sql[token.Start:token.End]
		if len(words) == 0 && !isAnyKeyword(word, firsts...) {
			return nil
		}
		words = append(words, word)
		if isAnyKeyword(words[0], "EXPLAIN", "PREPARE") {
			break
		}
	}
	return words
}

// explained reports that after EXPLAIN and its options, at l, a REFRESH of a
// table follows. REFRESH MATERIALIZED VIEW can be explained by Postgres.
func (l *lexer) explained() bool {
	depth, refresh := 0, false
	for {
		token, ok, err := l.next()
		if err != nil || !ok {
			return false
		}
		word := l.sql[token.Start:token.End]
		switch {
		case word == "(":
			depth++
		case word == ")":
			depth--
		case word == ";":
			return false
		case depth > 0:
		case refresh:
			return isAnyKeyword(word, "STREAMING", "TABLE")
		case isKeyword(word, "REFRESH"):
			refresh = true
		case !isAnyKeyword(word, "ANALYZE", "ANALYSE", "VERBOSE"):
			return false
		}
	}
}

// explainsInsert reports that the EXPLAIN at l is of an INSERT of ours.
func (l *lexer) explainsInsert() bool {
	l.head() // EXPLAIN
	for {
		if l.followedBy("INSERT", "WITH") {
			return l.isOurInsert()
		}
		switch _, text := l.head(); {
		case text == "(":
			if !l.skipGroup() {
				return false
			}
		case !isAnyKeyword(text, "ANALYZE", "ANALYSE", "VERBOSE"):
			return false
		}
	}
}

// prepares reports that behind PREPARE, at l, there are a name and a statement
// that only we have.
func (l *lexer) prepares() bool {
	token, _ := l.head()
	if !isNameToken(token) {
		return false
	}
	_, text := l.head()
	if text == "(" {
		if !l.skipGroup() {
			return false
		}
		_, text = l.head()
	}
	if !isKeyword(text, "AS") {
		return false
	}
	switch headOf(*l) {
	case createStreamingTable, createFlow, refreshTable, dropStreamingTable, alterStreamingTable, insert:
		return true
	}
	return false
}

// grantsRefresh reports that the GRANT or REVOKE at l names a privilege REFRESH.
// GRANT refresh TO … is of a role of that name.
func (l *lexer) grantsRefresh() bool {
	refresh := false
	for {
		token, ok, err := l.next()
		if err != nil || !ok || l.sql[token.Start] == ';' {
			return false
		}
		switch word := l.sql[token.Start:token.End]; {
		case token.Kind != Word:
		case isKeyword(word, "REFRESH"):
			refresh = true
		case isKeyword(word, "ON"):
			return refresh
		case isAnyKeyword(word, "TO", "FROM"):
			return false
		}
	}
}

func startsWith(words, head []string) bool {
	if len(words) < len(head) {
		return false
	}
	for i, keyword := range head {
		if !isKeyword(words[i], keyword) {
			return false
		}
	}
	return true
}

func isAnyKeyword(word string, keywords ...string) bool {
	for _, keyword := range keywords {
		if isKeyword(word, keyword) {
			return true
		}
	}
	return false
}
