package integration

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// source is a table that the query of a shape reads. Random statements fill its
// columns, of which id numbers the rows.
type source struct {
	name    string
	create  []string
	columns []sourceColumn // besides id
	// leaves are partitions or children, which are written by name too.
	leaves []leaf
	// changes are done one after the other, over and over: they need the table
	// for themselves.
	changes []string
	// keyed says that id is unique, for ON CONFLICT and MERGE.
	keyed bool
	// most is the number of rows above which random statements delete: 60 if 0.
	most int
}

// sourceColumn is a column and the SQL literals that are put into it.
type sourceColumn struct {
	name   string
	values []string
}

// leaf is a part of a source that holds only some values of a column, "" if
// any.
type leaf struct {
	name   string
	column string
	values []string
}

// literals is a list of SQL literals, parted by spaces.
func literals(list string) []string { return strings.Fields(list) }

// quoted makes string literals of a type out of words; null stays null.
func quoted(typ, list string) []string {
	values := literals(list)
	for i, v := range values {
		if v != "null" {
			values[i] = typ + " '" + v + "'"
		}
	}
	return values
}

var (
	days    = quoted("date", "2024-01-01 2024-01-02 2024-01-03 2024-01-04 2024-01-05 2024-01-06 2024-01-07 2024-01-08 null")
	keys    = literals("1 2 3 4 5 6 7 8 null")
	few     = literals("1 2 3 4 5 null")
	numbers = literals("0 1 2 3 4 5 6 7 8 9 10 11 12 null")
	moments = quoted("timestamp", "2024-01-01T00:00 2024-01-02T23:59:59.999 2024-01-03T12:00 2024-01-04T00:00 "+
		"2024-01-04T18:30 2024-01-05T06:00 2024-01-06T23:00 infinity null")
	decimals = literals("1 1.0 1.00 2.5 2.50 0 0.0 -3 null")
	words    = append(quoted("text", "a A b B aa null"), "''", "' a'")
)

// about are moments some seconds before and after now, and none.
func about() []string {
	moments := []string{"null"}
	for tenths := -30; tenths <= 40; tenths += 5 {
		moments = append(moments, fmt.Sprintf("clock_timestamp() + interval '%d ms'", tenths*100))
	}
	return moments
}

func columnsNamed(names string) []sourceColumn {
	values := map[string][]string{
		"d": days, "k": keys, "s": few, "v": numbers, "at": moments, "n": decimals, "c": words, "r": literals("1 2 3 null"),
		"parent": literals("1 2 3 4 5 6 null"),
	}
	var columns []sourceColumn
	for _, name := range strings.Fields(names) {
		columns = append(columns, sourceColumn{name, values[name]})
	}
	return columns
}

// The sources that most shapes read.
var (
	facts = source{
		name:    "facts",
		create:  []string{`create table facts (id integer primary key, d date, k integer, s integer, v integer, at timestamp, n numeric, c text)`},
		columns: columnsNamed("d k s v at n c"),
		keyed:   true,
	}
	others = source{
		name:    "others",
		create:  []string{`create table others (id integer, d date, k integer, s integer, v integer, at timestamp, n numeric, c text)`},
		columns: columnsNamed("d k s v at n c"),
	}
	dims = source{
		name:    "dims",
		create:  []string{`create table dims (id integer, s integer, r integer, v integer, c text)`},
		columns: columnsNamed("s r v c"),
		most:    15,
	}
	regions = source{
		name:    "regions",
		create:  []string{`create table regions (id integer, r integer, c text)`},
		columns: columnsNamed("r c"),
		most:    6,
	}
	// parted has a partition with partitions of its own and a default one.
	parted = source{
		name: "parted",
		create: []string{
			`create table parted (id integer, d date, k integer, v integer) partition by range (d)`,
			`create table parted_1 partition of parted for values from ('2024-01-01') to ('2024-01-03')`,
			`create table parted_2 partition of parted for values from ('2024-01-03') to ('2024-01-05')`,
			`create table parted_3 partition of parted for values from ('2024-01-05') to ('2024-01-08') partition by list (k)`,
			`create table parted_3a partition of parted_3 for values in (1, 2, 3, 4)`,
			`create table parted_3b partition of parted_3 default`,
			`create table parted_rest partition of parted default`,
		},
		columns: columnsNamed("d k v"),
		leaves: []leaf{
			{"parted_1", "d", quoted("date", "2024-01-01 2024-01-02")},
			{"parted_2", "d", quoted("date", "2024-01-03 2024-01-04")},
			{"parted_3", "d", quoted("date", "2024-01-05 2024-01-07")},
			{"parted_rest", "d", quoted("date", "2024-01-08 2024-01-09 null")},
		},
		changes: []string{
			`alter table parted detach partition parted_2`,
			`with strays as (delete from parted_rest where d >= '2024-01-03' and d < '2024-01-05' returning *)
				insert into parted_2 select * from strays;
			alter table parted attach partition parted_2 for values from ('2024-01-03') to ('2024-01-05')`,
			`truncate parted_3`,
			`create table parted_4 partition of parted for values from ('2024-02-01') to ('2024-03-01')`,
			`truncate parted_1`,
			`insert into parted_4 (id, d, k, v) values (-1, '2024-02-01', 1, 1)`,
			`drop table parted_4`,
			`truncate parted`,
		},
	}
	// inherited has a child that can be cut off.
	inherited = source{
		name: "inherited",
		create: []string{
			`create table inherited (id integer, d date, k integer, v integer)`,
			`create table heir (extra text) inherits (inherited)`,
			`create table grandchild () inherits (heir)`,
		},
		columns: columnsNamed("d k v"),
		leaves:  []leaf{{name: "heir"}, {name: "grandchild"}},
		changes: []string{
			`alter table heir no inherit inherited`, `alter table heir inherit inherited`, `truncate heir`, `truncate only inherited`,
		},
	}
	// sightings are about now.
	sightings = source{
		name:    "sightings",
		create:  []string{`create table sightings (id integer, at timestamptz, k integer, v integer)`},
		columns: append(columnsNamed("k v"), sourceColumn{"at", about()}),
	}
	// tree is walked by a recursive query.
	tree = source{
		name:    "tree",
		create:  []string{`create table tree (id integer, parent integer, v integer)`},
		columns: columnsNamed("parent v"),
		most:    12,
	}
)

// statementMaker makes random statements on a source.
type statementMaker struct {
	random *rand.Rand
	nextID int
	merge  bool // the server knows MERGE
}

func pick[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// chance is true once in n times.
func chance(r *rand.Rand, n int) bool { return r.IntN(n) == 0 }

// make returns a statement that writes src. Of the rows there are it touches
// only those of one share, id % 3, so that open transactions with other shares
// are not in its way.
func (m *statementMaker) make(src source, share int, gentle bool) string {
	r := m.random
	table := src.name
	columns := src.columns
	if len(src.leaves) > 0 && chance(r, 2) {
		part := pick(r, src.leaves)
		table = part.name
		columns = nil
		for _, c := range src.columns {
			if c.name == part.column {
				c.values = part.values
			}
			columns = append(columns, c)
		}
	}
	mine := fmt.Sprintf("id %% 3 = %d", share)
	some := mine + " and " + m.condition(src)
	if gentle {
		some = fmt.Sprintf("id in (select id from %s where %s order by md5(id || '%d') limit %d)", table, mine, r.Int32(), 1+r.IntN(2))
	}
	most := src.most
	if most == 0 {
		most = 60
	}
	shrink := fmt.Sprintf("delete from %s where %s and id %% 2 = %d and (select count(*) from %s) > %d", table, mine, r.IntN(2), table, most)
	switch n := r.IntN(20); {
	case n < 6:
		return m.insert(table, columns, share, 1+r.IntN(3))
	case n < 12:
		return "update " + table + " set " + m.assignments(columns) + " where " + some
	case n < 15:
		return "delete from " + table + " where " + some
	case n < 16:
		return shrink
	case n < 17 && src.keyed:
		return "insert into " + table + " (id, " + names(columns) + ") select id, " + names(columns) + " from " + table +
			" where " + some + " on conflict (id) do update set " + m.assignments(columns)
	case n < 18 && src.keyed && m.merge && len(src.leaves) == 0:
		return "merge into " + table + " using (select id from " + table + " where " + some + ") old on old.id = " + table + ".id" +
			" when matched and " + table + ".v % 2 = 0 then delete when matched then update set " + m.assignments(columns)
	case n < 18 && !gentle:
		return m.insert(table, columns, share, 20+r.IntN(20))
	default:
		column := pick(r, columns).name
		return "update " + table + " set " + column + " = " + column + " where " + some
	}
}

// condition selects rows of a source by one of its columns.
func (m *statementMaker) condition(src source) string {
	column := pick(m.random, src.columns)
	value := pick(m.random, column.values)
	if value == "null" {
		return column.name + " is null"
	}
	return column.name + " " + pick(m.random, []string{"=", "=", "=", "<", ">", "<>"}) + " " + value
}

// assignments sets one or two columns.
func (m *statementMaker) assignments(columns []sourceColumn) string {
	first := m.random.IntN(len(columns))
	set := columns[first].name + " = " + pick(m.random, columns[first].values)
	if second := m.random.IntN(len(columns)); second != first {
		set += ", " + columns[second].name + " = " + pick(m.random, columns[second].values)
	}
	return set
}

func (m *statementMaker) insert(table string, columns []sourceColumn, share, rows int) string {
	list := make([]string, rows)
	for i := range list {
		m.nextID++
		values := []string{fmt.Sprint(m.nextID*3 + share)}
		for _, c := range columns {
			values = append(values, pick(m.random, c.values))
		}
		list[i] = "(" + strings.Join(values, ", ") + ")"
	}
	return "insert into " + table + " (id, " + names(columns) + ") values " + strings.Join(list, ", ")
}

func names(columns []sourceColumn) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = c.name
	}
	return strings.Join(list, ", ")
}
