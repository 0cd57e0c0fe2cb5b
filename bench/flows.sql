-- The sources of the flows: bench.rows sales over 100 days, of which the flows
-- have the last 30 in their window.

create table store (store int primary key, name text not null, region text not null);

insert into store
select n, 'store ' || n, 'region ' || n % 50
  from generate_series(0, 1999) as n;

create table product (product int primary key, name text not null, category text not null);

insert into product
select n, 'product ' || n, 'category ' || n % 100
  from generate_series(0, 9999) as n;

create table sale (
    id bigint primary key,
    day date not null,
    store int not null,
    product int not null,
    amount numeric(12, 2) not null
);

insert into sale
select n,
       date '2026-01-01' + (n * 100 / current_setting('bench.rows')::bigint)::int,
       (hashint8extended(n, 1) & 2147483647) % 2000,
       (hashint8extended(n, 2) & 2147483647) % 10000,
       (hashint8extended(n, 3) & 65535) / 100.0
  from generate_series(0, current_setting('bench.rows')::bigint - 1) as n;

create index on sale (day);
