-- The refreshes of the last $1 seconds, and those of $2.
select pg_catalog.row_to_json(r)
  from rwproxy.refreshes r
 where r.requested_at operator(pg_catalog.>=)
       (pg_catalog.clock_timestamp() operator(pg_catalog.-) pg_catalog.make_interval(secs => $1))
    or r.refresh_id operator(pg_catalog.=) any ($2::pg_catalog.uuid[])
 order by r.requested_at
