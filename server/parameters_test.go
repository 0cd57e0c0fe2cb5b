package server_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/lib/pq"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/rewrite"
	"github.com/rwproxy/rwproxy/server"
)

// settingsOfAFlow are other than those of any client of these tests: a
// constant that depends on them would be read as something else.
const settingsOfAFlow = "select set_config('DateStyle', 'German, DMY', true), set_config('IntervalStyle', 'sql_standard', true)," +
	" set_config('TimeZone', 'Asia/Kathmandu', true), set_config('search_path', 'pg_temp', true), set_config('extra_float_digits', '-5', true)"

// filtering stands for the refresh engine: REFRESH … WHERE evaluates its
// predicate, under other settings than the client's, and logs its text.
var filtering = handlerFunc(func(ctx context.Context, c server.Client, s rewrite.Statement) (server.Outcome, error) {
	refresh, ok := s.(*rewrite.Refresh)
	if !ok || refresh.Where == nil {
		return server.Outcome{}, errors.New("not a REFRESH with a predicate")
	}
	if !c.Joined() {
		if _, err := c.Exec(ctx, "begin isolation level repeatable read"); err != nil {
			return server.Outcome{}, err
		}
	}
	if _, err := c.Exec(ctx, settingsOfAFlow); err != nil {
		return server.Outcome{}, err
	}
	if _, err := c.Exec(ctx, "insert into public.log select $1, count(*) filter (where "+refresh.Where.Text+") from public.typed", refresh.Where.Text); err != nil {
		return server.Outcome{}, err
	}
	if _, err := c.Exec(ctx, "select set_config('search_path', 'public', true)"); err != nil {
		return server.Outcome{}, err
	}
	if !c.Joined() {
		if _, err := c.Exec(ctx, "commit"); err != nil {
			return server.Outcome{}, err
		}
	}
	return server.Outcome{Tag: s.Tag()}, nil
})

// filteringProxy returns the URL of a database behind a proxy that filters, and
// a direct connection to it. Table typed has one row.
func filteringProxy(t *testing.T) (string, *pgx.Conn) {
	t.Helper()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, `create table log (predicate text, matched bigint);
		create table typed (day date, at timestamptz, span interval, id int, big bigint, name text, ratio float8, exact numeric, flag boolean, tags text[]);
		insert into typed values ('2024-01-31', '2024-01-31 10:00:00.000001+00', '-1 day +02:00:00.5', 7, 8, 'it''s \ here', 0.1::float8 + 0.2::float8, 1.50, true, array['a', 'b "c"'])`)
	return startProxy(t, filtering).url(t, url), direct
}

// answered is the shape of frames without the settings that are reported among
// them, with the messages of errors.
func answered(frames []frame) string {
	s := ""
	for _, f := range frames {
		switch f.typ() {
		case 'S':
			continue
		case 'E':
			s += diagnostic(f).Message + " "
		}
		s += shape([]frame{f}) + " "
	}
	return strings.TrimSpace(s)
}

// lastFilter is the predicate that was evaluated last and the number of rows it
// matched.
func lastFilter(t *testing.T, direct *pgx.Conn) string {
	t.Helper()
	got := value(t, direct, "select coalesce(max(matched || ' ' || predicate), '') from log")
	exec(t, direct, "truncate log")
	return got
}

func TestPgxBindsParametersOfOursInEveryMode(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	conn := connect(t, url)
	day := time.Date(2024, 1, 31, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		where string
		args  []any
	}{
		"a date":            {"day = $1", []any{day}},
		"two dates":         {"day between $1 and $2", []any{day, day.AddDate(0, 1, 0)}},
		"a timestamp":       {"at = $1", []any{day.Add(10*time.Hour + time.Microsecond)}},
		"an int":            {"id = $1", []any{int32(7)}},
		"a bigint":          {"big = $1 and id < $1", []any{int64(8)}},
		"a text":            {"name = $1", []any{`it's \ here`}},
		"a float":           {"ratio = $1", []any{float64(0.1) + 0.2000000000000000111}},
		"a numeric":         {"exact = $1", []any{"1.5"}},
		"a boolean":         {"flag = $1", []any{true}},
		"an array of texts": {"name = any ($1) and tags = $2", []any{[]string{"x", `it's \ here`}, []string{"a", `b "c"`}}},
		"an array of ints":  {"id = any ($1)", []any{[]int32{1, 7}}},
		"an interval":       {"span = $1", []any{-22*time.Hour + 500*time.Millisecond}},
		"a null":            {"day = $1 or id = 7", []any{nil}},
	} {
		for _, mode := range []pgx.QueryExecMode{
			pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
			pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
		} {
			if mode >= pgx.QueryExecModeExec && (name == "an interval" || name == "a null") {
				continue // without Describe pgx does not know what to send
			}
			tag, err := conn.Exec(t.Context(), "refresh streaming table typed where "+test.where, append([]any{mode}, test.args...)...)
			if err != nil || tag.String() != "REFRESH STREAMING TABLE" {
				t.Errorf("%s, %s: %v, %v", name, mode, tag, err)
				continue
			}
			if got := lastFilter(t, direct); !strings.HasPrefix(got, "1 ") {
				t.Errorf("%s, %s: matched %s", name, mode, got)
			}
		}
	}
}

func TestAParameterBecomesATypedConstant(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	w := dialWire(t, url, "datestyle", "SQL, DMY", "timezone", "America/New_York", "intervalstyle", "iso_8601")
	for name, test := range map[string]struct {
		where  string
		types  []uint32
		values []string // "\x00" is NULL
		want   string
	}{
		"inferred":                 {"day >= $1", nil, []string{"02/01/2024"}, "1 day >= ('2024-01-02'::pg_catalog.date)"},
		"declared":                 {"day >= $1", []uint32{1114}, []string{"02/01/2024 10:00"}, "1 day >= ('2024-01-02 10:00:00'::pg_catalog.\"timestamp\")"},
		"used twice":               {"id >= $1 and id - 1 < $1", nil, []string{" 7 "}, "1 id >= ('7'::pg_catalog.int4) and id - 1 < ('7'::pg_catalog.int4)"},
		"in another order":         {"name = $2 or id = $1", nil, []string{"7", `\' or true --`}, `1 name = (E'\\'' or true --'::pg_catalog.text) or id = ('7'::pg_catalog.int4)`},
		"null":                     {"day is distinct from $1", nil, []string{"\x00"}, "1 day is distinct from (null::pg_catalog.date)"},
		"empty":                    {"name > $1", nil, []string{""}, "1 name > (''::pg_catalog.text)"},
		"a time zone":              {"at >= $1", nil, []string{"31/01/2024 05:00"}, "1 at >= ('2024-01-31 05:00:00-05'::pg_catalog.timestamptz)"},
		"an interval":              {"span >= $1", nil, []string{"P-1DT2H"}, "1 span >= ('-1 days +02:00:00'::pg_catalog.\"interval\")"},
		"now":                      {"day < $1", nil, []string{"epoch"}, "0 day < ('1970-01-01'::pg_catalog.date)"},
		"more declared than used":  {"id = $1", []uint32{0, 25}, []string{"7", "unused"}, "1 id = ('7'::pg_catalog.int4)"},
		"a negative number":        {"-$1 = id", []uint32{23}, []string{"-7"}, "1 -('-7'::pg_catalog.int4) = id"},
		"a dollar that is no name": {"name <> 'costs $1' and id = $1", nil, []string{"7"}, "1 name <> 'costs $1' and id = ('7'::pg_catalog.int4)"},
	} {
		bind := &pgproto3.Bind{}
		for _, v := range test.values {
			if v == "\x00" {
				bind.Parameters = append(bind.Parameters, nil)
			} else {
				bind.Parameters = append(bind.Parameters, []byte(v))
			}
		}
		w.send(batch(&pgproto3.Parse{Query: "refresh streaming table typed where " + test.where, ParameterOIDs: test.types},
			bind, &pgproto3.Describe{ObjectType: 'P'}, &pgproto3.Execute{}, &pgproto3.Sync{}))
		frames := w.until('Z')
		if got := answered(frames); got != "1 2 n C(REFRESH STREAMING TABLE) ZI" {
			t.Errorf("%s: %s", name, got)
		}
		if got := lastFilter(t, direct); got != test.want {
			t.Errorf("%s:\n got  %s\n want %s", name, got, test.want)
		}
	}
	w.send(query("show datestyle"))
	if got := string(w.until('Z')[1].content()[6:]); got != "SQL, DMY" {
		t.Errorf("DateStyle is %s afterwards", got)
	}
}

// samples has a value of every built-in type that a client can send.
var samples = map[string]string{
	"aclitem": "postgres=r/postgres", "bit": "101", "bool": "t", "box": "(3,4),(1,2)", "bpchar": "ab ", "bytea": `\x00ff5c27`, "char": "x",
	"cid": "7", "cidr": "10.0.0.0/8", "circle": "<(1,2),3>", "date": "0044-03-15 BC", "float4": "1.1", "float8": "0.30000000000000004",
	"inet": "10.0.0.1", "int2": "-3", "int2vector": "1 2", "int4": "-2147483648", "int8": "9223372036854775807",
	"interval": "-1 mons +2 days -00:00:00.000001", "json": `{"a":  "\\ '"}`, "jsonb": `{"a": "\\ '"}`, "jsonpath": "$.a", "line": "{1,2,3}", "lseg": "[(1,2),(3,4)]",
	"macaddr": "08:00:2b:01:02:03", "macaddr8": "08:00:2b:01:02:03:04:05", "money": "12.34", "name": "n", "numeric": "123456789.000000000000001",
	"oid": "4294967295", "oidvector": "1 2", "path": "((1,2),(3,4))", "pg_lsn": "16/B374D848", "pg_snapshot": "10:20:10,14", "point": "(1,2)", "polygon": "((1,2),(3,4))",
	"refcursor": "c", "regclass": "public.typed", "regcollation": `"C"`, "regconfig": "english", "regdictionary": "simple", "regnamespace": "public",
	"regoper": "|/", "regoperator": "+(integer,integer)", "regproc": "now", "regprocedure": "now()", "regrole": "postgres", "regtype": "public.typed",
	"text": `é \ '' $1`, "tid": "(1,2)", "time": "23:59:59.999999", "timetz": "10:00:00+05:45", "timestamp": "infinity", "timestamptz": "1800-01-01 00:00:00+00",
	"tsquery": "'a' & 'b'", "tsvector": "'a':1 'b'", "txid_snapshot": "10:20:10,14", "uuid": "00112233-4455-6677-8899-aabbccddeeff", "varbit": "101", "varchar": "v",
	"xid": "7", "xid8": "18446744073709551615", "xml": "<a>é</a>",
	"int4range": "[1,5)", "int8range": "empty", "numrange": "(,1.5]", "daterange": "[2024-01-02,2024-02-03)", "tsrange": `["2024-01-02 00:00:00",)`, "tstzrange": `["2024-01-02 00:00:00+00",)`,
	"int4multirange": "{[1,2),[5,6)}", "int8multirange": "{}", "nummultirange": "{[1,2]}", "datemultirange": "{}", "tsmultirange": "{}", "tstzmultirange": `{["2024-01-02 00:00:00+00",)}`,
}

// TestEveryBuiltInTypeIsBoundInBothFormats sends a value of each type, and an
// array of it, as text and as the bytes that Postgres itself sends for it.
func TestEveryBuiltInTypeIsBoundInBothFormats(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	w := dialWire(t, url, "datestyle", "SQL, DMY", "extra_float_digits", "0")
	// What cannot be sent: types without input, and those of the statistics.
	const types = `
		select typname, oid, typarray
		  from pg_type
		 where typnamespace = 'pg_catalog'::regnamespace
		   and typtype in ('b', 'r', 'm') and typcategory <> 'A' and typsubscript::oid <> 'array_subscript_handler'::regproc
		   and typname !~ '^(pg_node_tree|pg_ndistinct|pg_dependencies|pg_mcv_list|pg_brin_.*|gtsvector|unknown)$'
		 order by typname`
	rows, err := direct.Query(t.Context(), types)
	if err != nil {
		t.Fatal(err)
	}
	type builtIn struct {
		Typname       string
		Oid, Typarray uint32
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[builtIn])
	if err != nil {
		t.Fatal(err)
	}
	try := func(name, literal string, oid uint32) {
		t.Helper()
		quoted := `pg_catalog."` + name + `"`
		if oid == 0 {
			t.Errorf("%s has no OID", name)
		}
		for format := range int16(2) {
			if format == 1 && strings.HasPrefix(name, "aclitem") || format == 1 && strings.HasPrefix(name, "_aclitem") {
				continue // Postgres has no binary format for it
			}
			sent := direct.PgConn().ExecParams(t.Context(), "select $1::"+quoted, [][]byte{[]byte(literal)}, nil, nil, []int16{format}).Read()
			if sent.Err != nil {
				t.Errorf("%s: %v", name, sent.Err)
				return
			}
			w.send(batch(&pgproto3.Parse{Query: "refresh streaming table typed where $1 is not null", ParameterOIDs: []uint32{oid}},
				&pgproto3.Bind{ParameterFormatCodes: []int16{format}, Parameters: [][]byte{sent.Rows[0][0]}}, &pgproto3.Execute{}, &pgproto3.Sync{}))
			frames := w.until('Z')
			if got := answered(frames); got != "1 2 C(REFRESH STREAMING TABLE) ZI" {
				t.Errorf("%s in format %d: %s", name, format, got)
				continue
			}
			_, predicate, _ := strings.Cut(lastFilter(t, direct), " ")
			constant := strings.TrimSuffix(predicate, " is not null")
			if !strings.HasSuffix(constant, "::pg_catalog."+name+")") && !strings.HasSuffix(constant, "::"+quoted+")") {
				t.Errorf("%s in format %d: %s", name, format, constant)
			}
			back := direct.PgConn().ExecParams(t.Context(), "select "+constant, nil, nil, nil, []int16{format}).Read()
			if back.Err != nil || string(back.Rows[0][0]) != string(sent.Rows[0][0]) {
				t.Errorf("%s in format %d: sent %q, it became %s", name, format, sent.Rows[0][0], constant)
			}
		}
	}
	for _, b := range all {
		sample, found := samples[b.Typname]
		if !found {
			t.Errorf("no sample of type %s", b.Typname)
			continue
		}
		try(b.Typname, sample, b.Oid)
		if b.Typarray != 0 {
			element := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sample) + `"`
			delimiter := ","
			if b.Typname == "box" {
				delimiter = ";"
			}
			try("_"+b.Typname, "{"+element+delimiter+"NULL"+delimiter+element+"}", b.Typarray)
		}
	}
}

func TestParametersAreDescribed(t *testing.T) {
	t.Parallel()
	url, _ := filteringProxy(t)
	conn := connect(t, url)
	for name, test := range map[string]struct {
		where    string
		declared []uint32
		want     []uint32
	}{
		"inferred":                {"day >= $1 and name = any ($2)", nil, []uint32{1082, 1009}},
		"declared":                {"day >= $1 and name = any ($2)", []uint32{1184}, []uint32{1184, 1009}},
		"declared but for one":    {"day >= $1 and name = $2", []uint32{0, 1043}, []uint32{1082, 1043}},
		"more declared than used": {"day >= $1", []uint32{0, 25}, []uint32{1082, 25}},
		"a cast":                  {"day >= $1::timestamp", nil, []uint32{1114}},
	} {
		prepared, err := conn.PgConn().Prepare(t.Context(), "", "refresh streaming table typed where "+test.where, test.declared)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(prepared.Fields) != 0 || !equal(prepared.ParamOIDs, test.want) {
			t.Errorf("%s: parameters %v and columns %v, want parameters %v", name, prepared.ParamOIDs, prepared.Fields, test.want)
		}
	}
}

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// TestFaultsOfParametersAreReportedInTheirPlace lets Postgres be the judge of
// what a Parse or Bind may hold.
func TestFaultsOfParametersAreReportedInTheirPlace(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	w := dialWire(t, url)
	text := func(where string) string { return "refresh streaming table typed where " + where }
	one := func(v string) *pgproto3.Bind { return &pgproto3.Bind{Parameters: [][]byte{[]byte(v)}} }
	end := []pgproto3.FrontendMessage{&pgproto3.Execute{}, &pgproto3.Sync{}}
	for name, test := range map[string]struct {
		messages []pgproto3.FrontendMessage
		answer   string
		position int32
	}{
		"not a date":               {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("day = $1")}, one("soon")}, "1 E(22007) ZI", 0},
		"too few":                  {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("day = $1")}, &pgproto3.Bind{}}, "1 E(08P01) ZI", 0},
		"too many":                 {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("true")}, one("x")}, "1 E(08P01) ZI", 0},
		"wrong binary":             {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("day = $1")}, &pgproto3.Bind{ParameterFormatCodes: []int16{1}, Parameters: [][]byte{{1}}}}, "1 E(08P01) ZI", 0},
		"a format that is unknown": {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("day = $1")}, &pgproto3.Bind{ParameterFormatCodes: []int16{2}, Parameters: [][]byte{{1}}}}, "1 E(22023) ZI", 0},
		"a type that is unclear":   {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("$1 is null")}, one("x")}, "E(42P18) ZI", 37},
		"a type that is unknown":   {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("day = $1"), ParameterOIDs: []uint32{999999}}, one("x")}, "E(42704) ZI", 43},
		"types that do not agree":  {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: text("day = $1"), ParameterOIDs: []uint32{16}}, one("t")}, "E(42883) ZI", 30}, // in the text of the test's own handler
		"none can be":              {[]pgproto3.FrontendMessage{&pgproto3.Parse{Query: "create streaming table s flow replace where day > $1 by name select * from typed"}, one("x")}, "E(42P02) ZI", 51},
		"a name in use":            {[]pgproto3.FrontendMessage{&pgproto3.Parse{Name: "s", Query: text("day = $1")}, &pgproto3.Parse{Name: "s", Query: text("day = $1")}}, "1 E(42P05) ZI", 0},
	} {
		w.send(batch(append(test.messages, end...)...))
		frames := w.until('Z')
		wantShape(t, frames, test.answer)
		if e := firstError(t, frames); e.Position != test.position {
			t.Errorf("%s: %+v", name, e)
		}
		w.send(batch(&pgproto3.Close{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}))
		wantShape(t, w.until('Z'), "3 ZI")
	}
	if got := lastFilter(t, direct); got != "" {
		t.Errorf("ran: %s", got)
	}
}

func TestParametersInAPipelineAndABlock(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	const text = "refresh streaming table typed where id = $1"
	w := dialWire(t, url)
	w.hideSettings = true
	w.send(withSync(concat(run("insert into log values ('mine', 0)"), run(text, "7"), run("select count(*) from log where predicate = $1", "id = ('7'::pg_catalog.int4)"))...))
	wantShape(t, w.until('Z'), "1 2 n C(INSERT 0 1) 1 2 n C(REFRESH STREAMING TABLE) 1 2 T D C(SELECT 1) ZI")
	w.send(withSync(concat(run(text, "1"), run(text, "2"), run("select 1/0"))...))
	wantShape(t, w.until('Z'), "1 2 n C(REFRESH STREAMING TABLE) 1 2 n C(REFRESH STREAMING TABLE) 1 E(22012) ZI")
	w.send(join(query("begin"), batch(&pgproto3.Parse{Name: "s", Query: text}, &pgproto3.Sync{})))
	w.until('Z')
	w.until('Z')
	for _, id := range []string{"3", "4"} {
		w.send(batch(&pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s", Parameters: [][]byte{[]byte(id)}},
			&pgproto3.Execute{Portal: "p"}, &pgproto3.Close{ObjectType: 'P', Name: "p"}, &pgproto3.Sync{}))
		wantShape(t, w.until('Z'), "2 C(REFRESH STREAMING TABLE) 3 ZT")
	}
	w.send(query("select 1/0"))
	w.until('Z')
	w.send(withSync(run(text, "5")...))
	wantShape(t, w.until('Z'), "E(25P02) ZE")
	w.send(batch(&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("6")}}, &pgproto3.Execute{}, &pgproto3.Sync{}))
	wantShape(t, w.until('Z'), "E(25P02) ZE")
	w.send(query("rollback"))
	w.until('Z')
	w.send(batch(&pgproto3.Bind{PreparedStatement: "s", Parameters: [][]byte{[]byte("6")}}, &pgproto3.Execute{}, &pgproto3.Sync{}))
	wantShape(t, w.until('Z'), "2 C(REFRESH STREAMING TABLE) ZI")
	const want = "mine, 1 id = ('7'::pg_catalog.int4), 0 id = ('6'::pg_catalog.int4)"
	if got := value(t, direct, "select string_agg(case predicate when 'mine' then '' else matched || ' ' end || predicate, ', ') from log"); got != want {
		t.Errorf("log holds %s\nwant %s", got, want)
	}
}

func TestParametersThatAreTooLongAreRefused(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	w := dialWire(t, url)
	w.hideSettings = true
	w.send(withSync(run("refresh streaming table typed where name <> $1", strings.Repeat("x", 17<<20))...))
	wantShape(t, w.until('Z'), "1 E(54000) ZI")
	w.send(withSync(run("refresh streaming table typed where name <> $1", strings.Repeat("x", 1<<20))...))
	wantShape(t, w.until('Z'), "1 2 n C(REFRESH STREAMING TABLE) ZI")
	if got := value(t, direct, "select max(length(predicate)) > 1000000 from log"); got != "t" {
		t.Error("a long parameter was cut")
	}
}

func TestManyParametersAreRead(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	conn := connect(t, url)
	const n = 5000
	args := make([]any, n)
	var list strings.Builder
	for i := range n {
		args[i] = int32(i)
		fmt.Fprintf(&list, ", $%d", i+1)
	}
	if _, err := conn.Exec(t.Context(), "refresh streaming table typed where id in ("+list.String()[2:]+")", args...); err != nil {
		t.Fatal(err)
	}
	if got := value(t, direct, "select matched || ' ' || (predicate like '%, (''4999''::pg_catalog.int4))') from log"); got != "1 true" {
		t.Errorf("got %s", got)
	}
}

func TestPsycopgBindsParametersOfOurs(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	python := osexec.CommandContext(ctx, "/usr/bin/python3", "-c", `
import datetime, decimal, sys, psycopg
day = datetime.date(2024, 1, 31)
at = datetime.datetime(2024, 1, 31, 10, 0, 0, 1, datetime.timezone.utc)
with psycopg.connect(sys.argv[1], autocommit=True) as conn:
    for binary in (False, True):
        cur = conn.cursor()
        for where, value in [("day = %s", day), ("at = %s", at), ("id = %s", 7), ("big = %s", 8), ("name = %s", "it's \\ here"),
                             ("exact = %s", decimal.Decimal("1.5")), ("flag = %s", True), ("id = any (%s)", [1, 7]),
                             ("tags = %s", ["a", 'b "c"']), ("span = %s", datetime.timedelta(hours=-22, milliseconds=500)),
                             ("name is distinct from %s", None)]:
            if binary:
                where = where.replace("%s", "%b")
            for _ in range(6): # prepared from the fifth time on
                cur.execute("refresh streaming table typed where " + where, [value])
                print(cur.statusmessage, where)
`, url)
	out, err := python.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Count(string(out), "REFRESH STREAMING TABLE"); got != 2*11*6 {
		t.Errorf("%d refreshes: %s", got, out)
	}
	if got := value(t, direct, "select count(*) || ' ' || count(*) filter (where matched = 1) from log"); got != "132 132" {
		t.Errorf("refreshes and matches: %s", got)
	}
}

func TestLibPQBindsParametersOfOurs(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	for _, binary := range []string{"", "&binary_parameters=yes"} {
		db, err := sql.Open("postgres", url+binary)
		if err != nil {
			t.Fatal(err)
		}
		for where, arg := range map[string]any{
			"day = $1": "2024-01-31", "at = $1": time.Date(2024, 1, 31, 10, 0, 0, 1000, time.UTC), "id = $1": 7,
			"name = $1": `it's \ here`, "tags = $1": pq.Array([]string{"a", `b "c"`}), "flag = $1": true,
		} {
			if _, err := db.ExecContext(t.Context(), "refresh streaming table typed where "+where, arg); err != nil {
				t.Errorf("%s: %v", where, err)
			}
			if got := lastFilter(t, direct); !strings.HasPrefix(got, "1 ") {
				t.Errorf("%s matched %s", where, got)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAParameterErrorKeepsItsFieldsInPgx(t *testing.T) {
	t.Parallel()
	url, _ := filteringProxy(t)
	_, err := connect(t, url).Exec(t.Context(), "create flow f as insert into typed by name replace where id = $1 select 1 as id", 7)
	var failure *pgconn.PgError
	if !errors.As(err, &failure) || failure.Code != "42P02" || failure.Position == 0 {
		t.Errorf("got %v", err)
	}
}
