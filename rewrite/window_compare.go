package rewrite

import "strconv"

// Compare reads the rows of a window on both sides, changes nothing, and returns
// what one side has that the other has not, each row as often as that. A row of
// the result stands for rows that are equal: whether they are missing, that is
// in the flow's query and not in the target, how many differ on that side in
// all, and one of them as text. There are at most limit of each side.
//
// Rows are equal if they are byte for byte, as record_send has them; if sendable
// is false a column has no such form, and their text is compared.
//
// pg_catalog is searched first, so nobody's functions or operators come between.
func (w Window) Compare(limit int, sendable bool) string {
	row := "row(" + w.names() + ")"
	image := w.image()
	if !sendable {
		image = row + "::text"
	}
	columns := "select " + image + " as image, " + row + "::text as line\n"
	return `with fresh as (
` + columns + w.source() + w.where() + `
),
stored as (
` + columns + `from (select ` + w.names() + ` from ` + w.Target + `) as ` + TargetAlias + w.where() + `
),
surplus as (
select sum(one) as copies, min(line collate "C") as line
from (select image, line, 1 as one from fresh union all select image, line, -1 from stored) as both_sides
group by image
having sum(one) <> 0
),
numbered as (
select copies > 0 as missing, line,
       sum(abs(copies)) over (partition by copies > 0) as total,
       row_number() over (partition by copies > 0 order by line collate "C") as number
from surplus
)
select missing, total, line
from numbered
where number <= ` + strconv.Itoa(limit) + `
order by missing desc, number`
}
