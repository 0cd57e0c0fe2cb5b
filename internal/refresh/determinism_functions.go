package refresh

import "strings"

// clockFunctions are the stable functions whose value moves with the clock:
// PostgreSQL's, and those of rwproxy_compat.
var clockFunctions = nameSet("now statement_timestamp transaction_timestamp curdate unix_timestamp")

// settledFunctions are PostgreSQL's stable functions whose value follows from
// their arguments and from the settings that a flow pins. The others ask the
// catalog, the session or the server.
var settledFunctions = nameSet(`
	anytextcat array_in array_out array_recv array_send array_to_json array_to_string bpcharrecv bpcharsend cash_in
	cash_out concat concat_ws convert convert_from convert_to date date_add date_subtract date_cmp_timestamptz
	date_eq_timestamptz date_ge_timestamptz date_gt_timestamptz date_in date_le_timestamptz date_lt_timestamptz
	date_ne_timestamptz date_out date_part date_trunc domain_in domain_recv extract format generate_series in_range
	interval_in interval_out interval_pl_timestamptz json_agg json_agg_finalfn json_agg_strict
	json_agg_strict_transfn json_agg_transfn json_build_array json_build_object json_object_agg
	json_object_agg_finalfn json_object_agg_strict json_object_agg_strict_transfn json_object_agg_transfn
	json_object_agg_unique json_object_agg_unique_strict json_object_agg_unique_strict_transfn
	json_object_agg_unique_transfn json_populate_record json_populate_recordset json_to_record json_to_recordset
	jsonb_agg jsonb_agg_finalfn jsonb_agg_strict jsonb_agg_strict_transfn jsonb_agg_transfn jsonb_build_array
	jsonb_build_object jsonb_object_agg jsonb_object_agg_finalfn jsonb_object_agg_strict
	jsonb_object_agg_strict_transfn jsonb_object_agg_transfn jsonb_object_agg_unique jsonb_object_agg_unique_strict
	jsonb_object_agg_unique_strict_transfn jsonb_object_agg_unique_transfn jsonb_path_exists_tz jsonb_path_match_tz
	jsonb_path_query_array_tz jsonb_path_query_first_tz jsonb_path_query_tz jsonb_populate_record
	jsonb_populate_recordset jsonb_to_record jsonb_to_recordset length make_timestamptz money multirange_in
	multirange_out numeric overlaps quote_literal quote_nullable range_in range_out record_in record_out row_to_json
	textanycat textrecv textsend time time_in timestamp timestamp_cmp_timestamptz timestamp_eq_timestamptz
	timestamp_ge_timestamptz timestamp_gt_timestamptz timestamp_in timestamp_le_timestamptz timestamp_lt_timestamptz
	timestamp_ne_timestamptz timestamp_out timestamptz timestamptz_cmp_date timestamptz_cmp_timestamp
	timestamptz_eq_date timestamptz_eq_timestamp timestamptz_ge_date timestamptz_ge_timestamp timestamptz_gt_date
	timestamptz_gt_timestamp timestamptz_in timestamptz_le_date timestamptz_le_timestamp timestamptz_lt_date
	timestamptz_lt_timestamp timestamptz_mi_interval timestamptz_ne_date timestamptz_ne_timestamp timestamptz_out
	timestamptz_pl_interval timetz timetz_in timezone to_char to_date to_json to_jsonb to_number to_timestamp
	varcharrecv varcharsend xml xml_in`)

func nameSet(names string) map[string]bool {
	set := map[string]bool{}
	for _, name := range strings.Fields(names) {
		set[name] = true
	}
	return set
}
