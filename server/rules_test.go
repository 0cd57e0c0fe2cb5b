package server_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

func TestRowsOfOursHavePostgressBinaryFormats(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	for _, formats := range [][]int16{nil, {0}, {1}} {
		want := direct.PgConn().ExecParams(t.Context(), valuesOfTypes, nil, nil, nil, formats).Read()
		if want.Err != nil {
			t.Fatal(want.Err)
		}
		for _, before := range []string{"", "select 1"} {
			messages := []pgproto3.FrontendMessage{
				&pgproto3.Parse{Query: "refresh streaming table types"}, &pgproto3.Bind{ResultFormatCodes: formats}, &pgproto3.Execute{}, &pgproto3.Sync{},
			}
			if before != "" {
				messages = append(run(before), messages...)
			}
			w.send(batch(messages...))
			frames := w.until('Z')
			row := frames[len(frames)-3]
			var got pgproto3.DataRow
			if row.typ() != 'D' {
				t.Fatalf("%v: %s", formats, shape(frames))
			}
			if err := got.Decode(row.content()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Rows[0], got.Values); diff != "" {
				t.Errorf("formats %v behind %q (-Postgres +ours):\n%s", formats, before, diff)
			}
		}
	}
	w.send(query("refresh streaming table types"))
	ours := w.until('Z')
	w.send(query(valuesOfTypes))
	if diff := cmp.Diff(normal(w, w.until('Z')[0]), normal(w, ours[0])); diff != "" {
		t.Errorf("RowDescription (-Postgres +ours):\n%s", diff)
	}
}

func TestAnErrorOfOursIsSentAtOnceAndTheRestIsSkipped(t *testing.T) {
	t.Parallel()
	for name, before := range map[string][]byte{"alone": nil, "joined": batch(run("insert into log values ('mine', false)")...)} {
		w, direct := intercepting(t)
		// Neither Flush nor Sync asks for an answer.
		w.send(join(before, batch(run("refresh streaming table refused")...)))
		if e := firstError(t, w.until('E')); e.Message != "not now" {
			t.Errorf("%s: %+v", name, e)
		}
		w.send(join(query("insert into log values ('a Query', false)"), query(refreshGood), batch(run(refreshGood)...),
			batch(&pgproto3.Flush{}, &pgproto3.FunctionCall{}, &pgproto3.CopyDone{}, &pgproto3.Sync{})))
		wantShape(t, w.until('Z'), "ZI")
		wantLog(t, direct, "")
		w.send(query(refreshGood))
		wantShape(t, w.until('Z'), "C(REFRESH STREAMING TABLE) ZI")
	}
}

func TestAStatementOfOursIsPartOfAPipelineWhoseClientIsSlow(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	w.send(batch(run(refreshGood)...))
	wantShape(t, w.until('C'), "1 2 n C(REFRESH STREAMING TABLE)")
	w.send(withSync(run("select 1/0")...))
	wantShape(t, w.until('Z'), "1 E(22012) ZI")
	wantLog(t, direct, "")
	w.send(batch(run(refreshGood)...))
	wantShape(t, w.until('C'), "1 2 n C(REFRESH STREAMING TABLE)")
	w.conn.Close()
	eventually(t, "the backend ends", w.backendIsGone(direct))
	wantLog(t, direct, "")
}

func TestNotificationsReachAnIdleClient(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	w.send(query("listen talk; " + refreshGood))
	w.until('Z')
	exec(t, direct, "notify talk, 'hello'")
	frames := w.until('A')
	if len(frames) != 1 || !strings.Contains(string(frames[0]), "hello") {
		t.Errorf("got %s", shape(frames))
	}
}

// TestSettingsThatAHandlerPutsBackAreReportedAsTheyAre covers ParameterStatus
// during a statement of ours: what the client last reads is what holds.
func TestSettingsThatAHandlerPutsBackAreReportedAsTheyAre(t *testing.T) {
	t.Parallel()
	url, _ := filteringProxy(t)
	for name, send := range map[string][]byte{
		"a Query":      query("refresh streaming table typed where id = 7"),
		"the extended": withSync(run("refresh streaming table typed where id = $1", "7")...),
		"a pipeline":   withSync(concat(run("select 1"), run("refresh streaming table typed where id = 7"))...),
		"a failed one": query("refresh streaming table typed where nope"),
	} {
		w := dialWire(t, url, "datestyle", "SQL, DMY")
		w.send(send)
		for _, f := range w.until('Z') {
			if f.typ() == 'S' && strings.HasPrefix(string(f.content()), "DateStyle\x00") && string(f.content()) != "DateStyle\x00SQL, DMY\x00" {
				t.Errorf("%s: the client reads %q", name, f.content())
			}
		}
		w.send(query("show datestyle"))
		if got := string(w.until('Z')[1].content()[6:]); got != "SQL, DMY" {
			t.Errorf("%s: DateStyle is %s afterwards", name, got)
		}
	}
}

func TestASettingThatIsRolledBackDoesNotChangeHowTextIsRead(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	w.hideSettings = true
	const text = `select 'a\'; refresh streaming table good; --'`
	steps := []struct{ send, answer, log string }{
		{text, "T D C(SELECT 1) C(REFRESH STREAMING TABLE) ZI", "good joined"},
		{"begin; set standard_conforming_strings = off; set escape_string_warning = off", "C(BEGIN) C(SET) C(SET) ZT", ""},
		{text, "T D C(SELECT 1) ZT", ""},
		{"rollback", "C(ROLLBACK) ZI", ""},
		{text, "T D C(SELECT 1) C(REFRESH STREAMING TABLE) ZI", "good joined"},
	}
	for _, s := range steps {
		w.send(query(s.send))
		wantShape(t, w.until('Z'), s.answer)
		wantLog(t, direct, s.log)
		exec(t, direct, "truncate log")
	}
}

func TestStartupAndWhatFollowsMayArriveByteByByte(t *testing.T) {
	t.Parallel()
	url, _ := behind(t)
	direct := connect(t, url)
	p := direct.Config()
	w := dialRaw(t, p.Host+":"+itoa(uint32(p.Port)))
	all := join(startupPacket("user", p.User, "database", p.Database), query(refreshGood), withSync(run(refreshGood)...))
	for i := range all {
		w.send(all[i : i+1])
	}
	w.until('Z')
	wantShape(t, w.until('Z'), "C(REFRESH STREAMING TABLE) ZI")
	wantShape(t, w.until('Z'), "1 2 n C(REFRESH STREAMING TABLE) ZI")
}

func TestCopyAroundOurs(t *testing.T) {
	t.Parallel()
	data, done := &pgproto3.CopyData{Data: []byte("copied\tf\n")}, &pgproto3.CopyDone{}
	for name, test := range map[string]struct {
		steps  []step
		answer string
		log    string
	}{
		"in, in front":      {[]step{{query("copy log from stdin; " + refreshGood), "G"}, {batch(data, done), "Z"}}, "G C(COPY 1) C(REFRESH STREAMING TABLE) ZI", "copied, good joined"},
		"in, behind":        {[]step{{query(refreshGood + "; copy log from stdin"), "G"}, {batch(data, done), "Z"}}, "C(REFRESH STREAMING TABLE) G C(COPY 1) ZI", "good joined, copied"},
		"in, that fails":    {[]step{{query(refreshGood + "; copy log from stdin"), "G"}, {batch(&pgproto3.CopyFail{Message: "no"}), "Z"}}, "C(REFRESH STREAMING TABLE) G E(57014) ZI", ""},
		"in, bad data":      {[]step{{query(refreshGood + "; copy log from stdin"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("x\n")}), "Z"}}, "C(REFRESH STREAMING TABLE) G E(22P04) ZI", ""},
		"in, ahead":         {[]step{{join(query("copy log from stdin"), batch(data, done), query(refreshGood)), "ZZ"}}, "G C(COPY 1) ZI C(REFRESH STREAMING TABLE) ZI", "copied, good"},
		"in, extended":      {[]step{{batch(append(run("copy log from stdin"), &pgproto3.Flush{})...), "G"}, {join(batch(data, done), withSync(run(refreshGood)...)), "Z"}}, "1 2 n G C(COPY 1) 1 2 n C(REFRESH STREAMING TABLE) ZI", "copied, good joined"},
		"out, in front":     {[]step{{query("copy (select 1) to stdout; " + refreshGood), "Z"}}, "H d c C(COPY 1) C(REFRESH STREAMING TABLE) ZI", "good joined"},
		"out, behind":       {[]step{{query(refreshGood + "; copy log to stdout"), "Z"}}, "C(REFRESH STREAMING TABLE) H d c C(COPY 1) ZI", "good joined"},
		"out, extended":     {[]step{{withSync(concat(run(refreshGood), run("copy log to stdout"))...), "Z"}}, "1 2 n C(REFRESH STREAMING TABLE) 1 2 n H d c C(COPY 1) ZI", "good joined"},
		"out, that fails":   {[]step{{query(refreshGood + "; copy (select 1 / (2 - n) from generate_series(1, 2) n) to stdout"), "Z"}}, "C(REFRESH STREAMING TABLE) H d E(22012) ZI", ""},
		"ours in its data":  {[]step{{query("copy log from stdin"), "G"}, {batch(&pgproto3.CopyData{Data: []byte(refreshGood + "\tf\n")}, done), "Z"}}, "G C(COPY 1) ZI", refreshGood},
		"binary, in front":  {[]step{{query("copy (select 1) to stdout (format binary); " + refreshGood), "Z"}}, "H d d c C(COPY 1) C(REFRESH STREAMING TABLE) ZI", "good joined"},
		"of a program text": {[]step{{query("copy log from stdin (format csv); " + refreshGood), "G"}, {batch(&pgproto3.CopyData{Data: []byte("\"copied\",f\n")}, done), "Z"}}, "G C(COPY 1) C(REFRESH STREAMING TABLE) ZI", "copied, good joined"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, direct := intercepting(t)
			var frames []frame
			for _, s := range test.steps {
				w.send(s.send)
				for _, typ := range s.until {
					frames = append(frames, w.until(byte(typ))...)
				}
			}
			wantShape(t, frames, test.answer)
			wantLog(t, direct, test.log)
		})
	}
}

func TestOursInEncodingsWhoseBytesAreNotASCII(t *testing.T) {
	t.Parallel()
	url, direct := behind(t)
	for _, encoding := range []string{"SJIS", "SHIFT_JIS_2004", "BIG5", "GBK", "GB18030", "UHC", "JOHAB"} {
		w := dialWire(t, url, "client_encoding", encoding)
		w.send(query(refreshGood))
		wantShape(t, w.until('Z'), "C(REFRESH STREAMING TABLE) ZI")
		w.send(withSync(run(refreshGood)...))
		wantShape(t, w.until('Z'), "1 2 n C(REFRESH STREAMING TABLE) ZI")
		wantLog(t, direct, "good, good")
		exec(t, direct, "truncate log")
		// The second byte of a character may be a backslash or a letter: such a
		// text is Postgres's.
		w.send(query("select '\x95\x5c'; " + refreshGood))
		if e := firstError(t, w.until('Z')); e.Code != "42601" && e.Code != "22021" && e.Code != "22P05" {
			t.Errorf("%s: %+v", encoding, e)
		}
		w.send(query("set client_encoding = 'UTF8'"))
		w.until('Z')
		w.send(query("select 'é'; " + refreshGood))
		if got := shape(w.until('Z')); got != "T D C(SELECT 1) C(REFRESH STREAMING TABLE) ZI" {
			t.Errorf("%s, then UTF8: %s", encoding, got)
		}
		exec(t, direct, "truncate log")
	}
}

func TestAParameterThatOurLexerWouldMisreadIsRefused(t *testing.T) {
	t.Parallel()
	url, direct := filteringProxy(t)
	w := dialWire(t, url, "client_encoding", "SJIS")
	w.hideSettings = true
	const text = "refresh streaming table typed where name = $1"
	w.send(withSync(run(text, "plain")...))
	wantShape(t, w.until('Z'), "1 2 n C(REFRESH STREAMING TABLE) ZI")
	w.send(withSync(run(text, "\x95\x5c")...))
	wantShape(t, w.until('Z'), "1 2 n E(0A000) ZI")
	w.send(query("set client_encoding = 'UTF8'"))
	w.until('Z')
	w.send(withSync(run(text, "表")...))
	wantShape(t, w.until('Z'), "1 2 n C(REFRESH STREAMING TABLE) ZI")
	if got := value(t, direct, "select string_agg(predicate, ', ') from log"); got != "name = ('plain'::pg_catalog.text), name = ('表'::pg_catalog.text)" {
		t.Errorf("log holds %s", got)
	}
}

func TestDiscardForgetsWhatOfOursIsPrepared(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	execute := batch(&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{}, &pgproto3.Sync{})
	for _, forget := range []string{"discard all", "deallocate s", "deallocate prepare all"} {
		w.send(batch(&pgproto3.Parse{Name: "s", Query: refreshGood}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}))
		wantShape(t, w.until('Z'), "1 t n ZI")
		w.send(execute)
		wantShape(t, w.until('Z'), "2 C(REFRESH STREAMING TABLE) ZI")
		w.send(query(forget))
		w.until('Z')
		w.send(execute)
		wantShape(t, w.until('Z'), "E(26000) ZI")
	}
	wantLog(t, direct, "good, good, good")
}

func TestRowLimitsOfOursInABlock(t *testing.T) {
	t.Parallel()
	w, _ := intercepting(t)
	w.send(query("begin"))
	w.until('Z')
	w.send(batch(&pgproto3.Parse{Query: "refresh streaming table rows"}, &pgproto3.Bind{DestinationPortal: "p", ResultFormatCodes: []int16{1}},
		&pgproto3.Execute{Portal: "p", MaxRows: 1}, &pgproto3.Sync{}))
	frames := w.until('Z')
	wantShape(t, frames, "1 2 D s ZT")
	w.send(batch(&pgproto3.Execute{Portal: "p", MaxRows: 5}, &pgproto3.Execute{Portal: "p"}, &pgproto3.Sync{}))
	frames = w.until('Z')
	wantShape(t, frames, "D D C(REFRESH STREAMING TABLE) E(55000) ZE")
	const last = "0002" + "00000010" + "00112233445566778899aabbccddee11" + "00000004" + "68657265"
	if got := hex.EncodeToString(frames[1].content()); got != last {
		t.Errorf("last row: %s, want %s", got, last)
	}
}

func TestCancelOfAnInjectedStatementInAPipeline(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "create table log (target text, joined bool)")
	p := startProxy(t, refreshing)
	w := dialWire(t, p.url(t, url))
	w.send(withSync(concat(run("insert into log values ('mine', false)"), run("refresh streaming table slow"), run("select 1"))...))
	eventually(t, "the statement runs", w.waits(direct))
	dialRaw(t, p.address).send(w.cancelRequest())
	wantShape(t, w.until('Z'), "1 2 n C(INSERT 0 1) 1 2 n E(57014) ZI")
	wantLog(t, direct, "")
	w.send(query(refreshGood))
	wantShape(t, w.until('Z'), "C(REFRESH STREAMING TABLE) ZI")
}

// TestTheTableOfRulesNamesTests keeps docs/compatibility.md true.
func TestTheTableOfRulesNamesTests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			defined[string(m[1])] = true
		}
	}
	page, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(string(page), "\n## The wire, rule by rule\n")
	rules, _, _ = strings.Cut(rules, "\n## ")
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(rules, -1)
	if len(named) < 40 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, m := range named {
		if !defined[string(m[1])] {
			t.Errorf("there is no test %s", m[1])
		}
	}
	for _, line := range strings.Split(rules, "\n") {
		if strings.HasPrefix(line, "| ") && !strings.Contains(line, "`Test") && !strings.Contains(line, "| tests |") && !strings.Contains(line, "---") {
			t.Errorf("a row without a test: %s", line)
		}
	}
}
