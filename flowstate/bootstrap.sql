-- Where the version of everything else is kept. The table is readable by
-- everybody, because every session must be able to ask what is installed.
create schema if not exists rwproxy;

create table if not exists rwproxy.schema_version (
    version integer primary key check (version > 0),
    installed_at timestamptz not null default pg_catalog.clock_timestamp()
);

create table if not exists rwproxy.compat_version (
    hash text primary key
);

grant usage on schema rwproxy to public;
grant select on rwproxy.schema_version to public;
