-- After every migration: what it created is nobody's but its owner's unless it
-- was granted. Functions are the exception in Postgres, which lets everybody
-- execute a new one.
revoke execute on all functions in schema rwproxy from public;

grant usage on schema rwproxy_compat to public;

grant execute on all functions in schema rwproxy_compat to public;

-- These run with the caller's rights, but for is_streaming_table, which tells
-- nothing that pg_class does not.
grant execute on function rwproxy.is_streaming_table(oid), rwproxy.readable_table(oid),
    rwproxy.event_log(regclass), rwproxy.table_history(regclass), rwproxy.cancel_refresh(uuid) to public;
