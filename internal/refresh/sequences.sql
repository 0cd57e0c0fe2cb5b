-- The sequences that belong to columns of table $1: of an identity column, with
-- its kind, or of a column whose default takes its values from there.
select a.attname,
       case a.attidentity when 'a' then 'ALWAYS' when 'd' then 'BY DEFAULT' else '' end,
       q.name,
       pg_catalog.format_type(s.seqtypid, null),
       pg_catalog.concat_ws(' ',
                            case when a.attidentity <> '' and c.relname <> t.relname || '_' || a.attname || '_seq'
                                 then 'SEQUENCE NAME ' || q.name end,
                            case when s.seqincrement <> 1 then 'INCREMENT BY ' || s.seqincrement end,
                            case when s.seqmin <> o.lowest then 'MINVALUE ' || s.seqmin end,
                            case when s.seqmax <> o.highest then 'MAXVALUE ' || s.seqmax end,
                            case when s.seqstart <> case when s.seqincrement > 0 then s.seqmin else s.seqmax end
                                 then 'START WITH ' || s.seqstart end,
                            case when s.seqcache <> 1 then 'CACHE ' || s.seqcache end,
                            case when s.seqcycle then 'CYCLE' end)
  from pg_catalog.pg_depend d
  join pg_catalog.pg_sequence s on s.seqrelid = d.objid
  join pg_catalog.pg_class c on c.oid = d.objid
  join pg_catalog.pg_class t on t.oid = d.refobjid
  join pg_catalog.pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
 cross join lateral (select pg_catalog.format('%I.%I', n.nspname, c.relname)
                       from pg_catalog.pg_namespace n
                      where n.oid = c.relnamespace) as q (name)
 cross join lateral (select case s.seqtypid when 'int2'::pg_catalog.regtype then 32767
                                            when 'int4'::pg_catalog.regtype then 2147483647
                                            else 9223372036854775807 end) as m (most)
 cross join lateral (select case when s.seqincrement > 0 then 1 else -m.most - 1 end,
                            case when s.seqincrement > 0 then m.most else -1 end) as o (lowest, highest)
 where d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass
   and d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass
   and d.refobjid = $1::pg_catalog.oid
   and d.deptype in ('i', 'a')
 order by a.attnum
