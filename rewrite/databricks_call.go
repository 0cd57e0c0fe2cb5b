package rewrite

// databricksCalls are the calls that PostgreSQL accepts and answers otherwise.
var databricksCalls map[string]func(*tokenText, call) error

func init() {
	databricksCalls = map[string]func(*tokenText, call) error{
		"acos":              renamed(databricksPrefix + "acos"),
		"acosh":             renamed(databricksPrefix + "acosh"),
		"array_agg":         collect(""),
		"array_append":      renamed(databricksPrefix + "array_append"),
		"array_position":    renamed(databricksPrefix + "array_position"),
		"array_prepend":     renamed(databricksPrefix + "array_prepend"),
		"array_remove":      renamed(databricksPrefix + "array_remove"),
		"array_sort":        refusedCall("Use (SELECT array_agg(x ORDER BY x NULLS LAST) FROM unnest(...) AS u (x))."),
		"asin":              renamed(databricksPrefix + "asin"),
		"atanh":             renamed(databricksPrefix + "atanh"),
		"avg":               average,
		"bit_count":         refusedCall("PostgreSQL counts the bits of bytes, not of numbers."),
		"cardinality":       renamed(databricksPrefix + "size"),
		"cast":              databricksCast,
		"cbrt":              refusedCall("Its last digit would differ; for numbers that are not negative use power(x, 1D / 3)."),
		"ceil":              renamed(databricksPrefix + "ceil"),
		"ceiling":           renamed(databricksPrefix + "ceil"),
		"char":              characterOf,
		"chr":               characterOf,
		"collate":           refusedCall("Use COLLATE with a collation of the database."),
		"collation":         refusedCall("Use COLLATION FOR."),
		"concat":            concat,
		"concat_ws":         concatWS,
		"crc32":             refusedCall("Use md5."),
		"current_time":      refusedCall("Use date_format(now(), 'HH:mm:ss')."),
		"date_part":         datePart,
		"date_trunc":        renamed(databricksPrefix + "date_trunc"),
		"decode":            refusedCall("Use convert_from for bytes, and CASE to compare values."),
		"div":               renamed("rwproxy_compat.integral_divide"),
		"encode":            refusedCall("Use convert_to for the bytes of a text."),
		"exp":               renamed(databricksPrefix + "exp"),
		"extract":           integerField,
		"factorial":         renamed(databricksPrefix + "factorial"),
		"floor":             renamed(databricksPrefix + "floor"),
		"initcap":           refusedCall("Databricks capitalises words between blanks, PostgreSQL between anything but letters and digits."),
		"json_array_length": jsonArrayLength,
		"json_object_keys":  refusedCall("Use jsonb and its operators."),
		"left":              renamed(databricksPrefix + "left"),
		"ln":                renamed(databricksPrefix + "ln"),
		"log":               renamed(databricksPrefix + "log"),
		"log10":             renamed(databricksPrefix + "log10"),
		"ltrim":             trimArguments("ltrim"),
		"make_timestamp":    renamed("pg_catalog.make_timestamptz"),
		"mean":              average,
		"overlay":           overlay,
		"position":          position,
		"pow":               renamed(databricksPrefix + "power"),
		"power":             renamed(databricksPrefix + "power"),
		"rand":              withoutSeed,
		"random":            withoutSeed,
		"regexp_count":      refusedCall("Compare the lengths of the text with and without what regexp_replace takes out."),
		"regexp_instr":      refusedCall("Use instr with what regexp_substr finds."),
		"regexp_like":       patternArgument(matching),
		"regexp_replace":    regexpReplace,
		"regexp_substr":     regexpSubstr,
		"replace":           replaceArguments,
		"right":             renamed(databricksPrefix + "right"),
		"round":             renamed(databricksPrefix + "round"),
		"rtrim":             trimArguments("rtrim"),
		"sign":              renamed(databricksPrefix + "sign"),
		"size":              renamed(databricksPrefix + "size"),
		"sqrt":              renamed(databricksPrefix + "sqrt"),
		"stddev":            ofDouble,
		"stddev_pop":        ofDouble,
		"stddev_samp":       ofDouble,
		"substr":            substring,
		"substring":         substring,
		"sum":               renamed(databricksPrefix + "sum"),
		"to_char":           refusedCall("Use date_format, or a cast to STRING."),
		"to_date":           textToDate,
		"to_json":           refusedCall("Use jsonb_build_object."),
		"to_number":         refusedCall("Use a cast to DECIMAL."),
		"to_timestamp":      textToTimestamp,
		"to_unix_timestamp": textToSeconds,
		"trim":              trimArguments("btrim"),
		"try_divide":        tryDivide,
		"unix_timestamp":    textToSeconds,
		"var_pop":           ofDouble,
		"var_samp":          ofDouble,
		"variance":          ofDouble,
		"version":           refusedCall("It tells the version of PostgreSQL."),
		"width_bucket":      refusedCall("Use floor of a quotient of doubles."),
		"xpath":             refusedCall("PostgreSQL's xpath has its arguments in another order and another result."),
	}
	for _, name := range []string{"bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint", "string", "timestamp", "tinyint"} {
		databricksCalls[name] = typeCall
	}
}

func renamed(name string) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		t.replace(c.at, c.at+1, name)
		return nil
	}
}

func refusedCall(hint string) func(*tokenText, call) error {
	return func(t *tokenText, c call) error {
		return t.unsupported(c.at, "the function "+c.name+" under the dialect of Databricks", hint)
	}
}

// average divides the sum by the number: the types of the two say how.
func average(t *tokenText, c call) error {
	tail := tokenRange{c.close + 1, c.end}
	t.rebuild(c.whole(), databricksPrefix+"average("+databricksPrefix+"sum(", c.inside(), ") ", tail, ", pg_catalog.count(", c.inside(), ") ", tail, ")")
	return nil
}

// ofDouble makes the argument a double, as which Databricks computes.
func ofDouble(t *tokenText, c call) error {
	if len(c.arguments) == 1 {
		t.wrapInCall(c.at, c.arguments[0], databricksPrefix+"double(", ")")
	}
	return nil
}

func tryDivide(t *tokenText, c call) error {
	if len(c.arguments) != 2 {
		return nil
	}
	t.rebuild(tokenRange{c.at, c.close + 1}, databricksPrefix+"divide(", c.arguments[0], ", nullif(", c.arguments[1], ", 0))")
	return nil
}

// typeCall makes int(x) a cast. Behind a cast's AS or ::, or in front of a
// string, it is a type with a length, and so where a column is declared.
func typeCall(t *tokenText, c call) error {
	isType := t.word(c.at-1) == "as" || t.punctuation(c.at-1, "::") || t.endsOperand(c.at-1) || t.is(c.close+1, String)
	if len(c.arguments) != 1 || isType {
		return nil
	}
	before, after, err := t.castTo(tokenRange{c.at, c.at + 1})
	if err != nil {
		return err
	}
	t.writeCast(c.at, tokenRange{c.at, c.close + 1}, c.arguments[0], before, after)
	return nil
}

// jsonArrayLength makes the argument, which is a text, JSON.
func jsonArrayLength(t *tokenText, c call) error {
	if len(c.arguments) == 1 {
		t.wrapInCall(c.at, c.arguments[0], "cast(", " as json)")
	}
	return nil
}

// withoutSeed refuses a seed: the same one gives other numbers here.
func withoutSeed(t *tokenText, c call) error {
	if len(c.arguments) > 0 {
		return t.unsupported(c.arguments[0].from, "the seed of "+c.name, "Leave it out.")
	}
	return nil
}
