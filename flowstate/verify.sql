-- The flows of the tables that are named, of all without names, with what has
-- happened since their last refresh. $1: names, as SQL writes them; one without a
-- schema is that of every table so called. $2: the table's OID, for one flow
-- alone.
select t.target::oid,
       n.nspname,
       c.relname,
       case when v.oid is not null then pg_catalog.format('%I.%I', vn.nspname, v.relname) end as view,
       pg_catalog.pg_get_userbyid(v.relowner) as view_owner,
       t.settings,
       t.last_definition_version is not null as refreshed,
       t.last_window,
       t.last_definition_version is distinct from t.definition_version
           or t.cursor_fingerprint is distinct from definitions.fingerprint as redefined,
       t.cursor_incarnation is distinct from rwproxy.incarnation() as moved,
       (select p.detail
          from rwproxy.proof p
         where p.view = t.view and p.fingerprint = definitions.fingerprint) as proof,
       coalesce(sources.changed, '[]') as changed,
       coalesce(sources.untracked, '[]') as untracked
  from rwproxy.streaming_table t
  join pg_catalog.pg_class c on c.oid = t.target
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  left join pg_catalog.pg_class v on v.oid = t.view
  left join pg_catalog.pg_namespace vn on vn.oid = v.relnamespace
 cross join lateral (
       select case when v.oid is not null then rwproxy.fingerprint(v.oid, c.oid) end as fingerprint
       ) as definitions
 cross join lateral (
       select pg_catalog.jsonb_agg(s.changes -> 'name') filter (where (s.changes -> 'rows')::bigint > 0) as changed,
              pg_catalog.jsonb_agg(pg_catalog.format('%s (%s)', s.changes ->> 'name', s.changes ->> 'obstacle'))
                  filter (where s.changes ->> 'obstacle' is not null) as untracked
         from (
               select rwproxy.source_changes(v.oid, r.oid, t.cursor) as changes
                 from rwproxy.view_sources(v.oid) as r (oid)
                order by r.oid
              ) as s
       ) as sources
 where t.flow_name is not null
   and ($2::oid is null or c.oid = $2::oid)
   and ($1::text[] = '{}' or exists (
           select
             from pg_catalog.unnest($1::text[]) as given (name)
            cross join lateral pg_catalog.parse_ident(given.name) as parts
            where parts = array[c.relname::text] or parts = array[n.nspname::text, c.relname::text]))
 order by n.nspname, c.relname;
