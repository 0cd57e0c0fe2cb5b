package refresh

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/rewrite"
)

// route is one way from a source's change log to the keys that its changes can
// touch. Its SQL yields the distinct tuples of the keys' values. {log:OID} in it
// stands for the change log of a relation, whose columns are called c and the
// attribute number. It calls nothing but functions, operators and casts of
// pg_catalog that never fail.
type route struct {
	Keys  []key
	Needs []logColumns
	SQL   string
	// LogsOnly says that SQL reads no table itself.
	LogsOnly bool
}

// logColumns are columns that the log rows of a relation must know for a route
// to be used.
type logColumns struct {
	Relation uint32
	Columns  []string
}

const (
	// maxKeys bounds the keys of a route: more narrow little, and make the log
	// longer.
	maxKeys = 3
	// maxChoices bounds the combinations of paths of a route's keys.
	maxChoices = 4
)

// routesOf returns the routes of a source, the one of most keys first: a log row
// that knows fewer columns can still be used for a later one.
func routesOf(s *source, keys []provedKey) []route {
	var direct, hops []provedKey
	for _, k := range keys {
		if k.isDirect() {
			direct = append(direct, k)
		} else {
			hops = append(hops, k)
		}
	}
	direct = selectKeys(s, direct)
	var routes []route
	if len(hops) > 0 && !slices.ContainsFunc(direct, func(k provedKey) bool { return k.knowsNull() }) {
		hop := shortest(hops)
		if len(direct) == 0 || hop.knowsNull() {
			routes = append(routes, hopRoute(s, direct, hop))
		}
	}
	for n := len(direct); n > 0; n-- {
		routes = append(routes, directRoute(s, direct[:n]))
	}
	return routes
}

// selectKeys chooses the keys of a route: the first one, and those of a unique
// index, which tell rows apart; else the first ones.
func selectKeys(s *source, keys []provedKey) []provedKey {
	var chosen []provedKey
	add := func(k provedKey) {
		known := slices.ContainsFunc(chosen, func(c provedKey) bool { return c.Column == k.Column })
		if !known && len(chosen) < maxKeys && choices(append(chosen, k)) <= maxChoices {
			chosen = append(chosen, k)
		}
	}
	if len(keys) > 0 {
		add(keys[0])
	}
	if unique := uniqueKeys(s, keys); unique != nil {
		for _, k := range unique {
			add(k)
		}
		return chosen
	}
	for _, k := range keys {
		add(k)
	}
	return chosen
}

// uniqueKeys returns the keys that are the columns of a unique index, nil if
// some column of it is no key.
func uniqueKeys(s *source, keys []provedKey) []provedKey {
	var unique []provedKey
	for _, c := range s.columns {
		if !c.unique {
			continue
		}
		at := slices.IndexFunc(keys, func(k provedKey) bool {
			return len(k.paths) == 1 && k.paths[0].end.kind == termColumn && k.paths[0].end.column == c
		})
		if at < 0 {
			return nil
		}
		unique = append(unique, keys[at])
	}
	return unique
}

func choices(keys []provedKey) int {
	n := 1
	for _, k := range keys {
		n *= len(k.paths)
	}
	return n
}

// shortest returns the key whose longest path is shortest, the first of those.
func shortest(keys []provedKey) provedKey {
	length := func(k provedKey) (n int) {
		for _, p := range k.paths {
			n = max(n, len(p.links))
		}
		return n
	}
	return slices.MinFunc(keys, func(a, b provedKey) int {
		switch {
		case a.knowsNull() != b.knowsNull() && a.knowsNull():
			return -1
		case a.knowsNull() != b.knowsNull():
			return 1
		}
		return length(a) - length(b)
	})
}

// directRoute reads the keys from the changed rows. A key that several scans
// have under different expressions may have either's value; all the keys of a
// tuple come from one row.
func directRoute(s *source, keys []provedKey) route {
	r := newRoute(keys)
	r.LogsOnly = true
	for _, chosen := range pathChoices(keys) {
		var values []string
		for i, p := range chosen {
			r.need(s, p.end)
			values = append(values, keySQL(p.end, keys[i], logColumn("l")))
		}
		r.add("select distinct " + strings.Join(values, ", ") + "\n  from " + logOf(s) + " as l")
	}
	return r
}

// hopRoute reads all keys but the last from the changed rows, and the last one
// at the end of the key's paths. A changed row that leads nowhere still has the
// other keys.
func hopRoute(s *source, direct []provedKey, hop provedKey) route {
	keys := append(slices.Clone(direct), hop)
	r := newRoute(keys)
	for _, chosen := range pathChoices(keys) {
		p := chosen[len(direct)]
		if len(p.links) == 0 {
			// A scan of its own that has the key itself.
			var values []string
			for i, c := range chosen {
				r.need(s, c.end)
				values = append(values, keySQL(c.end, keys[i], logColumn("l")))
			}
			r.add("select distinct " + strings.Join(values, ", ") + "\n  from " + logOf(s) + " as l")
			continue
		}
		r.add(r.hopSQL(s, chosen, direct, hop))
	}
	return r
}

func (r *route) hopSQL(s *source, chosen []path, direct []provedKey, hop provedKey) string {
	p := chosen[len(direct)]
	join := "join"
	var own, values []string
	for i, k := range direct {
		r.need(s, chosen[i].end)
		name := "k" + strconv.Itoa(i+1)
		own = append(own, keySQL(chosen[i].end, k, logColumn("l"))+" as "+name)
		values = append(values, "h0."+name)
		join = "left join"
	}
	r.need(s, p.links[0].from)
	own = append(own, p.links[0].from.sql(logColumn("l"))+" as v")
	var from strings.Builder
	from.WriteString("\n  from (select distinct " + strings.Join(own, ", ") + " from " + logOf(s) + " as l) as h0")
	for i, l := range p.links {
		next := p.end
		if i+1 < len(p.links) {
			next = p.links[i+1].from
		}
		r.need(l.next, l.to, next)
		columns := func(column func(*sourceColumn) string) string {
			return l.to.sql(column) + " as j, " + next.sql(column) + " as v"
		}
		name, before := "h"+strconv.Itoa(i+1), "h"+strconv.Itoa(i)
		// Rows that were there before the change count too.
		from.WriteString("\n  " + join + " (select " + columns(tableColumn("m")) + " from " + l.next.name + " as m" +
			" union all select " + columns(logColumn("m")) + " from " + logOf(l.next) + " as m) as " + name)
		from.WriteString(" on " + matchSQL(name+".j", before+".v", l))
	}
	last := "h" + strconv.Itoa(len(p.links)) + ".v"
	end := valueSQL(castSQL(last, p.end.typ, hop.typ), hop.typ)
	return "select distinct " + strings.Join(append(values, end), ", ") + from.String()
}

// matchSQL compares the values of a link. Text that is equal is the same bytes;
// the collation of the table's column lets its index be used.
func matchSQL(to, from string, l link) string {
	if isCollated(l.from.typ) {
		collation := l.to.collation
		if collation == "" {
			collation = `pg_catalog."C"`
			to = "(" + to + ") collate " + collation
		}
		from = "(" + from + " collate " + collation + ")"
	}
	return to + " operator(pg_catalog.=) " + from
}

// pathChoices returns every combination of one path for each key.
func pathChoices(keys []provedKey) [][]path {
	all := [][]path{nil}
	for _, k := range keys {
		var longer [][]path
		for _, chosen := range all {
			for _, p := range k.paths {
				longer = append(longer, append(slices.Clone(chosen), p))
			}
		}
		all = longer
	}
	return all
}

// keySQL is an expression as a value of the key.
func keySQL(e *expression, k provedKey, column func(*sourceColumn) string) string {
	return valueSQL(castSQL(e.sql(column), e.typ, k.typ), k.typ)
}

// valueSQL makes a key's value one that can be compared with others, wherever
// it comes from, and read again: text is compared byte by byte, and a timestamp
// is written in ISO 8601, because an abbreviation of a time zone can mean
// another one when it is read.
func valueSQL(value string, typ uint32) string {
	switch {
	case isCollated(typ):
		return "(" + value + ") collate pg_catalog.\"C\""
	case typ == oidTimestamptz:
		return "(pg_catalog.to_jsonb(" + value + ") operator(pg_catalog.#>>) '{}') collate pg_catalog.\"C\""
	}
	return value
}

func newRoute(keys []provedKey) route {
	var r route
	for _, k := range keys {
		r.Keys = append(r.Keys, k.key)
	}
	return r
}

// add adds a query whose tuples belong to the route.
func (r *route) add(query string) {
	if r.SQL != "" {
		r.SQL += "\nunion\n"
	}
	r.SQL += query
}

// need notes the columns of a source that expressions read.
func (r *route) need(s *source, expressions ...*expression) {
	at := slices.IndexFunc(r.Needs, func(n logColumns) bool { return n.Relation == s.oid })
	if at < 0 {
		at = len(r.Needs)
		r.Needs = append(r.Needs, logColumns{Relation: s.oid})
	}
	for _, e := range expressions {
		for _, c := range e.columns() {
			if !slices.Contains(r.Needs[at].Columns, c.name) {
				r.Needs[at].Columns = append(r.Needs[at].Columns, c.name)
			}
		}
	}
}

func logOf(s *source) string { return "{log:" + strconv.FormatUint(uint64(s.oid), 10) + "}" }

// logColumn writes a column of a change log, in the collation of the column
// that it logs.
func logColumn(alias string) func(*sourceColumn) string {
	return func(c *sourceColumn) string {
		name := alias + ".c" + strconv.Itoa(c.number)
		if isCollated(c.typ) {
			return "(" + name + " collate " + c.collation + ")"
		}
		return name
	}
}

func tableColumn(alias string) func(*sourceColumn) string {
	return func(c *sourceColumn) string { return alias + "." + rewrite.QuoteIdentifier(c.name) }
}
