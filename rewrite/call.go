package rewrite

import "strings"

// call is a call of a function by a bare, unqualified name.
type call struct {
	name        string
	at          int // its place
	open, close int // of its brackets
	distinct    int // the place of DISTINCT or ALL, -1 without
	arguments   []tokenRange
	orderBy     tokenRange // ORDER BY in the brackets
	within      tokenRange // ORDER BY of WITHIN GROUP
	filter      tokenRange // the condition of FILTER (WHERE …)
	over        tokenRange // OVER and its window
	end         int        // the place after all of it
}

// inside is what stands in the brackets.
func (c call) inside() tokenRange { return tokenRange{c.open + 1, c.close} }

// whole is the call with its clauses.
func (c call) whole() tokenRange { return tokenRange{c.at, c.end} }

// readCall reads the call at i; false if there is none.
func (t *tokenText) readCall(i int) (call, bool) {
	name := t.word(i)
	if name == "" || !t.punctuation(i+1, "(") {
		return call{}, false
	}
	c := call{name: name, at: i, open: i + 1, close: t.partner[i+1], distinct: -1}
	start := c.open + 1
	if w := t.word(start); w == "distinct" || w == "all" {
		c.distinct = start
		start++
	}
	for k := start; k <= c.close; k = t.skip(k) {
		switch {
		case k == c.close, t.punctuation(k, ","), t.words(k, "order", "by"):
			if k > start {
				c.arguments = append(c.arguments, tokenRange{start, k})
			}
			start = k + 1
		}
		if t.words(k, "order", "by") {
			c.orderBy = tokenRange{k, c.close}
			break
		}
	}
	c.readClauses(t)
	return c, true
}

// readClauses reads what follows the brackets.
func (c *call) readClauses(t *tokenText) {
	k := c.close + 1
	if t.words(k, "within", "group") && t.punctuation(k+2, "(") {
		c.within = tokenRange{k + 3, t.partner[k+2]}
		k = t.skip(k + 2)
	}
	if t.word(k) == "filter" && t.punctuation(k+1, "(") && t.word(k+2) == "where" {
		c.filter = tokenRange{k + 3, t.partner[k+1]}
		k = t.skip(k + 1)
	}
	if t.word(k) == "over" && (t.punctuation(k+1, "(") || t.isName(k+1) && !reserved[t.word(k+1)]) {
		c.over = tokenRange{k, t.skip(k + 1)}
		k = c.over.to
	}
	c.end = k
}

// findOwnFunctions asks which of the functions that a translation is for are
// the user's own: those stay what they are.
func (t *tokenText) findOwnFunctions(c Catalog) error {
	var names []string
	seen := map[string]bool{}
	for i := range t.tokens {
		name := t.word(i)
		translated := callTranslations[name] != nil || unsupportedFunctions[name] != "" ||
			t.dialect == Databricks && (databricksCalls[name] != nil || databricksAlone[name] != "")
		if name == "" || seen[name] || !t.punctuation(i+1, "(") || !translated {
			continue
		}
		seen[name] = true
		names = append(names, name)
	}
	if len(names) == 0 || c == nil {
		return nil
	}
	var err error
	t.ownFunctions, err = c.Functions(names)
	return err
}

// translateCall translates the call at i, if there is one that needs it.
func (t *tokenText) translateCall(i int) error {
	c, ok := t.readCall(i)
	switch {
	case !ok:
		return nil
	case t.ownFunctions[c.name] && t.dialect == Databricks && databricksCalls[c.name] != nil:
		return t.unsupported(i, "the function "+c.name+", as the database has one of its own,", "Put its schema in front of the name of the one that is meant.")
	case t.ownFunctions[c.name]:
		return nil
	}
	if hint := unsupportedFunctions[c.name]; hint != "" && t.callable(i) {
		return t.unsupported(i, "the function "+c.name, hint)
	}
	if t.dialect == Databricks {
		if hint := databricksAlone[c.name]; hint != "" && t.callable(i) {
			return t.unsupported(i, "the function "+c.name, hint)
		}
		if translate := databricksCalls[c.name]; translate != nil {
			return translate(t, c)
		}
	}
	if translate := callTranslations[c.name]; translate != nil {
		return translate(t, c)
	}
	return nil
}

// callable says whether what looks like a call at i is one, and not an alias
// with column names, a common table expression or the clause of an aggregate.
func (t *tokenText) callable(i int) bool {
	if w := t.word(i - 1); w == "as" || w == "with" || w == "recursive" || t.endsOperand(i-1) {
		return false
	}
	definition := t.skip(i + 1) // of a common table expression
	if t.words(definition, "as", "materialized") || t.words(definition, "as", "not", "materialized") {
		return false
	}
	return t.word(definition) != "as" || !t.punctuation(definition+1, "(") || !t.isSubquery(definition+1)
}

// callTranslations are the calls that PostgreSQL's grammar rejects, that name
// an aggregate it has in another form, or that have a constant of Databricks'.
var callTranslations map[string]func(*tokenText, call) error

func init() {
	callTranslations = map[string]func(*tokenText, call) error{
		"any":                   boolOr,
		"approx_count_distinct": approxCountDistinct,
		"approx_percentile":     percentile("percentile_disc", 3),
		"array":                 arrayConstructor,
		"collect_list":          collect(""),
		"collect_set":           collect("DISTINCT "),
		"count":                 countSeveral,
		"date_add":              addInterval,
		"date_format":           formatArgument(1, false),
		"date_trunc":            truncationUnit,
		"extract":               extractField,
		"from_unixtime":         formatArgument(1, false),
		"charindex":             withoutStart,
		"listagg":               listagg,
		"locate":                withoutStart,
		"max_by":                valueBy("DESC"),
		"median":                median,
		"min_by":                valueBy("ASC"),
		"mode":                  mode,
		"percentile":            percentile("percentile_cont", 2),
		"percentile_approx":     percentile("percentile_disc", 3),
		"regexp_extract":        patternArgument(capturing),
		"rlike":                 patternArgument(matching),
		"some":                  boolOr,
		"split":                 patternArgument(splitting),
		"string_agg":            listagg,
		"to_unix_timestamp":     formatArgument(1, true),
		"trunc":                 truncateDate,
		"try_cast":              tryCast,
		"unix_timestamp":        formatArgument(1, true),
	}
}

// unsupportedFunctions are Databricks functions that have no translation, and
// what to use.
var unsupportedFunctions = map[string]string{}

func init() {
	for hint, names := range map[string]string{
		"Use AT TIME ZONE.":                                               "convert_timezone from_utc_timestamp to_utc_timestamp",
		"Use date_bin, or date_trunc.":                                    "window window_time",
		"Number the sessions with sum(...) OVER (...).":                   "session_window",
		"Use min, max, or max_by with a column that orders the rows.":     "first last",
		"Use md5, or sha256 with encode.":                                 "hash xxhash64 sha2 sha1",
		"Use jsonb and its operators.":                                    "get_json_object from_json json_tuple schema_of_json map map_from_arrays map_from_entries map_keys map_values struct named_struct",
		"Use unnest, and an aggregate or a subquery over it.":             "transform filter aggregate reduce forall zip_with map_filter transform_keys transform_values inline stack",
		"Use an ordinary operator, with CASE where it could fail.":        "try_add try_subtract try_multiply try_to_timestamp try_to_number try_sum try_avg try_element_at",
		"Use a[1], which counts from 1 and is NULL outside of the array.": "element_at",
		"Create a table from the files first.":                            "read_files read_kafka cloud_files",
		"Number the rows with row_number() OVER (ORDER BY ...).":          "monotonically_increasing_id spark_partition_id input_file_name",
		"Write the name itself.":                                          "identifier",
		"Use random(), which has no seed.":                                "randn randstr shuffle",
	} {
		for name := range wordSet(names) {
			unsupportedFunctions[name] = hint
		}
	}
}

// arrayConstructor makes array(1, 2) to array[1, 2].
func arrayConstructor(t *tokenText, c call) error {
	if t.startsQuery(c.open+1) || t.isSubquery(c.open) {
		return nil
	}
	t.replace(c.open, c.open+1, "[")
	t.replace(c.close, c.close+1, "]")
	return nil
}

// withoutStart refuses a place to begin looking at.
func withoutStart(t *tokenText, c call) error {
	if len(c.arguments) > 2 {
		return t.unsupported(c.arguments[2].from, c.name+" with a place to begin at", "Look in a substring, and add its place.")
	}
	return nil
}

// addInterval keeps date_add(ts, '1 day') what it is since PostgreSQL 16,
// although there is a date_add for a number of days.
func addInterval(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	last := c.arguments[1]
	if last.to-last.from == 1 && t.is(last.from, String) && strings.Trim(t.text(last.from), "'0123456789+- ") != "" {
		t.insertAfter(last.from, "::interval")
	}
	return nil
}
