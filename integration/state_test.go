package integration

import "testing"

func TestTheViewsHaveTheirDocumentedColumns(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.createTotals()
	for view, columns := range map[string]string{
		"flows": "flow_name, target_schema, target_table, predicate, query, properties, schedule, owner, created_at, changed_at, " +
			"last_refresh_id, last_refresh_at, last_technique, last_reason, next_run_at, tracked_sources, untracked_sources",
		"refreshes": "refresh_id, flow_name, target_schema, target_table, cause, kind, technique, reason, window_predicate, applied_predicate, " +
			"rows_deleted, rows_inserted, state, progress, requested_by, requested_at, started_at, ended_at, error, error_detail, error_hint, " +
			"update_id, attempt, due_at",
		"event_log": "id, sequence, origin, timestamp, message, level, maturity_level, error, details, event_type",
	} {
		s.want(`select string_agg(attname, ', ' order by attnum) from pg_attribute where attrelid = 'rwproxy.`+view+`'::regclass and attnum > 0`, columns)
	}
}

func TestNothingIsInstalledBeforeTheFirstFlow(t *testing.T) {
	t.Parallel()
	s := connect(t, newDatabase(t).url)
	s.exec(createOrders, insertOrders, `drop table orders`)
	s.want(`select count(*) from pg_namespace where nspname like 'rwproxy%'`, "0")
}

func TestFlowsShowsWhatWasTyped(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.exec(createOrders, insertOrders, `create streaming table totals flow replace where o.day >= DATE_ADD(current_date(), -1)  /* window */
			by name SELECT o.day,  count(*) AS orders, sum(o.amount) AS amount FROM orders o GROUP BY ALL`)
		s.want(`select flow_name, target_schema, target_table, owner, last_technique, last_reason, schedule, next_run_at from rwproxy.flows`,
			"totals|public|totals|postgres|FULL_RECOMPUTE|FIRST_REFRESH|NULL|NULL")
		s.want(`select predicate like 'o.day >= DATE_ADD(current_date(), -1)%', query from rwproxy.flows`,
			"t|SELECT o.day,  count(*) AS orders, sum(o.amount) AS amount FROM orders o GROUP BY ALL")
		s.want(`select created_at <= changed_at, changed_at <= now(), last_refresh_at between created_at and clock_timestamp(),
			last_refresh_id = (select refresh_id from rwproxy.refreshes) from rwproxy.flows`, "t|t|t|t")
	})
}

func TestRefreshesShowsEveryRefresh(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`refresh streaming table totals`, `refresh streaming table totals where day = current_date - 2`, `refresh streaming table totals full`)
		s.fails("22012", `refresh streaming table totals where 1 / (orders - orders) = 1`)
		s.want(`select flow_name, cause, kind, technique, reason, rows_deleted, rows_inserted, state, requested_by
			from rwproxy.refreshes where state = 'COMPLETED' order by requested_at`,
			"totals|statement|window|FULL_RECOMPUTE|FIRST_REFRESH|0|2|COMPLETED|postgres",
			"totals|statement|window|NO_OP|NULL|0|0|COMPLETED|postgres",
			"totals|statement|override|FULL_RECOMPUTE|UNSUPPORTED_REPLACE_WHERE_PREDICATE|0|1|COMPLETED|postgres",
			"totals|statement|full|FULL_RECOMPUTE|FULL_REFRESH|3|2|COMPLETED|postgres")
		s.want(`select kind, state, error from rwproxy.refreshes where state <> 'COMPLETED'`, "override|FAILED|division by zero")
		s.want(`select count(*) from rwproxy.refreshes where requested_at <= started_at and started_at <= ended_at and ended_at <= clock_timestamp()`, "5")
		s.want(`select window_predicate, applied_predicate = window_predicate from rwproxy.refreshes where kind = 'override' and state = 'COMPLETED'`,
			"day = '"+s.value(`select current_date`)+"'::date - 2|t")
		s.want(`select last_reason from rwproxy.flows`, "FULL_REFRESH")
	})
}

func TestEveryStepLeavesAnEvent(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`truncate orders`, insertOrders, `refresh streaming table totals`)
		last := `from rwproxy.event_log where origin ->> 'update_id' = (select refresh_id::text from rwproxy.refreshes order by requested_at desc limit 1)`
		s.want(`select message from rwproxy.event_log where event_type = 'planning_information' order by timestamp`,
			"Flow 'totals' has been planned to be executed as COMPLETE_REPLACE_WHERE.",
			"Flow 'totals' has been planned to be executed as COMPLETE_REPLACE_WHERE.")
		s.want(`select bool_and(level = 'INFO' and error is null and details ? event_type) `+last, "t")
		s.want(`select count(*) > 0 `+last+` and event_type = 'create_update'`, "t")
		s.want(`select details #>> '{flow_progress,metrics,num_deleted_rows}', details #>> '{flow_progress,metrics,num_output_rows}' `+last+`
			and message = 'Flow ''totals'' has COMPLETED.'`, "2|2")
		s.want(`select t ->> 'maintenance_type', t ->> 'is_chosen', t ->> 'is_applicable', t #>> '{incrementalization_issues,0,issue_type}'
			from (select details `+last+` and event_type = 'planning_information') e,
			jsonb_array_elements(e.details -> 'planning_information' -> 'technique_information') t order by 2 desc, 1`,
			"MAINTENANCE_TYPE_COMPLETE_REPLACE_WHERE|true|true|NULL", "MAINTENANCE_TYPE_REPLACE_WHERE_NARROWED|false|false|CHANGE_NOT_NARROWABLE")
		s.want(`select count(*) > 0 from rwproxy.event_log where event_type = 'flow_definition'`, "t")

		s.fails("22012", `refresh streaming table totals where 1 / (orders - orders) = 1`)
		s.want(`select level, error::text like '%division by zero%' and error::text like '%22012%' `+last+` and message = 'Flow ''totals'' has FAILED.'`, "ERROR|t")
		s.want(`select count(*) `+last+` and message like 'Update % is FAILED.'`, "1")
	})
}

func TestAFailedCreateInATransactionLeavesNoRecord(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`begin`, `create streaming table other `+totalsFlow, `rollback`)
		s.want(`select count(*) from rwproxy.refreshes where target_table = 'other'`, "0")
		s.want(`select count(*) from rwproxy.event_log where message like '%other%'`, "0")
	})
}

func TestARenamedTargetKeepsItsFlowWhichIsCalledAsItIs(t *testing.T) {
	eachProtocol(t, func(t *testing.T, _ database, s *session) {
		s.createTotals()
		s.exec(`create schema own`, `alter table totals rename to sums`, `alter table sums set schema own`,
			`insert into orders values (4, current_date, 1)`, `refresh streaming table own.sums`)
		s.want(`select day - current_date, orders, amount from own.sums order by 1`, "-1|1|20.00", "0|2|31.00")
		s.want(`select flow_name, target_schema, target_table from rwproxy.flows`, "sums|own|sums")
		s.fails("42P01", `refresh streaming table totals`)
	})
}
