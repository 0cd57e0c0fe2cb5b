package rewrite

import (
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
)

// databricksAlone are functions of Databricks that nothing stands for, and what
// to use. The dialect of Databricks refuses them. The default dialect leaves
// the name to PostgreSQL, which may have to say that there is no such function.
var databricksAlone = map[string]string{}

func init() {
	for hint, names := range map[string]string{
		// Texts and bytes.
		"Use strpos(text, part) > 0.":                                                       "contains",
		"Use left(text, length(part)) = part.":                                              "startswith",
		"Use right(text, length(part)) = part.":                                             "endswith",
		"Use split_part(text, separator, n), which returns one part.":                       "substring_index elt find_in_set",
		"Use regexp_matches with the flag 'g'.":                                             "regexp_extract_all",
		"Use upper(to_hex(n)) for a number, and pg_catalog.encode(bytes, 'hex') for bytes.": "hex",
		"Use pg_catalog.decode(text, 'hex').":                                               "unhex",
		"Use pg_catalog.encode(bytes, 'base64'), which breaks long lines.":                  "base64",
		"Use pg_catalog.decode(text, 'base64').":                                            "unbase64",
		"Use convert_to for the bytes of a text.":                                           "to_binary try_to_binary",
		"Use n::bit(64)::text, without the zeros in front.":                                 "bin",
		"PostgreSQL writes a number to the base 16 with to_hex.":                            "conv",
		"The extension fuzzystrmatch has a function of this name.":                          "levenshtein soundex",
		"Use pg_catalog.to_char with a format of PostgreSQL's.":                             "format_number to_varchar",
		"Use format, with %s for every value.":                                              "format_string printf",
		"Use lower.":                                                                        "lcase",
		"Use upper.":                                                                        "ucase",
		"Use repeat(' ', n).":                                                               "space",
		"Use quote_literal, which doubles quotes.":                                          "quote",
		"Use regexp_split_to_table.":                                                        "sentences",
		"Use regexp_replace.":                                                               "mask",
		"Use regexp_extract.":                                                               "parse_url",
		"PostgreSQL has no function for it; do it before the data are loaded.": "url_decode url_encode try_url_decode " +
			"is_valid_utf8 make_valid_utf8 validate_utf8 try_validate_utf8",
		"Use the extension pgcrypto.": "aes_decrypt aes_encrypt try_aes_decrypt",
		"Use md5.":                    "sha",

		// Numbers.
		"PostgreSQL rounds half to even in round(x::double precision), to whole numbers.": "bround rint",
		"Use ln(x) / ln(2), whose last digit may differ.":                                 "log2",
		"Use ln(1 + x).":           "log1p",
		"Use exp(x) - 1.":          "expm1",
		"Use exp(1).":              "e",
		"Use sign.":                "signum",
		"Use 1 / sin(x).":          "csc",
		"Use 1 / cos(x).":          "sec",
		"Use sqrt(x * x + y * y).": "hypot",
		"Use -x.":                  "negative",
		"Use x itself.":            "positive",
		"Use stddev_samp.":         "std",
		"Use x << n.":              "shiftleft",
		"Use x >> n.":              "shiftright",
		"Use x >> n on numbers that are not negative.":                 "shiftrightunsigned",
		"Use (x >> n) & 1.":                                            "bit_get getbit",
		"Use bits of PostgreSQL's type bit.":                           "bit_reverse",
		"Use CASE, with x = cast('NaN' as double).":                    "isnan nanvl",
		"Use mod with nullif(divisor, 0).":                             "try_mod",
		"Use random(), which has no seed.":                             "uniform",
		"Compute it from sums of powers.":                              "kurtosis skewness",
		"Use width_bucket and count.":                                  "histogram_numeric",
		"Use count(DISTINCT x), which is exact.":                       "hll_sketch_agg hll_sketch_estimate hll_union hll_union_agg bitmap_bit_position bitmap_bucket_number bitmap_construct_agg bitmap_count bitmap_or_agg",
		"Use count with GROUP BY, ORDER BY and LIMIT, which is exact.": "approx_top_k count_min_sketch",

		// NULL, conditions and types.
		"Use a IS NOT DISTINCT FROM b, or a <=> b.":    "equal_null",
		"Use nullif(x, 0).":                            "nullifzero",
		"Use coalesce(x, 0).":                          "zeroifnull",
		"Use <> between booleans.":                     "xor",
		"Use pg_typeof, whose names are PostgreSQL's.": "typeof",
		"Use a CHECK constraint.":                      "assert_true raise_error",
		"Use grouping(...).":                           "grouping_id",

		// Dates and times.
		"Use date_format(day, 'E').":                                  "dayname",
		"Use date_format(day, 'MMM').":                                "monthname",
		"Use try_cast(text as date).":                                 "try_to_date",
		"Use now().":                                                  "getdate",
		"Use a constant such as INTERVAL '1-2' YEAR TO MONTH.":        "make_ym_interval",
		"Use a constant such as INTERVAL '1 02:03:04' DAY TO SECOND.": "make_dt_interval",
		"Use a cast of a text to TIMESTAMP or TIMESTAMP_NTZ.":         "make_timestamp_ltz make_timestamp_ntz",
		"Use datediff, date_trunc and casts.":                         "time_diff time_trunc timediff to_time",

		// Arrays.
		"Use an index, in a CASE that compares it with cardinality(a).": "get",
		"Use cardinality(a).":                                                "array_size",
		"Use a && b.":                                                        "arrays_overlap",
		"Use array_to_string(a, separator).":                                 "array_join",
		"Use (SELECT max(x) FROM unnest(a) AS u (x)).":                       "array_max",
		"Use (SELECT min(x) FROM unnest(a) AS u (x)).":                       "array_min",
		"Use array_fill(x, array[n]).":                                       "array_repeat",
		"Use pg_catalog.array_remove(a, NULL).":                              "array_compact",
		"Use (SELECT array_agg(x ORDER BY x) FROM unnest(a) AS u (x)).":      "sort_array",
		"Use (SELECT array_agg(DISTINCT x) FROM unnest(a) AS u (x)).":        "array_distinct",
		"Use unnest of both with UNION, INTERSECT or EXCEPT, and array_agg.": "array_union array_intersect array_except",
		"Use generate_series, and array_agg for an array.":                   "sequence range",
		"Use unnest WITH ORDINALITY, and array_agg.":                         "slice flatten array_insert arrays_zip",
		"Use LEFT JOIN LATERAL unnest(a) AS u (x) ON true.":                  "explode_outer posexplode_outer inline_outer",

		// Structured texts.
		"Use jsonb and its operators.": "map_concat map_contains_key map_entries map_zip_with str_to_map parse_json try_parse_json " +
			"is_variant_null schema_of_variant to_variant_object variant_explode variant_get try_variant_get",
		"Use string_to_array, or load the text with COPY.": "from_csv to_csv schema_of_csv",
		"Use PostgreSQL's functions for XML.": "from_xml to_xml schema_of_xml xpath_boolean xpath_double xpath_float xpath_int " +
			"xpath_long xpath_number xpath_short xpath_string",
		"Decode the bytes before the data are loaded.": "from_avro to_avro from_protobuf to_protobuf",

		// The environment of a query.
		"It tells about Databricks, which is not here.": "collations current_metastore current_recipient current_version is_account_group_member " +
			"is_member list_secrets secret sql_keywords try_secret java_method reflect try_reflect",
		"Create a table from the files first.":         "cloud_files_state input_file_block_length input_file_block_start",
		"Write the changes to a table, and read that.": "table_changes",
	} {
		for name := range wordSet(names) {
			databricksAlone[name] = hint
		}
	}
}

// FunctionHint returns an error of Postgres about a function that does not
// exist with what to use in its place; false if Databricks has none of its name.
func FunctionHint(d *pgdiag.Diagnostic) (*pgdiag.Diagnostic, bool) {
	const undefinedFunction = "42883"
	before, _, found := strings.Cut(d.Message, "(")
	name := before[strings.LastIndexByte(before, ' ')+1:]
	hint := databricksAlone[name]
	if d.Code != undefinedFunction || !found || hint == "" {
		return nil, false
	}
	hinted := *d
	return hinted.WithHint("Databricks has a function " + name + ". " + hint), true
}
