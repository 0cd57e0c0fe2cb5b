package integration

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oracle plays random statements against the sources and the target of one
// shape, refreshes it, and compares. What it does follows from its seed alone:
// one statement runs at a time, whatever transactions are open.
type oracle struct {
	t         *testing.T
	shape     shape
	random    *rand.Rand
	maker     *statementMaker
	direct    string   // the database's URL past the proxy
	refresher *session // through the proxy
	writers   []*writer
	window    string                     // the flow's predicate
	stored    string                     // see storedColumns
	changed   map[string]int             // the next of each source's changes
	used      map[string]map[string]bool // techniques, and their reasons
	script    []string                   // what was done, oldest first
}

// writer is a session past the proxy, with at most one open transaction. It
// touches the rows of its share.
type writer struct {
	*session
	share      int
	open       bool
	savepoints int
}

// shares is the number of writers, and so of transactions open at once.
const shares = 3

// newOracle creates the tables and the flow of a shape in a schema of its own.
func newOracle(t *testing.T, d database, sh shape, schema string, seed uint64, major int) *oracle {
	t.Helper()
	o := &oracle{
		t: t, shape: sh, direct: d.direct, random: rand.New(rand.NewPCG(seed, 0)), window: sh.windows[0],
		changed: map[string]int{}, used: map[string]map[string]bool{},
	}
	o.maker = &statementMaker{random: o.random, merge: major >= 15}
	open := func(url string) *session {
		s := connect(t, url)
		s.exec(`set search_path = `+schema, `set lock_timeout = '5s'`)
		return s
	}
	connect(t, d.direct).exec(`create schema ` + schema)
	o.refresher = open(d.url)
	for share := range shares {
		o.writers = append(o.writers, &writer{session: open(d.direct), share: share})
	}
	for _, src := range sh.sources {
		o.do("", o.writers[0].session, src.create...)
		o.do("", o.writers[0].session, o.maker.insert(src.name, src.columns, 0, 12), o.maker.insert(src.name, src.columns, 1, 12), o.maker.insert(src.name, src.columns, 2, 12))
	}
	o.do("", o.writers[0].session, sh.setup...)
	if sh.upstream != "" {
		o.do("", o.refresher, `create streaming table upstream flow replace where true by name `+sh.upstream)
	}
	columns := ""
	if sh.columns != "" {
		columns = "(" + sh.columns + ") "
	}
	o.do("", o.refresher, `create streaming table target `+columns+o.flow())
	o.stored = o.storedColumns()
	return o
}

// flow is the clause that defines it.
func (o *oracle) flow() string { return `flow replace where ` + o.window + ` by name ` + o.shape.query }

// do runs statements that must succeed, and notes them.
func (o *oracle) do(who string, s *session, statements ...string) {
	o.t.Helper()
	for _, sql := range statements {
		if err := o.try(who, s, sql); err != nil {
			o.fatalf("%s\n%s", sql, describe(err))
		}
	}
}

func (o *oracle) try(who string, s *session, sql string) error {
	o.script = append(o.script, who+sql+";")
	_, err := s.run(sql)
	if err != nil {
		o.script = append(o.script, "-- "+strings.ReplaceAll(describe(err), "\n", "\n-- "))
	}
	return err
}

// fatalf fails the test with the statements that led there.
func (o *oracle) fatalf(format string, arguments ...any) {
	o.t.Helper()
	o.t.Fatalf(format+"\nafter\n%s", append(arguments, strings.Join(o.script, "\n"))...)
}

// write lets the writers do some steps. With gentle ones the refresh that
// follows has little to do: few rows differ, and their keys are known.
func (o *oracle) write(gentle bool) {
	o.t.Helper()
	for range 1 + o.random.IntN(7) {
		o.step(pick(o.random, o.writers), gentle)
	}
	if gentle {
		return
	}
	if chance(o.random, 3) {
		o.writeTarget()
	}
	if chance(o.random, 4) {
		o.changeAlone()
	}
}

// step lets a writer begin or end a transaction or write a source.
func (o *oracle) step(w *writer, gentle bool) {
	o.t.Helper()
	r := o.random
	who := fmt.Sprintf("/* writer %d */ ", w.share)
	if !w.open && chance(r, 3) {
		o.do(who, w.session, pick(r, []string{"begin", "begin", "begin isolation level repeatable read", "begin isolation level serializable"}))
		w.open, w.savepoints = true, 0
	}
	sql := o.maker.make(pick(r, o.shape.sources), w.share, gentle)
	if w.open {
		switch n := r.IntN(12); {
		case n < 3:
			sql = "commit"
		case n < 4:
			sql = "rollback"
		case n < 5:
			w.savepoints++
			sql = fmt.Sprintf("savepoint s%d", w.savepoints)
		case n < 6 && w.savepoints > 0:
			sql = fmt.Sprintf("rollback to savepoint s%d", w.savepoints)
		case n < 7 && w.savepoints > 0:
			sql = fmt.Sprintf("release savepoint s%d", w.savepoints)
			w.savepoints--
		}
	}
	o.writeOrUndo(who, w, sql)
}

// writeOrUndo runs a writer's statement. One that fails as a user's may (a
// serialization failure, a duplicate key) ends its transaction.
func (o *oracle) writeOrUndo(who string, w *writer, sql string) {
	o.t.Helper()
	err := o.try(who, w.session, sql)
	if err != nil {
		switch code := sqlState(err); code[:min(2, len(code))] {
		case "40", "23", "55":
		default:
			o.fatalf("%s\n%s", sql, describe(err))
		}
		if w.open {
			o.do(who, w.session, "rollback")
		}
		w.open = false
	}
	if sql == "commit" || sql == "rollback" {
		w.open = false
	}
}

// endAll ends the open transactions.
func (o *oracle) endAll() {
	for _, w := range o.writers {
		if w.open {
			o.writeOrUndo(fmt.Sprintf("/* writer %d */ ", w.share), w, pick(o.random, []string{"commit", "commit", "rollback"}))
		}
	}
}

// writeTarget writes the target as somebody who should not.
func (o *oracle) writeTarget() {
	o.t.Helper()
	table := "target"
	if o.shape.upstream != "" && chance(o.random, 2) {
		table = "upstream"
	}
	predicate := pick(o.random, o.shape.windows)
	if table == "upstream" {
		predicate = "true"
	}
	row := "(select ctid from " + table + " where " + predicate + " order by " + table + "::text limit 2)"
	// Open transactions may hold rows of the sources, never of the target.
	w := &writer{session: o.writers[0].session}
	if w.open = o.writers[0].open; w.open {
		w.session = o.writers[1].session
		if o.writers[1].open {
			o.endAll()
		}
		w.open = false
	}
	sql := pick(o.random, []string{
		"delete from " + table + " where ctid in " + row,
		"insert into " + table + " select * from " + table + " where ctid in " + row,
		"delete from " + table + " where not (" + predicate + ")",
		"update " + table + " set " + o.column(table) + " = null where ctid in " + row,
		"set session_replication_role = replica; delete from " + table + " where ctid in " + row + "; reset session_replication_role",
	})
	o.writeOrUndo("/* external */ ", w, sql)
}

// column is a column of a table, always the same.
func (o *oracle) column(table string) string {
	return o.writers[0].value(`select quote_ident(attname) from pg_attribute where attrelid = '` + table + `'::regclass and attnum = 1`)
}

// changeAlone does what needs a table for itself: no transaction is open.
func (o *oracle) changeAlone() {
	o.t.Helper()
	o.endAll()
	src := pick(o.random, o.shape.sources)
	if len(src.changes) == 0 || chance(o.random, 4) {
		o.do("", o.writers[0].session, pick(o.random, []string{
			"truncate " + src.name,
			"begin; truncate " + src.name + "; rollback",
			"begin; savepoint s; truncate " + src.name + "; rollback to savepoint s; " + o.maker.make(src, 0, true) + "; commit",
			"set session_replication_role = replica; " + o.maker.make(src, 1, false) + "; reset session_replication_role",
			"vacuum " + src.name,
			"analyze " + src.name,
		}))
		return
	}
	o.do("", o.writers[0].session, src.changes[o.changed[src.name]%len(src.changes)])
	o.changed[src.name]++
}

// refresh refreshes the flow in one of the ways there are, and returns a
// description of what is wrong afterwards, "" if nothing.
func (o *oracle) refresh(gentle bool) string {
	o.t.Helper()
	r := o.random
	s := o.refresher
	s.protocol = pick(r, []protocol{simple, extended})
	if o.shape.upstream != "" && !chance(r, 3) {
		o.do("", s, `refresh streaming table upstream`)
	}
	if chance(r, 8) {
		o.do("", s, fmt.Sprintf("set oracle.least = '%d'", r.IntN(9)))
	}
	if gentle {
		return o.replaced(`refresh streaming table target`, o.window, o.window)
	}
	switch n := r.IntN(14); {
	case n < 1:
		return o.replaced(`refresh streaming table target full`, "true", o.window)
	case n < 3:
		override := pick(r, append(o.shape.windows[:len(o.shape.windows):len(o.shape.windows)], "true", "false"))
		return o.replaced(`refresh streaming table target where `+override, override, override)
	case n < 5:
		o.endAll() // it may install triggers
		o.window = pick(r, o.shape.windows)
		columns := ""
		if o.shape.columns != "" {
			columns = "(" + o.shape.columns + ") "
		}
		return o.replaced(`create or refresh streaming table target `+columns+o.flow(), o.window, o.window)
	case n < 8:
		return o.refreshInTransaction()
	}
	return o.replaced(`refresh streaming table target`, o.window, o.window)
}

// refreshInTransaction refreshes between other statements of a transaction.
func (o *oracle) refreshInTransaction() string {
	o.t.Helper()
	r, s := o.random, o.refresher
	s.protocol = simple
	// The transaction writes rows of one share, the others go on with theirs.
	o.endAll()
	write := func() {
		if chance(r, 2) {
			o.do("", s, o.maker.make(pick(r, o.shape.sources), 0, true))
		}
		if chance(r, 2) {
			o.writeOrUndo("/* writer 1 */ ", o.writers[1], o.maker.make(pick(r, o.shape.sources), 1, true))
		}
	}
	const statement = `refresh streaming table target`
	before := s.rows(`select target::text from target order by 1`)
	o.do("", s, pick(r, []string{"begin", "begin isolation level repeatable read"}))
	write()
	if chance(r, 3) {
		o.do("", s, "savepoint s")
		write()
		if wrong := o.replaced(statement, o.window, o.window); wrong != "" {
			return wrong
		}
		o.do("", s, "rollback to savepoint s")
		if after := s.rows(`select target::text from target order by 1`); !slices.Equal(before, after) {
			return "a rollback to a savepoint left\n" + cmp.Diff(before, after)
		}
	}
	if wrong := o.replaced(statement, o.window, o.window); wrong != "" {
		return wrong
	}
	write()
	if chance(r, 3) {
		o.do("", s, "rollback")
		if after := s.rows(`select target::text from target order by 1`); !slices.Equal(before, after) {
			return "a rollback left\n" + cmp.Diff(before, after)
		}
		return ""
	}
	o.do("", s, "commit")
	return ""
}

// refreshed matches the notice of a refresh.
var refreshed = regexp.MustCompile(`^refreshed \S+target: ([A-Z_]+)(?: \(([A-Z_]+)\))?`)

// replaced runs a statement that replaces the rows of one predicate by the
// query's of another, and compares the whole target with what must be in it,
// row by row and by image.
func (o *oracle) replaced(statement, deleted, inserted string) string {
	o.t.Helper()
	s := o.refresher
	var want []string
	if o.shape.moving {
		o.do("", s, `create temporary table before as table target`)
	} else {
		want = s.rows(`select target::text from target where (` + deleted + `) is not true`)
	}
	technique, reason := o.run(statement)
	if o.shape.moving {
		// History has the predicate with the time of this refresh.
		resolved := s.value(`select window_predicate from rwproxy.refreshes where target_schema = current_schema() and target_table = 'target' order by requested_at desc limit 1`)
		if deleted != "true" {
			deleted = resolved
		}
		if inserted != "true" {
			inserted = resolved
		}
		want = s.rows(`select before::text from before where (` + deleted + `) is not true`)
		o.do("", s, `drop table before`)
	}
	want = append(want, s.rows(o.recompute(inserted))...)
	got := s.rows(`select target::text from target`)
	slices.Sort(want)
	slices.Sort(got)
	if technique == "" {
		return statement + "\ndoes not say what it did"
	}
	if o.used[technique] == nil {
		o.used[technique] = map[string]bool{}
	}
	o.used[technique][reason] = true
	o.script = append(o.script, "-- "+technique+" "+reason)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Sprintf("%s\nwas done as %s %s and is wrong (-recompute +target)\n%s", statement, technique, reason, diff)
	}
	return ""
}

// run refreshes, now and then by the queue, and returns what was done; "" if it
// does not say so.
func (o *oracle) run(statement string) (technique, reason string) {
	o.t.Helper()
	s := o.refresher
	if strings.HasPrefix(statement, "refresh") && s.conn.TxStatus() == 'I' && !o.shape.ofSession && chance(o.random, 4) {
		statement += " async"
		o.script = append(o.script, "/* refresh */ "+statement+";")
		id := s.async(statement)
		s.ends(id, "COMPLETED", "")
		technique, reason, _ = strings.Cut(s.value(`select technique || '|' || coalesce(reason, '') from rwproxy.refreshes where refresh_id = '`+id+`'`), "|")
		return technique, reason
	}
	s.notices = nil
	o.do("/* refresh */ ", s, statement)
	for _, n := range s.notices {
		if match := refreshed.FindStringSubmatch(n.Message); match != nil {
			technique, reason = match[1], match[2]
		}
	}
	return technique, reason
}

// recompute selects the rows of the query for which a predicate is true, as
// the target stores them.
func (o *oracle) recompute(predicate string) string {
	return `select stored::text from (select ` + o.stored + ` from (` + o.shape.query + `) q) stored where ` + predicate
}

// storedColumns are the target's columns as a refresh fills them from q, the
// query.
func (o *oracle) storedColumns() string {
	returned := o.refresher.columnNames(o.shape.query)
	var stored []string
	for _, row := range o.refresher.rows(`select quote_ident(a.attname), format_type(a.atttypid, a.atttypmod), coalesce(pg_get_expr(d.adbin, d.adrelid), 'null')
		from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
		where a.attrelid = 'target'::regclass and a.attnum > 0 order by a.attnum`) {
		column := strings.SplitN(row, "|", 3)
		name, typ, value := column[0], column[1], column[2]
		if slices.Contains(returned, name) {
			value = "q." + name
		}
		stored = append(stored, value+"::"+typ+" as "+name)
	}
	return strings.Join(stored, ", ")
}

// columnNames are the names of a query's columns.
func (s *session) columnNames(query string) []string {
	s.t.Helper()
	// Of a result without rows the driver keeps no description.
	return strings.Split(s.columns(`select q.* from (select) one left join (`+query+`) q on true limit 1`), ", ")
}
