-- What view $1 has of a predicate on table $2: one row a column that the
-- predicate depends on, at least one row. A reference to the whole row, an
-- attribute number of 0 in the rule, is to every column.
select pg_get_viewdef(r.ev_class),
       r.ev_action::text,
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
