package rewrite

import "strings"

// translateSpellings edits what is written in Databricks' way and what
// PostgreSQL's grammar rejects. What PostgreSQL gives a meaning keeps it:
// most functions are not touched, they are SQL functions (compat/*.sql), and
// an operator <=> of the user's own, as pgvector has one, stays that operator.
// In the dialect of Databricks what PostgreSQL means otherwise is edited too.
func (t *tokenText) translateSpellings(c Catalog) error {
	if err := t.findOwnOperators(c); err != nil {
		return err
	}
	if err := t.findOwnFunctions(c); err != nil {
		return err
	}
	for i := 0; i < len(t.tokens); {
		if err := t.refuseUnsupported(i); err != nil {
			return err
		}
		if err := t.translateCall(i); err != nil {
			return err
		}
		next, err := t.translateToken(i)
		if err != nil {
			return err
		}
		i = next
	}
	if t.dialect == Databricks {
		return t.translateDatabricks()
	}
	return nil
}

// translateToken translates what begins at i, unless it is a call or a clause,
// and returns the place to go on at.
func (t *tokenText) translateToken(i int) (next int, err error) {
	if t.dialect == Databricks {
		if next, found, err := t.translateDatabricksToken(i); found || err != nil {
			return next, err
		}
	}
	next = i + 1
	switch word := t.word(i); {
	case t.is(i, Operator):
		err = t.translateOperator(i)
	case t.is(i, Backtick):
		t.translateBacktick(i)
	case t.is(i, String):
		next = t.joinStrings(i)
	case t.is(i, Number):
		t.translateSuffix(i)
	case t.punctuation(i, "["):
		err = t.translateSubscript(i)
	case word == "interval":
		return t.translateInterval(i)
	case t.punctuation(i, "::"):
		err = t.translateType(i + 1)
	case word == "cast" && t.punctuation(i+1, "(") && t.dialect == Postgres:
		err = t.translateCast(i + 1)
	case (word == "timestamp_ntz" || word == "timestamp_ltz") && t.is(i+1, String):
		t.replace(i, i+1, typeNames[word])
	case word == "operator" && t.punctuation(i+1, "("):
		for ; next < t.skip(i+1); next++ {
			t.translateBacktick(next)
		}
	case valueFunctions[word] && t.punctuation(i+1, "(") && t.punctuation(i+2, ")"):
		if t.punctuation(i+3, "(") {
			return 0, t.syntaxError(i + 3)
		}
		t.replaceBytes(t.tokens[i].End, t.tokens[i+2].End, "")
		return i + 3, nil
	case unitFunctions[word] && t.punctuation(i+1, "("):
		t.translateUnit(i + 1)
	case word == "like" || word == "ilike":
		t.translateLikeList(i + 1)
	case (word == "rlike" || word == "regexp") && t.isInfixWord(i):
		err = t.translateRlike(i)
	case t.isDiv(i) && t.dialect == Postgres:
		err = t.translateDiv(i)
	case t.words(i, "lateral", "view"):
		err = t.translateLateralView(i)
	case quotableWords[word]:
		t.quoteColumn(i)
	}
	return next, err
}

// translateBacktick writes a name in backticks in double quotes.
func (t *tokenText) translateBacktick(i int) {
	if t.is(i, Backtick) {
		t.replace(i, i+1, quoteAlways(backtickName(t.text(i))))
	}
}

// valueFunctions are PostgreSQL's functions without brackets: it rejects (),
// Databricks writes them.
var valueFunctions = wordSet(`current_catalog current_date current_role current_time current_timestamp current_user
	localtime localtimestamp session_user user`)

// sameOperators are Databricks operators that PostgreSQL calls otherwise.
var sameOperators = map[string]string{"==": "=", "!<": ">=", "!>": "<="}

// findOwnOperators asks which of Databricks' operators in the text are
// operators of the database.
func (t *tokenText) findOwnOperators(c Catalog) error {
	var names []string
	for i := range t.tokens {
		if name := t.text(i); t.is(i, Operator) && (name == "<=>" || name == ">>>" || sameOperators[name] != "") {
			names = append(names, name)
		}
	}
	if len(names) == 0 || c == nil {
		return nil
	}
	var err error
	t.ownOperators, err = c.Operators(names)
	return err
}

func (t *tokenText) translateOperator(i int) error {
	switch operator := t.text(i); {
	case t.ownOperators[operator]:
	case operator == "<=>":
		return t.translateNullSafeEqual(i)
	case sameOperators[operator] != "":
		t.replace(i, i+1, sameOperators[operator])
	case operator == "!" && t.isBoundary(i-1):
		for ; t.operator(i, "!"); i++ {
			t.replaceBytes(t.tokens[i].Start, t.tokens[i].End, "NOT ")
		}
	}
	return nil
}

// translateNullSafeEqual makes a <=> b to (a IS NOT DISTINCT FROM b). The
// brackets are needed: IS binds weaker than every comparison.
func (t *tokenText) translateNullSafeEqual(i int) error {
	left, right := t.comparisonStart(i), t.operandEnd(i+1)
	if left < 0 || right == i+1 {
		return t.syntaxErrorWithHint(i, "Put brackets around the operands of <=>.")
	}
	if t.compared == nil {
		t.compared = map[int]int{}
	}
	if t.compared[left]++; t.compared[left] > maxNesting {
		return t.tooLong(i)
	}
	t.wrap(tokenRange{left, right}, "(", ")")
	t.replace(i, i+1, "IS NOT DISTINCT FROM")
	return nil
}

// translateLikeList makes LIKE ANY ('a', 'b') to LIKE ANY (ARRAY['a', 'b']).
// PostgreSQL reads one value in the brackets as an array, unless it is a query.
func (t *tokenText) translateLikeList(i int) {
	if w := t.word(i); w != "any" && w != "all" && w != "some" || !t.punctuation(i+1, "(") || t.startsQuery(i+2) {
		return
	}
	open, end := i+1, t.partner[i+1]
	list := t.is(open+1, String) && t.stringsEnd(open+1) == end && !strings.HasPrefix(t.text(open+1), "'{")
	for k := open + 1; k < end; k = t.skip(k) {
		list = list || t.punctuation(k, ",")
	}
	if !list {
		return
	}
	t.wrap(tokenRange{open + 1, end}, "ARRAY[", "]")
}

// unitFunctions take a unit as a bare word before two other arguments.
var unitFunctions = wordSet("date_add dateadd timestampadd date_diff datediff timestampdiff")

// units are the words they take. As a column's name none would be the first of
// three arguments of such a function.
var units = wordSet("microsecond millisecond second minute hour day dayofyear week month quarter year")

// translateUnit makes the unit behind the bracket at i a string.
func (t *tokenText) translateUnit(i int) {
	unit := t.word(i + 1)
	if !units[unit] || !t.punctuation(i+2, ",") {
		return
	}
	if t.commas(i) == 2 {
		t.replace(i+1, i+2, "'"+unit+"'")
	}
}

// quoteAlways quotes a name even where it could be bare: what was quoted stays
// so, and does not run into its neighbours.
func quoteAlways(name string) string {
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
