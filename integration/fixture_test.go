package integration

import "strings"

// The flow that most tests use: daily totals of orders, over yesterday and
// today. Days are printed as their distance from today.
const (
	createOrders = `create table orders (id integer primary key, day date, amount numeric(10, 2))`
	insertOrders = `insert into orders values (1, current_date - 2, 10), (2, current_date - 1, 20), (3, current_date, 30)`
	totalsQuery  = `select day, count(*) as orders, sum(amount) as amount from orders group by day`
	totalsFlow   = `flow replace where day >= current_date - 1 by name ` + totalsQuery
	createTotals = `create streaming table totals ` + totalsFlow
	readTotals   = `select day - current_date, orders, amount from totals order by 1, 2, 3`
)

// afterCreate is what totals holds when it has just been created.
var afterCreate = []string{"-1|1|20.00", "0|1|30.00"}

// createTotals makes the source and the flow.
func (s *session) createTotals() {
	s.t.Helper()
	s.exec(createOrders, insertOrders, createTotals)
}

// flowObjects lists what a flow leaves in a database: the flow, its view, and
// its table if it has this name.
func (s *session) flowObjects(table string) string {
	s.t.Helper()
	var present []string
	for _, object := range []struct{ name, count string }{
		{"table", `select count(*) from pg_class where relname = '` + table + `'`},
		{"flow", `select count(*) from rwproxy.flows where target_table = '` + table + `'`},
		{"view", `select count(*) from pg_class where relkind = 'v' and relnamespace = 'rwproxy_flows'::regnamespace`},
	} {
		if s.value(object.count) != "0" {
			present = append(present, object.name)
		}
	}
	return strings.Join(present, ", ")
}

// view is the name of the view that holds a flow's query.
func (s *session) view(table string) string {
	s.t.Helper()
	return s.value(`select oid::regclass from pg_class where relkind = 'v' and relnamespace = 'rwproxy_flows'::regnamespace
		and relname ~ '^` + table + `_'`)
}
