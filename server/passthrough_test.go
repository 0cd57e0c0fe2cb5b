package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// step is bytes that a client sends, and the answer that it then waits for.
type step struct {
	send  []byte
	until string // message types, read in this order; "$" is the end of the connection
}

// conversations are what a client may say to Postgres. Each runs against a
// table t (a int primary key, b text) of three rows.
var conversations = map[string][]step{
	"a simple query":                      {{query("select a, b from t order by a"), "Z"}},
	"an empty query":                      {{query(""), "Z"}, {query("-- nothing"), "Z"}, {query(";;"), "Z"}},
	"several statements":                  {{query("select 1; insert into t values (9, 'x'); select 2"), "Z"}},
	"an error between statements":         {{query("insert into t values (9, 'x'); select 1/0; select 2"), "Z"}, {query("select count(*) from t"), "Z"}},
	"a syntax error":                      {{query("selec 1"), "Z"}},
	"a transaction that fails":            {{query("begin"), "Z"}, {query("select 1/0"), "Z"}, {query("select 1"), "Z"}, {query("rollback"), "Z"}},
	"notices":                             {{query("do $$ begin raise notice 'hello'; raise warning 'careful'; end $$"), "Z"}},
	"pipelined queries, one of them bad":  {{join(query("select 1"), query("select 1/0"), query("select 2")), "ZZZ"}},
	"the extended protocol":               {{withSync(run("select $1::int + 1", "41")...), "Z"}},
	"Describe of a statement":             {{batch(&pgproto3.Parse{Name: "s", Query: "select b from t where a = $1"}, &pgproto3.Describe{ObjectType: 'S', Name: "s"}, &pgproto3.Sync{}), "Z"}},
	"an error in a pipeline":              {{join(withSync(concat(run("insert into t values (9, 'x')"), run("select 1/0"), run("select 2"))...), withSync(run("select count(*) from t")...)), "ZZ"}},
	"two Syncs":                           {{batch(&pgproto3.Sync{}, &pgproto3.Sync{}), "ZZ"}},
	"a Query that is skipped":             {{join(batch(&pgproto3.Parse{Query: "selec"}), query("select 1"), batch(&pgproto3.Sync{})), "Z"}, {query("select 2"), "Z"}},
	"an error, then late messages":        {{batch(&pgproto3.Parse{Query: "selec"}, &pgproto3.Flush{}), "E"}, {batch(&pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Close{ObjectType: 'S'}, &pgproto3.Sync{}), "Z"}, {query("select 1"), "Z"}},
	"Flush alone":                         {{batch(&pgproto3.Parse{Query: "select 1"}, &pgproto3.Flush{}), "1"}, {batch(&pgproto3.Bind{}, &pgproto3.Flush{}), "2"}, {batch(&pgproto3.Execute{}, &pgproto3.Flush{}), "C"}, {batch(&pgproto3.Sync{}), "Z"}},
	"a portal with a row limit":           {{batch(&pgproto3.Parse{Query: "select a from t order by a"}, &pgproto3.Bind{DestinationPortal: "p"}, &pgproto3.Execute{Portal: "p", MaxRows: 2}, &pgproto3.Flush{}), "s"}, {batch(&pgproto3.Execute{Portal: "p", MaxRows: 2}, &pgproto3.Sync{}), "Z"}},
	"a name used twice":                   {{batch(&pgproto3.Parse{Name: "s", Query: "select 1"}, &pgproto3.Sync{}, &pgproto3.Parse{Name: "s", Query: "select 2"}, &pgproto3.Sync{}), "ZZ"}},
	"Close of what is not there":          {{batch(&pgproto3.Close{ObjectType: 'S', Name: "nobody"}, &pgproto3.Close{ObjectType: 'P'}, &pgproto3.Sync{}), "Z"}},
	"prepared statements in SQL":          {{query("prepare s as select $1::int"), "Z"}, {query("execute s(3)"), "Z"}, {query("deallocate s"), "Z"}, {query("execute s(3)"), "Z"}},
	"COPY TO":                             {{query("copy t to stdout"), "Z"}},
	"COPY FROM":                           {{query("copy t from stdin"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("7\tseven\n")}, &pgproto3.CopyDone{}), "Z"}, {query("select count(*) from t"), "Z"}},
	"COPY FROM, everything at once":       {{join(query("copy t from stdin"), batch(&pgproto3.CopyData{Data: []byte("7\tseven\n")}, &pgproto3.CopyDone{}), query("select 1")), "ZZ"}},
	"COPY FROM that the client ends":      {{query("copy t from stdin"), "G"}, {batch(&pgproto3.CopyFail{Message: "no"}), "Z"}, {query("select 1"), "Z"}},
	"COPY FROM with bad data":             {{query("copy t from stdin"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("x\ty\n7\tz\n")}), "EZ"}, {batch(&pgproto3.CopyData{Data: []byte("8\tz\n")}, &pgproto3.CopyDone{}), ""}, {query("select 1"), "Z"}},
	"COPY FROM in the extended protocol":  {{batch(append(run("copy t from stdin"), &pgproto3.Flush{})...), "G"}, {batch(&pgproto3.CopyData{Data: []byte("7\tseven\n")}, &pgproto3.Sync{}, &pgproto3.Flush{}, &pgproto3.CopyDone{}, &pgproto3.Sync{}), "Z"}, {query("select 1"), "Z"}},
	"COPY FROM as JDBC fails it":          {{withSync(run("copy t from stdin")...), "G"}, {batch(&pgproto3.CopyFail{Message: "no"}, &pgproto3.Sync{}), "Z"}, {query("select 1"), "Z"}},
	"extended COPY FROM with bad data":    {{batch(append(run("copy t from stdin"), &pgproto3.Flush{})...), "G"}, {batch(&pgproto3.CopyData{Data: []byte("x\ty\n7\tz\n")}), "E"}, {batch(&pgproto3.CopyDone{}, &pgproto3.Sync{}), "Z"}, {query("select 1"), "Z"}},
	"Sync among COPY data":                {{query("copy t from stdin"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.Sync{}, &pgproto3.CopyData{Data: []byte("8\tx\n")}, &pgproto3.Flush{}, &pgproto3.CopyDone{}), "Z"}, {query("select count(*) from t"), "Z"}},
	"two COPYs in one query":              {{query("copy t from stdin; copy t from stdin; select count(*) from t"), "G"}, {batch(&pgproto3.CopyData{Data: []byte("7\tx\n")}, &pgproto3.CopyDone{}), "G"}, {batch(&pgproto3.CopyData{Data: []byte("8\tx\n")}, &pgproto3.CopyDone{}), "Z"}},
	"a Query inside COPY FROM":            {{query("copy t from stdin"), "G"}, {query("select 1"), "$"}},
	"notifications":                       {{query("listen x"), "Z"}, {query("notify x, 'hello'"), "Z"}},
	"a setting that is reported":          {{query("set application_name = 'abc'; set timezone = 'UTC'"), "Z"}},
	"a function call":                     {{functionCall, "Z"}},
	"a failing function call":             {{batch(&pgproto3.FunctionCall{Function: 1}), "Z"}, {query("select 1"), "Z"}},
	"Query and extended messages at once": {{join(query("select 1"), withSync(run("select 2")...), query("select 3")), "ZZZ"}},
	"a deferred constraint at commit":     {{withSync(run("insert into child values (99)")...), "Z"}, {query("insert into child values (99)"), "Z"}, {query("select 1"), "Z"}},
	"an unknown message type":             {{[]byte{'!', 0, 0, 0, 4}, "$"}},
	"Terminate":                           {{batch(&pgproto3.Terminate{}), "$"}},
	"a row and a text of megabytes":       {{query("select repeat('x', 5000000), '" + strings.Repeat("y", 3<<20) + "'"), "Z"}, {withSync(run("select length($1)", strings.Repeat("z", 4<<20))...), "Z"}},
	"words of ours in texts that are not": {{query("select 'refresh streaming table t' as flow"), "Z"}, {query("create or replace function f() returns text language sql as $$ select 'drop table refresh flow'::text $$"), "Z"}, {query("/* streaming */ select replace('a', 'a', 'b'); select 2"), "Z"}, {withSync(run("select 'drop table t'")...), "Z"}},
}

func TestAClientCannotTellTheProxyFromPostgres(t *testing.T) {
	t.Parallel()
	p := startProxy(t, unreachable{})
	url := pgtest.Database(t)
	for name, steps := range conversations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := converse(t, url, steps, false)
			for _, bytewise := range []bool{false, true} {
				if bytewise && size(steps) > 1<<16 {
					continue
				}
				got := converse(t, p.url(t, url), steps, bytewise)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("one byte at a time: %v; direct and proxied answers differ (-direct +proxied):\n%s", bytewise, diff)
				}
			}
		})
	}
}

// converse says steps to the database of url, in a schema of their own, and
// returns the answers as text.
func converse(t *testing.T, url string, steps []step, bytewise bool) []string {
	t.Helper()
	schema := fmt.Sprintf("s%d", schemas.Add(1))
	setup := connect(t, url)
	exec(t, setup, "create schema "+schema+"; set search_path = "+schema)
	exec(t, setup, conversationTables)
	function := value(t, setup, "select 't_count'::regproc::oid")
	setup.Close(t.Context())
	w := dialWire(t, url, "options", "-csearch_path="+schema)
	defer w.conn.Close()
	var answers []string
	for _, s := range steps {
		send := bytes.ReplaceAll(s.send, functionPlaceholder, oid(function))
		if bytewise {
			for i := range send {
				w.send(send[i : i+1])
			}
		} else {
			w.send(send)
		}
		for _, typ := range s.until {
			var frames []frame
			if typ == '$' {
				frames = append(w.untilEnd(), frame{'$', 0, 0, 0, 4})
			} else {
				frames = w.until(byte(typ))
			}
			for _, f := range frames {
				answers = append(answers, normal(w, f))
			}
		}
	}
	return answers
}

// conversationTables is what a conversation finds in its schema.
const conversationTables = `create table t (a int primary key, b text);
	insert into t values (1, 'one'), (2, 'two'), (3, 'three');
	create table child (a int references t deferrable initially deferred);
	create function t_count() returns bigint language sql as 'select count(*) from t'`

// restoreConversationTables brings them back to that. A conversation does not
// change the rows above, nor drop t.
const restoreConversationTables = `delete from t where a > 3;
	create table if not exists child (a int references t deferrable initially deferred)`

// schemas numbers the schemas of conversations.
var schemas atomic.Int64

// normal is a frame as text, without what differs from session to session.
func normal(w *wire, f frame) string {
	switch f.typ() {
	case 'E', 'N':
		// Where in the server's source depends on the protocol in use, and
		// the schema on the conversation.
		d := diagnostic(f)
		d.SchemaName, d.File, d.Line, d.Routine = "", "", 0, ""
		if f.typ() == 'N' {
			n := pgproto3.NoticeResponse(*d)
			return string(batchOf(&n))
		}
		return string(batchOf(d))
	case 'A':
		if binary.BigEndian.Uint32(f.content()) == w.pid {
			copy(f.content(), "self")
		}
	case 'T':
		// Table OIDs depend on the database.
		content := f.content()
		for at := 2; at < len(content); {
			at += bytes.IndexByte(content[at:], 0) + 1
			copy(content[at:], "\x00\x00\x00\x00")
			at += 18
		}
	}
	if len(f) > 1<<12 {
		return string(f[:1<<12]) + "…"
	}
	return string(f)
}

// functionPlaceholder stands for the OID of t_count, which differs.
var functionPlaceholder = []byte{0xfe, 0xdc, 0xba, 0x98}

// functionCall calls t_count.
var functionCall = batch(&pgproto3.FunctionCall{Function: 0xfedcba98})

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func batchOf(m pgproto3.Message) []byte {
	b, err := m.Encode(nil)
	if err != nil {
		panic(err)
	}
	return b
}

func concat(parts ...[]pgproto3.FrontendMessage) []pgproto3.FrontendMessage {
	var all []pgproto3.FrontendMessage
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func withSync(messages ...pgproto3.FrontendMessage) []byte {
	return batch(append(messages, &pgproto3.Sync{})...)
}

func size(steps []step) int {
	n := 0
	for _, s := range steps {
		n += len(s.send)
	}
	return n
}

func oid(text string) []byte {
	var n uint32
	for _, c := range text {
		n = 10*n + uint32(c-'0')
	}
	return binary.BigEndian.AppendUint32(nil, n)
}
