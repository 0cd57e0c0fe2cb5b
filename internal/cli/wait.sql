-- One refresh. $1: its ID.
select pg_catalog.row_to_json(r)
  from rwproxy.refreshes r
 where r.refresh_id operator(pg_catalog.=) $1::pg_catalog.uuid
