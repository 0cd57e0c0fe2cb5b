select pg_catalog.row_to_json(f)
  from rwproxy.flows f
 order by f.target_schema, f.target_table
