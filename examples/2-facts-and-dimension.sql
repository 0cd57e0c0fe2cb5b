-- Facts joined to a dimension.
--
-- Sales are reported by the customer's segment. When a customer moves to
-- another segment, the days that are still open follow; closed days keep the
-- segment that was true then, until someone asks for a correction.
--
-- Run it through rwproxy:  psql -h localhost -p 6432 -f 2-facts-and-dimension.sql
-- Remove it again:         drop schema example_2 cascade;

create schema example_2;
set search_path = example_2;

create table customers (
    customer_id integer primary key,
    segment     text not null
);

create table sales (
    sale_id     integer primary key,
    customer_id integer not null references customers,
    date        date not null,
    amount      numeric(10, 2) not null
);

insert into customers values (1, 'small'), (2, 'large');

insert into sales values
    (1, 1, current_date - 3, 100.00),
    (2, 2, current_date - 3, 200.00),
    (3, 1, current_date - 1, 10.00),
    (4, 2, current_date, 20.00);

-- The predicate may use the alias that the column has in the query: f.date is
-- the output column "date".
create streaming table sales_by_segment
    flow replace where f.date >= date_add(current_date(), -1)
    by name
    select f.date, d.segment, sum(f.amount) as amount
    from sales f
    join customers d on d.customer_id = f.customer_id
    group by all;

-- Load the closed days once.
refresh streaming table sales_by_segment where date < date_add(current_date(), -1);

select date - current_date as day, segment, amount
from sales_by_segment
order by day, segment;

-- Customer 1 has grown.
update customers set segment = 'large' where customer_id = 1;

refresh streaming table sales_by_segment;

-- Yesterday shows the new segment, three days ago the old one.
select date - current_date as day, segment, amount
from sales_by_segment
order by day, segment;

-- That customer was in the wrong segment all along: correct one closed day.
refresh streaming table sales_by_segment where date = date_add(current_date(), -3);

select date - current_date as day, segment, amount
from sales_by_segment
order by day, segment;
