package refresh

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// roundsVariable is how many rounds of random changes each shape goes through,
// when it is set.
const roundsVariable = "RWPROXY_PROOF_ROUNDS"

func proofRounds(t *testing.T) int {
	text := os.Getenv(roundsVariable)
	if text == "" {
		return 6
	}
	rounds, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return rounds
}

// breakage is a way to use proofs wrongly, which the oracle must notice.
type breakage struct {
	logged string              // which images are logged: "", "new", "old"
	keys   func(*key)          // changes the keys of a route
	sql    func(string) string // changes the SQL of a route
	whole  bool                // leave the condition of a source out when another has changed
}

// oracle changes the sources of a query at random and looks whether each row of
// the query that differs lies in what its proof predicts.
type oracle struct {
	*prover
	random *rand.Rand
	broken breakage
	proved *proof
}

var oracleTables = []string{"s", "d", "m", "u", "ev", "p", "parent", "child"}

func newOracle(t *testing.T, seed uint64) *oracle {
	o := &oracle{prover: newProver(t, sourcesOfShapes), random: rand.New(rand.NewPCG(seed, 1))}
	for range 3 {
		for _, table := range oracleTables {
			for range 8 {
				o.exec(o.insert(table))
			}
		}
	}
	return o
}

// value is a random literal for a column of the sources.
func (o *oracle) value(column string) string {
	pick := func(values ...string) string { return values[o.random.IntN(len(values))] }
	number := func(n int) string { return strconv.Itoa(o.random.IntN(n)) }
	if o.random.IntN(6) == 0 && column != "label" {
		return "null"
	}
	switch column {
	case "day":
		return pick("'2024-01-01'", "'2024-01-02'", "'2024-01-03'", "'2024-02-29'")
	case "region", "city", "name", "label":
		return pick("'n'", "'s'", "'N'", "''", `'a"b''c\d'`)
	case "note":
		return pick("'x'", "'xyz'", "' x'", "''")
	case "kind":
		return pick("'a'", "'a  '", "'ab'")
	case "how":
		return pick("'sad'", "'ok'", "'happy'")
	case "flag":
		return pick("true", "false")
	case "n":
		return pick("1.0", "2", "-0.5", "'NaN'") // equal numbers of two scales have no one answer as a group
	case "at", "plain":
		return pick("'2024-01-01 23:30:00+00'", "'2024-01-02 00:10:00+00'", "'2024-01-02 12:00:00+00'", "'infinity'")
	case "amount":
		return number(8)
	}
	return number(5)
}

var oracleColumns = map[string][]string{
	"s":      {"day", "region", "store", "product", "amount", "note"},
	"d":      {"store", "city", "manager", "size"},
	"m":      {"name"},
	"u":      {"label"},
	"ev":     {"at", "plain", "kind", "shop", "how", "n", "flag"},
	"p":      {"id", "day", "store", "amount"},
	"parent": {"id", "day", "store"},
	"child":  {"id", "day", "store", "extra"},
}

func (o *oracle) insert(table string) string {
	columns := oracleColumns[table]
	values := make([]string, len(columns))
	for i, column := range columns {
		values[i] = o.value(column)
	}
	names, conflict := strings.Join(columns, ", "), ""
	if table == "s" || table == "m" || table == "u" {
		names = "id, " + names
		values = append([]string{strconv.Itoa(o.random.IntN(40))}, values...)
		if table == "m" {
			values[0] = strconv.Itoa(o.random.IntN(5))
		}
		conflict = " on conflict do nothing"
	}
	return "insert into " + table + " (" + names + ") values (" + strings.Join(values, ", ") + ")" + conflict
}

// change is one random statement on a table.
func (o *oracle) change(table string) string {
	columns := oracleColumns[table]
	condition := columns[o.random.IntN(len(columns))]
	value := o.value(condition)
	where := " where " + condition + " = " + value
	if value == "null" {
		where = " where " + condition + " is null"
	}
	switch o.random.IntN(5) {
	case 0:
		return "delete from " + table + where
	case 1, 2:
		column := columns[o.random.IntN(len(columns))]
		return "update " + table + " set " + column + " = " + o.value(column) + where
	}
	return o.insert(table)
}

// start makes a proof of a shape, and the tables that hold what its view and
// its sources were, and how they have changed.
func (o *oracle) start(s shape) {
	o.proved = o.prove(s.query, s.keys)
	statements := []string{"drop table if exists old_v", "create temp table old_v as select q.*, q::text as image from v as q limit 0"}
	for _, s := range o.proved.Sources {
		columns := o.query("select string_agg(format('%I as c%s', attname, attnum), ', ' order by attnum) from pg_attribute where attrelid = '" +
			s.Name + "'::regclass and attnum > 0")[0][0].Text
		statements = append(statements,
			"drop table if exists old_"+s.oidText()+", log_"+s.oidText(),
			"create temp table old_"+s.oidText()+" as select * from "+s.Name+" limit 0",
			"create temp table log_"+s.oidText()+" as select "+columns+" from "+s.Name+" limit 0")
	}
	o.exec(statements...)
}

// oidText names the tables of a source.
func (s sourceProof) oidText() string { return strconv.FormatUint(uint64(s.OID), 10) }

// round changes some tables and checks a route of each one's proof. It returns
// a complaint, "" if there is none, and how many rows differed where something
// was predicted.
func (o *oracle) round() (complaint string, differed int) {
	statements := []string{"truncate old_v", "insert into old_v select q.*, q::text from v as q"}
	for _, s := range o.proved.Sources {
		old := "old_" + s.oidText()
		statements = append(statements, "truncate "+old, "insert into "+old+" select * from "+s.Name)
	}
	changed := o.tables()
	o.random.Shuffle(len(changed), func(i, k int) { changed[i], changed[k] = changed[k], changed[i] })
	changed = changed[:1+o.random.IntN(len(changed))]
	for range 1 + o.random.IntN(4) {
		statements = append(statements, o.change(changed[o.random.IntN(len(changed))]))
	}
	for _, s := range o.proved.Sources {
		// The images that are in one state only.
		old, log := "old_"+s.oidText(), "log_"+s.oidText()
		statements = append(statements, "truncate "+log)
		if o.broken.logged != "new" {
			statements = append(statements, "insert into "+log+" table "+old+" except all select * from "+s.Name)
		}
		if o.broken.logged != "old" {
			statements = append(statements, "insert into "+log+" select * from "+s.Name+" except all table "+old)
		}
	}
	o.exec(statements...)
	predicate, narrowed := o.predicted()
	if !narrowed {
		return "", 0
	}
	const difference = `
		with new_v as (select q.*, q::text as image from v as q)
		select count(*), count(*) filter (where (%s) is not true), coalesce(min(x.image) filter (where (%[1]s) is not true), '')
		  from ((table old_v except all table new_v) union all (table new_v except all table old_v)) as x`
	row := o.query(fmt.Sprintf(difference, predicate))[0]
	if row[1].Text != "0" {
		complaint = fmt.Sprintf("%s rows differ outside\n%s\nsuch as %s after\n%s",
			row[1].Text, predicate, row[2].Text, strings.Join(statements, ";\n"))
	}
	differed, _ = strconv.Atoi(row[0].Text)
	return complaint, differed
}

// tables are those whose rows the view reads.
func (o *oracle) tables() []string {
	var tables []string
	for _, s := range o.proved.Sources {
		switch name := strings.TrimPrefix(s.Name, "public."); name {
		case "parent":
			tables = append(tables, name, "child")
		case "p1":
			tables = append(tables, "p")
		default:
			tables = append(tables, name)
		}
	}
	return tables
}

// predicted is the narrowed predicate of what has changed; false when a
// changed source has no proof. It takes one of a source's routes at random.
func (o *oracle) predicted() (string, bool) {
	arms, counts := []string{"false"}, []string{"true"}
	for _, s := range o.proved.Sources {
		counts = append(counts, "exists (table log_"+s.oidText()+")")
	}
	changed := o.query("select " + strings.Join(counts, ", "))[0][1:]
	for i, s := range o.proved.Sources {
		if changed[i].Text == "f" || s.Unscanned {
			continue
		}
		if len(s.Routes) == 0 {
			return "", false
		}
		r := s.Routes[o.random.IntN(len(s.Routes))]
		keys := slices.Clone(r.Keys)
		for i := range keys {
			if o.broken.keys != nil {
				o.broken.keys(&keys[i])
			}
		}
		arms = append(arms, narrowed(keys, o.tuples(r)))
	}
	return strings.Join(arms, " or "), true
}

func (o *oracle) tuples(r route) [][]pgsession.Value {
	sql := r.SQL
	if o.broken.sql != nil {
		sql = o.broken.sql(sql)
	}
	for _, s := range o.proved.Sources {
		sql = strings.ReplaceAll(sql, "{log:"+s.oidText()+"}", "pg_temp.log_"+s.oidText())
	}
	rows, err := o.Query(o.t.Context(), sql)
	if err != nil {
		o.t.Fatalf("%s\n%v", sql, err)
	}
	tuples := make([][]pgsession.Value, len(rows))
	for i, row := range rows {
		tuples[i] = row
	}
	return tuples
}

// check takes a shape through rounds and returns the first complaint.
func (o *oracle) check(s shape, rounds int) (complaint string, differed int) {
	o.start(s)
	for range rounds {
		found, n := o.round()
		if differed += n; found != "" {
			return found, differed
		}
	}
	return "", differed
}

func TestEveryRowThatDiffersIsPredicted(t *testing.T) {
	t.Parallel()
	const workers = 4
	rounds := proofRounds(t)
	for w := range workers {
		t.Run(fmt.Sprintf("part %d", w+1), func(t *testing.T) {
			t.Parallel()
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			o := newOracle(t, seed)
			for i := w; i < len(shapes); i += workers {
				complaint, _ := o.check(shapes[i], rounds)
				if complaint != "" {
					t.Errorf("%s: %s", shapes[i].name, complaint)
				}
			}
		})
	}
}
