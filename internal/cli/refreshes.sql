-- The newest refreshes. $1: how many.
select pg_catalog.row_to_json(r)
  from rwproxy.refreshes r
 order by r.requested_at desc
 limit $1
