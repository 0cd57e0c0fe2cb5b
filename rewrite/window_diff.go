package rewrite

import (
	"strconv"
	"strings"
)

// Diff makes the rows of stored, a window of the same target, those that the
// flow's query has for w, and writes only the rows that differ: equal rows are
// equal byte for byte, as record_send has them, and as often there. It returns
// one row: how many rows were to be deleted and how many were, how many were
// inserted, and how many of those the target holds outside the window.
//
// pg_catalog is searched first, so nobody's functions or operators come between.
//
// It is one statement, so that both sides are read under one snapshot, and the
// rows that go are deleted before others are inserted: a unique key may move
// from one row to another.
func (w Window) Diff(stored Window) string {
	return `with fresh as materialized (
select ` + w.numbered() + `, ` + w.image() + ` as image
` + w.source() + w.where() + `
),
stored as materialized (
select tableoid as relation, ctid as place, ` + w.image() + ` as image
from (select tableoid, ctid, ` + w.names() + ` from ` + w.Target + `) as ` + TargetAlias + stored.where() + `
),
surplus as (
select image, sum(one) as copies
from (select image, 1 as one from fresh union all select image, -1 from stored) as both_sides
group by image
having sum(one) <> 0
),
stale as (
select relation, place
from (select s.relation, s.place, p.copies, row_number() over (partition by s.image) as copy
      from stored as s join surplus as p on p.image = s.image
      where p.copies < 0) as numbered
where copy <= -copies
),
removed as (
delete from ` + w.Target + ` as gone using stale
where gone.tableoid = stale.relation and gone.ctid = stale.place
returning 1
),
written as (
insert into ` + w.Target + ` as ` + TargetAlias + ` (` + w.insertedNames() + `)
select ` + w.insertedNumbers() + `
from (select f.*, p.copies, row_number() over (partition by f.image) as copy
      from fresh as f join surplus as p on p.image = f.image
      where p.copies > 0) as numbered
where copy <= copies and (select count(*) from removed) >= 0
returning (` + w.predicate() + `
) is true as inside
)
select (select count(*) from stale), (select count(*) from removed),
       count(*), count(*) filter (where not inside)
from written`
}

// numbered are the columns under names that are nobody's.
func (w Window) numbered() string {
	columns := make([]string, len(w.Columns))
	for i, c := range w.Columns {
		columns[i] = QuoteIdentifier(c.Name) + " as " + number(i)
	}
	return strings.Join(columns, ", ")
}

// insertedNumbers are the numbered columns of insertedNames.
func (w Window) insertedNumbers() string {
	var columns []string
	for i, c := range w.Columns {
		if !c.Missing {
			columns = append(columns, number(i))
		}
	}
	return strings.Join(columns, ", ")
}

func number(i int) string { return "c" + strconv.Itoa(i+1) }

// names are those of all columns.
func (w Window) names() string {
	names := make([]string, len(w.Columns))
	for i, c := range w.Columns {
		names[i] = QuoteIdentifier(c.Name)
	}
	return strings.Join(names, ", ")
}

// image is a row's bytes.
func (w Window) image() string {
	return "record_send(row(" + w.names() + "))"
}
