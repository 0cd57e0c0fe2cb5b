-- What view $1 has of a predicate on table $2: one row a column that the
-- predicate depends on, at least one row. A reference to the whole row, an
-- attribute number of 0 in the rule, is to every column.
select pg_get_viewdef(r.ev_class),
       exists (
           select
             from regexp_matches(r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') as called (oid)
             join pg_proc p on p.oid = called.oid[1]::oid
            where p.provolatile = 'v'
               or p.provolatile = 's' and p.pronamespace <> all ('{pg_catalog,rwproxy_compat}'::regnamespace[])),
       a.attname
  from pg_rewrite r
  left join pg_attribute a
    on a.attrelid = $2::regclass
   and a.attnum > 0
   and not a.attisdropped
   and (r.ev_action::text ~ ':varattno 0 '
        or exists (
           select from pg_depend d
            where d.classid = 'pg_rewrite'::regclass
              and d.objid = r.oid
              and d.refclassid = 'pg_class'::regclass
              and d.refobjid = a.attrelid
              and d.refobjsubid = a.attnum))
 where r.ev_class = $1::regclass
 order by a.attnum
