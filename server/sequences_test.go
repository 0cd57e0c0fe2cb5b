package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// sequence is what a client may send, good or bad.
type sequence struct {
	name string
	send []byte
}

// TestSequencesHavePostgressAnswers sends each sequence to Postgres and to the
// proxy, there as a whole and byte by byte: message by message, the answers are
// the same.
func TestSequencesHavePostgressAnswers(t *testing.T) {
	t.Parallel()
	for name, sequences := range map[string][]sequence{
		"messages":  anyMessages(),
		"pipelines": failingPipelines(),
		"COPY":      copies(),
		"large":     largeMessages(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			proxied := startProxy(t, forwarding).url(t, url)
			var whole, bytewise [][][]byte
			for _, s := range sequences {
				whole = append(whole, [][]byte{s.send})
				cut := [][]byte{s.send}
				if len(s.send) < 1<<12 {
					cut = slices.Collect(slices.Chunk(s.send, 1))
				}
				bytewise = append(bytewise, cut)
			}
			want := converseOften(t, url, whole)
			for how, packets := range map[string][][][]byte{"as a whole": whole, "byte by byte": bytewise} {
				got := converseOften(t, proxied, packets)
				for i, s := range sequences {
					if diff := cmp.Diff(want[i], got[i]); diff != "" {
						t.Errorf("%s, %s: direct and proxied answers differ (-direct +proxied):\n%s", s.name, how, diff)
					}
				}
			}
		})
	}
}

func message(typ byte, body string) []byte {
	m := binary.BigEndian.AppendUint32([]byte{typ}, uint32(4+len(body)))
	return append(m, body...)
}

// anyMessages are messages of every type, those of a backend and unknown ones
// included: as they should be, and with bodies of the wrong length or content,
// each wherever it may meet a client's session. (Of a length below the protocol's
// minimum, Postgres tells its log only, and the proxy the client.)
func anyMessages() []sequence {
	bodies := map[byte]string{ // of a FunctionCall: pi()
		'B': "\x00\x00\x00\x00\x00\x00\x00\x00", 'C': "S\x00", 'D': "P\x00", 'E': "\x00\x00\x00\x00\x00",
		'F': "\x00\x00\x06\x4a\x00\x00\x00\x00\x00\x00", 'P': "\x00select 1\x00\x00\x00", 'Q': "select 1\x00",
		'H': "", 'S': "", 'X': "", 'c': "", 'd': "7\tx\n", 'f': "no\x00", 'p': "secret\x00",
		'R': "\x00\x00\x00\x00", 'T': "\x00\x00", 'Z': "I", 'n': "", '\x00': "", '\xff': "x",
	}
	places := []sequence{
		{"first", nil},
		{"behind a pipeline", batch(run("insert into t values (9, 'x')")...)},
		{"behind an error", batch(&pgproto3.Parse{Query: "selec"})},
		{"in a block", query("begin")},
		{"among COPY data", query("copy t from stdin")},
		{"behind one of ours", query("drop table child; select 1")},
	}
	var all []sequence
	for typ, body := range bodies {
		variants := map[string]string{"good": body, "longer by a byte": body + "\x00", "of other bytes": "\xff\xff\xff\xff\xff\xff\xff\xff"}
		if body != "" {
			variants["empty"] = ""
			variants["shorter by a byte"] = body[:len(body)-1]
		}
		for variant, content := range variants {
			for _, place := range places {
				all = append(all, sequence{
					fmt.Sprintf("a message %q, %s, %s", typ, variant, place.name),
					join(place.send, message(typ, content), withSync(run("select 2")...)),
				})
			}
		}
	}
	return all
}

// failingPipelines are pipelines of three statements with an error in one
// message of one of them.
func failingPipelines() []sequence {
	errors := map[string]func([]pgproto3.FrontendMessage){
		"no error":   func([]pgproto3.FrontendMessage) {},
		"a Parse":    func(m []pgproto3.FrontendMessage) { m[0] = &pgproto3.Parse{Query: "selec"} },
		"its lookup": func(m []pgproto3.FrontendMessage) { m[0] = &pgproto3.Parse{Query: "select nothing from t"} },
		"a Bind": func(m []pgproto3.FrontendMessage) {
			m[1] = &pgproto3.Bind{Parameters: [][]byte{[]byte("1")}}
		},
		"a Bind's statement": func(m []pgproto3.FrontendMessage) { m[1] = &pgproto3.Bind{PreparedStatement: "nobody"} },
		"a Describe":         func(m []pgproto3.FrontendMessage) { m[2] = &pgproto3.Describe{ObjectType: 'S', Name: "nobody"} },
		"an Execute":         func(m []pgproto3.FrontendMessage) { m[0] = &pgproto3.Parse{Query: "select 1 / (a - 1) from t"} },
		"an Execute's portal": func(m []pgproto3.FrontendMessage) {
			m[3] = &pgproto3.Execute{Portal: "nobody"}
		},
		"a Close": func(m []pgproto3.FrontendMessage) { m[4] = &pgproto3.Close{ObjectType: 'X'} },
	}
	statements := map[string][]string{
		"of Postgres's": {"insert into t values (9, 'x')", "select a from t order by a", "insert into t values (10, 'y')"},
		"and one of ours": {
			"insert into t values (9, 'x')", "drop table child", "drop table if exists nothing",
		},
	}
	var all []sequence
	for mixture, texts := range statements {
		for kind, fail := range errors {
			for at := range texts {
				for between, message := range map[string]pgproto3.FrontendMessage{"nothing": nil, "Flush": &pgproto3.Flush{}, "Sync": &pgproto3.Sync{}} {
					var send []byte
					for i, text := range texts {
						m := append(run(text), &pgproto3.Close{ObjectType: 'P'})
						if i == at {
							fail(m)
						}
						send = append(send, batch(m...)...)
						if message != nil {
							send = append(send, batch(message)...)
						}
					}
					all = append(all, sequence{
						fmt.Sprintf("statements %s, %s fails in number %d, %s between", mixture, kind, at+1, between),
						join(send, batch(&pgproto3.Sync{}), query("select count(*) from t")),
					})
				}
			}
		}
	}
	return all
}

// copies are a COPY FROM in every protocol with every outcome, and every form
// of COPY TO.
func copies() []sequence {
	data := func(text string) []byte { return batch(&pgproto3.CopyData{Data: []byte(text)}) }
	done := batch(&pgproto3.CopyDone{})
	outcomes := map[string][]byte{
		"taken":                    join(data("7\tx\n"), data("8\ty\n"), done),
		"without rows":             done,
		"with an end mark":         join(data("7\tx\n\\.\n"), data("8\ty\n"), done),
		"a row in pieces":          join(data("7"), data("\t"), data(""), data("x\n"), done),
		"without a last line end":  join(data("7\tx"), done),
		"given up":                 join(data("7\tx\n"), batch(&pgproto3.CopyFail{Message: "no"})),
		"given up at once":         batch(&pgproto3.CopyFail{}),
		"bad data":                 join(data("x\ty\n"), data("8\ty\n"), done),
		"bad data at the end":      join(data("7\tx\n"), data("8"), done),
		"a row twice":              join(data("7\tx\n7\ty\n"), done),
		"a Sync among it":          join(data("7\tx\n"), batch(&pgproto3.Sync{}), data("8\ty\n"), done),
		"a Flush among it":         join(data("7\tx\n"), batch(&pgproto3.Flush{}), data("8\ty\n"), done),
		"a Sync behind bad data":   join(data("x\n"), batch(&pgproto3.Sync{}), data("8\ty\n"), done),
		"a Query among it":         join(data("7\tx\n"), query("select 1"), done),
		"a Parse among it":         join(data("7\tx\n"), batch(&pgproto3.Parse{Query: "select 1"}), done),
		"a Terminate among it":     join(data("7\tx\n"), batch(&pgproto3.Terminate{})),
		"two ends":                 join(data("7\tx\n"), done, done),
		"an end, then it gives up": join(data("7\tx\n"), done, batch(&pgproto3.CopyFail{Message: "no"})),
	}
	starts := map[string][]byte{
		"a Query":                   query("copy t from stdin"),
		"a Query in a block":        query("begin; copy t from stdin"),
		"a Query in front of ours":  query("copy t from stdin; drop table child"),
		"a Query behind ours":       query("drop table child; copy t from stdin; select 1"),
		"the extended protocol":     batch(run("copy t from stdin")...),
		"a pipeline":                batch(concat(run("insert into t values (9, 'x')"), run("copy t from stdin"))...),
		"a pipeline behind ours":    batch(concat(run("drop table child"), run("copy t from stdin"))...),
		"CSV":                       query("copy t from stdin (format csv, delimiter '\t')"),
		"a header that must match":  query("copy t from stdin (format csv, header)"),
		"binary":                    query("copy t from stdin (format binary)"),
		"a table that is not there": query("copy nothing from stdin"),
	}
	var all []sequence
	for start, begin := range starts {
		for outcome, rest := range outcomes {
			all = append(all, sequence{
				fmt.Sprintf("COPY FROM as %s, %s", start, outcome),
				join(begin, rest, withSync(run("select count(*) from t")...)),
			})
		}
	}
	for _, text := range []string{
		"copy t to stdout", "copy t (b) to stdout (format csv, header)", "copy t to stdout (format binary)",
		"copy (select 1 where false) to stdout", "copy (select 1 / (3 - a) from t) to stdout", "copy nothing to stdout",
		"copy (insert into t values (9, 'x') returning a) to stdout",
	} {
		all = append(all,
			sequence{text + " as a Query", query(text)},
			sequence{text + " in a pipeline", withSync(concat(run("select 1"), run(text), run("select 2"))...)},
			sequence{text + " between ours", query("drop table if exists nothing; " + text + "; drop table child")},
			sequence{text + " with a row limit", batch(&pgproto3.Parse{Query: text}, &pgproto3.Bind{}, &pgproto3.Execute{MaxRows: 1}, &pgproto3.Execute{}, &pgproto3.Sync{})},
		)
	}
	return all
}

// largeMessages are messages of every type of three megabytes.
func largeMessages() []sequence {
	const size = 3 << 20
	x := strings.Repeat("x", size)
	all := []sequence{
		{"a Query", query("select '" + x + "'")},
		{"a Query in front of ours", query("select length('" + x + "'); drop table child; select 1")},
		{"a statement", withSync(run("select length('" + x + "')")...)},
		{"a parameter", withSync(run("select length($1)", x)...)},
		{"a parameter behind ours", withSync(concat(run("drop table child"), run("select length($1)", x))...)},
		{"a row", query("select repeat('x', 3 << 20) from t")},
		{"a notice", query("do $$ begin raise notice '%', repeat('x', 3 << 20); end $$")},
		{"an error", query("do $$ begin raise '%', repeat('x', 3 << 20); end $$")},
		{"an error behind ours", query("drop table child; do $$ begin raise '%', repeat('x', 3 << 20); end $$")},
		{"COPY data", join(query("copy t from stdin"), batch(&pgproto3.CopyData{Data: []byte("7\t" + x + "\n")}, &pgproto3.CopyDone{}))},
		{"COPY data of one byte each", join(query("copy t from stdin"), bytes.Repeat(batch(&pgproto3.CopyData{Data: []byte("x")}), size/6), batch(&pgproto3.CopyFail{}))},
		{"bad COPY data", join(query("copy t from stdin"), batch(&pgproto3.CopyData{Data: []byte(x)}, &pgproto3.CopyDone{}))},
		{"the reason of a CopyFail", join(query("copy t from stdin"), batch(&pgproto3.CopyFail{Message: x}))},
	}
	// Most of these types may have 10,000 bytes; more end the session.
	for _, typ := range []byte("BCDEFHPQScdfpRz") {
		all = append(all, sequence{fmt.Sprintf("%q full of nothing", typ), join(message(typ, x), batch(&pgproto3.Sync{}))})
	}
	return all
}
