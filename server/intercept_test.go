package server_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

const refreshGood = "refresh streaming table good"

// intercepting returns a wire through a proxy that intercepts, and a direct
// connection to the same database, in which table log exists.
func intercepting(t *testing.T) (*wire, *pgx.Conn) {
	t.Helper()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	p := startProxy(t, refreshing)
	return dialWire(t, p.url(t, url)), direct
}

// logged is the content of table log.
func logged(t *testing.T, direct *pgx.Conn) string {
	t.Helper()
	return value(t, direct, "select coalesce(string_agg(target || case when joined then ' joined' else '' end, ', '), '') from log")
}

func wantLog(t *testing.T, direct *pgx.Conn, want string) {
	t.Helper()
	if got := logged(t, direct); got != want {
		t.Errorf("log holds %q, want %q", got, want)
	}
}

func TestAnInterceptedQueryIsAnsweredLikeAnyOther(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		query, answer, log string
	}{
		"alone":                      {refreshGood, "C(REFRESH STREAMING TABLE) ZI", "good"},
		"with a semicolon":           {"  " + refreshGood + " ; ", "C(REFRESH STREAMING TABLE) ZI", "good"},
		"with others":                {"select 1; " + refreshGood + "; select 2", "T D C(SELECT 1) C(REFRESH STREAMING TABLE) T D C(SELECT 1) ZI", "good joined"},
		"twice":                      {refreshGood + ";" + refreshGood, "C(REFRESH STREAMING TABLE) C(REFRESH STREAMING TABLE) ZI", "good joined, good joined"},
		"an error before it":         {"select 1/0; " + refreshGood, "E(22012) ZI", ""},
		"an error after it":          {refreshGood + "; select 1/0; select 2", "C(REFRESH STREAMING TABLE) E(22012) ZI", ""},
		"a commit failing after it":  {"create table c (a int unique deferrable initially deferred); insert into c values (1), (1); " + refreshGood, "C(CREATE TABLE) C(INSERT 0 2) E(23505) ZI", ""},
		"in a block of the text":     {"begin; " + refreshGood + "; commit", "C(BEGIN) C(REFRESH STREAMING TABLE) C(COMMIT) ZI", "good joined"},
		"in a block rolled back":     {"begin; " + refreshGood + "; rollback", "C(BEGIN) C(REFRESH STREAMING TABLE) C(ROLLBACK) ZI", ""},
		"committed before an error":  {refreshGood + "; commit; select 1/0", "C(REFRESH STREAMING TABLE) N(25P01) C(COMMIT) E(22012) ZI", "good joined"},
		"in a block left open":       {"begin; " + refreshGood, "C(BEGIN) C(REFRESH STREAMING TABLE) ZT", ""},
		"refused":                    {"refresh streaming table refused", "E(55000) ZI", ""},
		"refused among others":       {"select 1; refresh streaming table refused; select 2", "T D C(SELECT 1) E(55000) ZI", ""},
		"refused in a block":         {"begin; refresh streaming table refused", "C(BEGIN) E(55000) ZE", ""},
		"failing in Postgres":        {"refresh streaming table divided", "E(22012) ZI", ""},
		"failing among others":       {"insert into log values ('mine', false); refresh streaming table divided; select 2", "C(INSERT 0 1) E(22012) ZI", ""},
		"failing in a block":         {"begin; refresh streaming table divided", "C(BEGIN) E(22012) ZE", ""},
		"an error that is no diag":   {"refresh streaming table broken", "E(XX000) ZI", ""},
		"rows":                       {"refresh streaming table rows", "T D D D C(REFRESH STREAMING TABLE) ZI", "rows"},
		"rows, last of several":      {"select 1; refresh streaming table rows", "T D C(SELECT 1) T D D D C(REFRESH STREAMING TABLE) ZI", "rows joined"},
		"a syntax error elsewhere":   {"begin; " + refreshGood + "; commit; selec", "E(42601) ZI", ""},
		"with a drop":                {refreshGood + "; drop table if exists nothing", "C(REFRESH STREAMING TABLE) N(00000) C(DROP TABLE) ZI", "good joined"},
		"several with a failed drop": {refreshGood + "; drop table nothing", "C(REFRESH STREAMING TABLE) E(42P01) ZI", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, direct := intercepting(t)
			w.send(query(test.query))
			wantShape(t, w.until('Z'), test.answer)
			wantLog(t, direct, test.log)
			w.send(query("rollback; select 1"))
			if got := shape(w.until('Z')); !strings.HasSuffix(got, "C(SELECT 1) ZI") {
				t.Errorf("the session is out of step: %s", got)
			}
		})
	}
}

func TestAnInterceptedStatementInTheExtendedProtocol(t *testing.T) {
	t.Parallel()
	refresh := func(table string) []pgproto3.FrontendMessage { return run("refresh streaming table " + table) }
	flush, sync := []pgproto3.FrontendMessage{&pgproto3.Flush{}}, []pgproto3.FrontendMessage{&pgproto3.Sync{}}
	named := []pgproto3.FrontendMessage{&pgproto3.Parse{Name: "s", Query: refreshGood}}
	execute := []pgproto3.FrontendMessage{&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}}
	const done = "1 2 n C(REFRESH STREAMING TABLE)"
	tests := map[string]struct {
		messages [][]pgproto3.FrontendMessage
		answer   string
		log      string
	}{
		"alone":                         {[][]pgproto3.FrontendMessage{refresh("good"), sync}, done + " ZI", "good"},
		"a Flush after it":              {[][]pgproto3.FrontendMessage{refresh("good"), flush, sync}, done + " ZI", "good joined"},
		"a Flush, and an error":         {[][]pgproto3.FrontendMessage{refresh("good"), flush, run("select 1/0"), sync}, done + " 1 E(22012) ZI", ""},
		"names closed after it":         {[][]pgproto3.FrontendMessage{refresh("good"), {&pgproto3.Close{ObjectType: 'P'}, &pgproto3.Close{ObjectType: 'S', Name: "none"}}, sync}, done + " 3 3 ZI", "good"},
		"names closed, and an error":    {[][]pgproto3.FrontendMessage{refresh("good"), {&pgproto3.Close{ObjectType: 'P'}}, run("select 1/0"), sync}, done + " 3 1 E(22012) ZI", ""},
		"an error after it":             {[][]pgproto3.FrontendMessage{refresh("good"), run("select 1/0"), sync}, done + " 1 E(22012) ZI", ""},
		"an error in a Parse after it":  {[][]pgproto3.FrontendMessage{refresh("good"), run("selec"), sync}, done + " E(42601) ZI", ""},
		"an error in a Query after it":  {[][]pgproto3.FrontendMessage{refresh("good"), {&pgproto3.Query{String: "select 1/0"}}, sync}, done + " E(22012) ZI ZI", ""},
		"another statement after it":    {[][]pgproto3.FrontendMessage{refresh("good"), run("select 1"), sync}, done + " 1 2 T D C(SELECT 1) ZI", "good joined"},
		"two in a pipeline":             {[][]pgproto3.FrontendMessage{refresh("good"), refresh("good"), sync}, done + " " + done + " ZI", "good joined, good joined"},
		"the second of two is refused":  {[][]pgproto3.FrontendMessage{refresh("good"), refresh("refused"), sync}, done + " 1 2 n E(55000) ZI", ""},
		"two pipelines":                 {[][]pgproto3.FrontendMessage{refresh("good"), sync, refresh("good"), sync}, done + " ZI " + done + " ZI", "good, good"},
		"after another statement":       {[][]pgproto3.FrontendMessage{run("select 1"), refresh("good"), sync}, "1 2 T D C(SELECT 1) " + done + " ZI", "good joined"},
		"joined, and an error after it": {[][]pgproto3.FrontendMessage{run("select 1"), refresh("good"), run("select 1/0"), sync}, "1 2 T D C(SELECT 1) " + done + " 1 E(22012) ZI", ""},
		"an error before it":            {[][]pgproto3.FrontendMessage{run("select 1/0"), refresh("good"), sync}, "1 E(22012) ZI", ""},
		"another portal is open": {[][]pgproto3.FrontendMessage{
			{&pgproto3.Parse{Query: "select 1"}, &pgproto3.Bind{DestinationPortal: "p"}}, refresh("good"), {&pgproto3.Execute{Portal: "p"}}, sync,
		}, "1 2 " + done + " D C(SELECT 1) ZI", "good joined"},
		"refused":                         {[][]pgproto3.FrontendMessage{refresh("refused"), run("select 1"), sync}, "1 2 n E(55000) ZI", ""},
		"refused, then a Query":           {[][]pgproto3.FrontendMessage{refresh("refused"), {&pgproto3.Query{String: refreshGood}}, sync}, "1 2 n E(55000) ZI", ""},
		"refused, then another":           {[][]pgproto3.FrontendMessage{refresh("refused"), refresh("good"), sync}, "1 2 n E(55000) ZI", ""},
		"refused after a statement":       {[][]pgproto3.FrontendMessage{run("insert into log values ('mine', false)"), refresh("refused"), run("select 1"), refresh("good"), sync}, "1 2 n C(INSERT 0 1) 1 2 n E(55000) ZI", ""},
		"failing in Postgres":             {[][]pgproto3.FrontendMessage{refresh("divided"), run("select 1"), sync}, "1 2 n E(22012) ZI", ""},
		"failing after a statement":       {[][]pgproto3.FrontendMessage{run("insert into log values ('mine', false)"), refresh("divided"), run("select 1"), sync}, "1 2 n C(INSERT 0 1) 1 2 n E(22012) ZI", ""},
		"failing, then a new pipeline":    {[][]pgproto3.FrontendMessage{refresh("divided"), sync, refresh("good"), sync}, "1 2 n E(22012) ZI " + done + " ZI", "good"},
		"failing joined, then a new one":  {[][]pgproto3.FrontendMessage{run("select 1"), refresh("divided"), sync, refresh("good"), sync}, "1 2 T D C(SELECT 1) 1 2 n E(22012) ZI " + done + " ZI", "good"},
		"in a block":                      {[][]pgproto3.FrontendMessage{run("begin"), sync, refresh("good"), sync, run("commit"), sync}, "1 2 n C(BEGIN) ZT " + done + " ZT 1 2 n C(COMMIT) ZI", "good joined"},
		"in a block of the pipeline":      {[][]pgproto3.FrontendMessage{run("begin"), refresh("good"), run("commit"), sync}, "1 2 n C(BEGIN) " + done + " 1 2 n C(COMMIT) ZI", "good joined"},
		"refused in a block":              {[][]pgproto3.FrontendMessage{run("begin"), sync, refresh("refused"), sync, refresh("good"), sync, run("rollback"), sync}, "1 2 n C(BEGIN) ZT 1 2 n E(55000) ZE E(25P02) ZE 1 2 n C(ROLLBACK) ZI", ""},
		"failing in a block":              {[][]pgproto3.FrontendMessage{run("begin"), sync, refresh("divided"), sync, run("rollback"), sync}, "1 2 n C(BEGIN) ZT 1 2 n E(22012) ZE 1 2 n C(ROLLBACK) ZI", ""},
		"prepared once, run twice":        {[][]pgproto3.FrontendMessage{named, sync, execute, sync, execute, sync}, "1 ZI 2 C(REFRESH STREAMING TABLE) ZI 2 C(REFRESH STREAMING TABLE) ZI", "good, good"},
		"described":                       {[][]pgproto3.FrontendMessage{named, {&pgproto3.Describe{ObjectType: 'S', Name: "s"}}, sync}, "1 t n ZI", ""},
		"prepared twice":                  {[][]pgproto3.FrontendMessage{named, sync, {&pgproto3.Parse{Name: "s", Query: "select 1"}}, sync, execute, sync}, "1 ZI E(42P05) ZI 2 C(REFRESH STREAMING TABLE) ZI", "good"},
		"closed":                          {[][]pgproto3.FrontendMessage{named, {&pgproto3.Close{ObjectType: 'S', Name: "s"}, &pgproto3.Parse{Name: "s", Query: "select 1"}}, execute, sync}, "1 3 1 2 D C(SELECT 1) ZI", ""},
		"deallocated":                     {[][]pgproto3.FrontendMessage{named, sync, {&pgproto3.Query{String: "deallocate all"}}, execute, sync}, "1 ZI C(DEALLOCATE ALL) ZI E(26000) ZI", ""},
		"its name taken in SQL":           {[][]pgproto3.FrontendMessage{named, sync, {&pgproto3.Query{String: "deallocate s"}, &pgproto3.Query{String: "prepare s as select 5"}}, execute, sync}, "1 ZI C(DEALLOCATE) ZI C(PREPARE) ZI 2 D C(SELECT 1) ZI", ""},
		"the unnamed statement survives":  {[][]pgproto3.FrontendMessage{named, {&pgproto3.Parse{Query: "select 7"}, &pgproto3.Bind{DestinationPortal: "q", PreparedStatement: "s"}, &pgproto3.Execute{Portal: "q"}, &pgproto3.Bind{}, &pgproto3.Execute{}}, sync}, "1 1 2 C(REFRESH STREAMING TABLE) 2 D C(SELECT 1) ZI", "good joined"},
		"a Query in the middle":           {[][]pgproto3.FrontendMessage{run("select 1"), {&pgproto3.Query{String: refreshGood}}, sync}, "1 2 T D C(SELECT 1) C(REFRESH STREAMING TABLE) ZI ZI", "good joined"},
		"several statements in one Parse": {[][]pgproto3.FrontendMessage{run("select 1; " + refreshGood), sync}, "E(42601) ZI", ""},
		"executed again":                  {[][]pgproto3.FrontendMessage{refresh("good"), {&pgproto3.Execute{}}, sync}, done + " E(55000) ZI", ""},
		"closed by its portal's name":     {[][]pgproto3.FrontendMessage{named, {&pgproto3.Bind{DestinationPortal: "p", PreparedStatement: "s"}, &pgproto3.Close{ObjectType: 'P', Name: "p"}, &pgproto3.Execute{Portal: "p"}}, sync}, "1 2 3 E(34000) ZI", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, bytewise := range []bool{false, true} {
				w, direct := intercepting(t)
				var all []byte
				for _, messages := range test.messages {
					all = append(all, batch(messages...)...)
				}
				syncs := strings.Count(test.answer, "Z")
				for i := range all {
					if bytewise {
						w.send(all[i : i+1])
					}
				}
				if !bytewise {
					w.send(all)
				}
				var answer []frame
				for range syncs {
					answer = append(answer, w.until('Z')...)
				}
				wantShape(t, answer, test.answer)
				wantLog(t, direct, test.log)
				w.send(query("select 1"))
				wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")
				if got := value(t, direct, "select count(*) from pg_locks where locktype = 'relation' and relation = 'log'::regclass and pid <> pg_backend_pid()"); got != "0" {
					t.Error("a transaction was left open")
				}
			}
		})
	}
}

func TestErrorsOfInterceptedStatementsPointIntoTheClientsText(t *testing.T) {
	t.Parallel()
	w, _ := intercepting(t)
	const text = "select 'é'; refresh streaming table refused"
	w.send(query(text))
	e := firstError(t, w.until('Z'))
	if e.Message != "not now" || e.Hint != "Try later." || e.Position != 12+11 {
		t.Errorf("got %+v", e)
	}
	w.send(query("  refresh streaming table refused"))
	if e := firstError(t, w.until('Z')); e.Position != 2+11 {
		t.Errorf("alone: position %d", e.Position)
	}
	w.send(withSync(run("\n refresh streaming table refused")...))
	if e := firstError(t, w.until('Z')); e.Position != 2+11 {
		t.Errorf("extended: position %d", e.Position)
	}
}

func TestAnInterceptedStatementInAnAbortedBlockFailsInPostgressWords(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	w.send(query("begin; select 1/0"))
	w.until('Z')
	w.send(query("select 1"))
	want := firstError(t, w.until('Z'))
	for name, send := range map[string][]byte{
		"a Query":      query(refreshGood),
		"several":      query(refreshGood + "; select 1"),
		"the extended": withSync(run(refreshGood)...),
	} {
		w.send(send)
		frames := w.until('Z')
		wantShape(t, frames, "E(25P02) ZE")
		if got := firstError(t, frames); got.Message != want.Message || got.Severity != want.Severity {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	wantLog(t, direct, "")
}

func TestNoticesAndNotificationsArriveInOrder(t *testing.T) {
	t.Parallel()
	w, _ := intercepting(t)
	w.send(query("listen talk"))
	w.until('Z')
	w.send(query("refresh streaming table talkative"))
	frames := w.until('Z')
	var notices []string
	for _, f := range frames {
		if f.typ() == 'N' {
			notices = append(notices, diagnostic(f).Message)
		}
	}
	if got := strings.Join(notices, ", "); got != "first, between, second" {
		t.Errorf("notices: %s", got)
	}
	if got := shape(frames); strings.Count(got, "A") < 1 || !strings.HasSuffix(got, "C(REFRESH STREAMING TABLE) ZI") {
		t.Errorf("answers: %s", got)
	}
}

func TestRowsHonourFormatsAndLimits(t *testing.T) {
	t.Parallel()
	w, _ := intercepting(t)
	const text = "refresh streaming table rows"
	w.send(batch(&pgproto3.Parse{Query: text}, &pgproto3.Bind{ResultFormatCodes: []int16{1}},
		&pgproto3.Execute{MaxRows: 2}, &pgproto3.Execute{MaxRows: 2}, &pgproto3.Sync{}))
	frames := w.until('Z')
	wantShape(t, frames, "1 2 D D s D C(REFRESH STREAMING TABLE) ZI")
	const first = "0002" + "00000010" + "00112233445566778899aabbccddeeff" + "ffffffff"
	if got := hex.EncodeToString(frames[2].content()); got != first {
		t.Errorf("first row: %s, want %s", got, first)
	}
}

// A Sync among the data of a COPY ends no transaction, so ours behind it joins
// the one that the COPY is in.
func TestASyncThatCopyTakesEndsNoPipeline(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	copied := join(
		batch(run("copy log from stdin")...),
		batch(&pgproto3.Sync{}, &pgproto3.CopyData{Data: []byte("copied\tf\n")}, &pgproto3.CopyDone{}),
	)
	w.send(join(copied, withSync(concat(run(refreshGood), run("select 1/0"))...)))
	wantShape(t, w.until('Z'), "1 2 n G C(COPY 1) 1 2 n C(REFRESH STREAMING TABLE) 1 E(22012) ZI")
	wantLog(t, direct, "")
	w.send(join(copied, withSync(run(refreshGood)...)))
	wantShape(t, w.until('Z'), "1 2 n G C(COPY 1) 1 2 n C(REFRESH STREAMING TABLE) ZI")
	wantLog(t, direct, "copied, good joined")
}
