-- The tables. Nobody but their owner reads or writes them: state is written
-- through rwproxy.request and read through the views.

-- A streaming table, and its flow once it has one. The target and the view are
-- regclass: a rename changes nothing here, and pg_dump writes their names.
create table rwproxy.streaming_table (
    id uuid primary key default pg_catalog.gen_random_uuid(),
    target regclass not null unique,
    -- The target as it was seen last; see rwproxy.is_stray.
    seen_oid oid,
    seen_name text,
    seen_incarnation text,
    statement text not null,
    declared_columns boolean not null,
    properties jsonb not null,
    comment text,
    partition_by text[] not null,
    -- The service reads it, so it is none that its owner makes up.
    schedule text check (schedule ~ ('^(EVERY [1-9][0-9]? (HOURS|DAYS|WEEKS)'
        || '|CRON ''.*'' AT TIME ZONE ''.*'''
        || '|TRIGGER ON UPDATE( AT MOST EVERY INTERVAL [1-9][0-9]{0,8} SECOND)?)$')),
    created_at timestamptz not null default pg_catalog.clock_timestamp(),
    changed_at timestamptz not null default pg_catalog.clock_timestamp(),

    flow_name text,
    flow_statement text,
    flow_comment text,
    view regclass unique,
    view_definition text,
    predicate text,
    condition text,
    condition_volatile boolean,
    query text,
    settings jsonb not null,
    definition_version integer not null default 1,

    -- Of the last refresh of any kind.
    last_refresh_id uuid,
    last_refresh_at timestamptz,
    last_technique text,
    last_reason text,

    -- Of the last refresh of the flow's own window: an override moves none.
    last_window text,
    last_window_volatile boolean,
    last_definition_version integer,

    -- What the last refresh of the flow's own window has seen: the changes that
    -- this snapshot sees, while the definitions had this fingerprint. What the
    -- snapshot's numbers are of: see rwproxy.incarnation.
    cursor pg_snapshot,
    cursor_fingerprint text,
    cursor_incarnation text,

    constraint flow_is_whole check (
        pg_catalog.num_nulls(flow_name, view, view_definition, predicate, condition, condition_volatile, query)
            in (0, 7)
    )
);

-- When a table that has a schedule is due. Apart from the table's own row: the
-- transaction of a refresh writes that one, and fails when somebody else has
-- since it began.
create table rwproxy.schedule (
    table_id uuid primary key references rwproxy.streaming_table on delete cascade,
    -- What the rest is about: streaming_table.schedule.
    text text not null,
    set_at timestamptz not null default pg_catalog.clock_timestamp(),
    -- infinity when it never runs again; of a trigger when it may fire, if it is
    -- to wait. computed_at is when this was looked for, null if it is to be.
    next_run_at timestamptz,
    computed_at timestamptz,
    -- Of a trigger: what it had seen when it fired last, with rwproxy.incarnation
    -- at that time, and since when it waits for flows that its own reads.
    last_trigger pg_snapshot,
    last_trigger_at timestamptz,
    last_trigger_incarnation text,
    waits_since timestamptz
);

-- History has no foreign key to its table: it outlives it. The names and the
-- owner are those of the time, for when the table is gone.
create table rwproxy.refresh (
    id uuid primary key,
    table_id uuid not null,
    flow_name text not null,
    target_schema text not null,
    target_table text not null,
    owner text not null,
    cause text not null check (cause in ('statement', 'schedule', 'trigger', 'api')),
    kind text not null check (kind in ('window', 'full', 'override')),
    technique text check (technique in ('FULL_RECOMPUTE', 'INCREMENTAL', 'NO_OP')),
    reason text check (reason is null or technique = 'FULL_RECOMPUTE'),
    window_predicate text,
    window_volatile boolean,
    applied_predicate text,
    definition_version integer,
    cursor pg_snapshot,
    cursor_fingerprint text,
    rows_deleted bigint,
    rows_inserted bigint,
    state text not null check (state in ('QUEUED', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELED')),
    requested_by text not null,
    requested_at timestamptz not null default pg_catalog.clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    error text,
    error_detail text,
    error_hint text,
    backend_pid integer,

    -- The update that the refresh is part of: itself, unless one request named
    -- several tables.
    update_id uuid not null,

    -- Of one that is queued and then runs by itself (0012_queue.sql): what was
    -- asked for, by which role, the refreshes of its update that it comes after,
    -- how often it was begun in vain, and from when on it may begin.
    durable boolean not null,
    requester oid,
    request jsonb,
    after uuid[] not null,
    attempt integer not null,
    due_at timestamptz
);

create index refresh_by_table on rwproxy.refresh (table_id, requested_at);

create index refresh_by_time on rwproxy.refresh (requested_at);

create index unfinished_refresh on rwproxy.refresh (state, table_id) where state in ('QUEUED', 'RUNNING');

create index refresh_by_update on rwproxy.refresh (update_id);

-- Whoever asked for a running refresh to be canceled. The row of the refresh
-- itself is locked by the transaction that writes the table.
create table rwproxy.cancellation (
    refresh_id uuid primary key,
    requested_by text not null,
    requested_at timestamptz not null default pg_catalog.clock_timestamp()
);

-- A request for several tables at once. Its own state is known once its last
-- refresh has ended. It is shown to those who may read its first table.
create table rwproxy.update (
    id uuid primary key,
    table_id uuid not null,
    owner text not null,
    cause text not null,
    requested_by text not null,
    requested_at timestamptz not null default pg_catalog.clock_timestamp(),
    started_at timestamptz,
    ended_at timestamptz,
    state text check (state in ('COMPLETED', 'FAILED', 'CANCELED')),
    error text,
    parameters jsonb not null
);

create index running_update on rwproxy.update (requested_at) where ended_at is null;

-- This database, as the pipeline that its flows are. The name of the place tells
-- a copy of it.
create table rwproxy.database (
    id uuid primary key default pg_catalog.gen_random_uuid(),
    oid oid,
    system text
);

create unique index one_database on rwproxy.database ((true));

grant select (id) on rwproxy.database to public;

-- How far refreshes have come whose transaction is still open. The service
-- writes it, for a refresh that takes its time; what is left of one that has
-- ended means nothing.
create table rwproxy.progress (
    refresh_id uuid primary key,
    step text not null,
    rows bigint, -- of the step so far; null when that is not known
    estimated boolean not null,
    updated_at timestamptz not null default pg_catalog.clock_timestamp()
);

create table rwproxy.event (
    sequence bigint generated always as identity primary key,
    id uuid not null default pg_catalog.gen_random_uuid(),
    at timestamptz not null default pg_catalog.clock_timestamp(),
    table_id uuid not null,
    refresh_id uuid,
    owner text not null,
    event_type text not null,
    level text not null check (level in ('INFO', 'WARN', 'ERROR', 'METRICS')),
    message text not null,
    origin jsonb not null,
    details jsonb not null,
    error jsonb
);

create index event_by_table on rwproxy.event (table_id, sequence);

create index event_by_refresh on rwproxy.event (refresh_id);

-- Each flow's query is a view in here, created by the flow's author on the
-- author's own connection, so everybody may create. That is safe because the
-- schema is on nobody's search_path, and because rwproxy finds a view by the
-- OID that was registered and checks that its registrant owns it: what else
-- somebody puts here is never looked at.
create schema rwproxy_flows;

grant usage, create on schema rwproxy_flows to public;

-- The functions of rwproxy_compat are installed after the migrations, by their
-- own text.
create schema rwproxy_compat;
