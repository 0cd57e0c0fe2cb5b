package server_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgproto3/v2"
	"pgregory.net/rapid"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

var texts = []string{
	"select a from t order by a", "select 1", "insert into t values (10, 'x')", "select 1/0", "selec", "",
	"begin", "commit", "rollback", "savepoint a", "rollback to a", "copy t from stdin", "copy t to stdout",
	"set local timezone = 'UTC'", "notify x", "insert into child values (99)",
	"drop table if exists nothing", "drop table child", "drop table nothing",
}

var scripts = []string{
	"select 1; select 2", "drop table child; select 1", "select 1; drop table nothing; select 2",
	"begin; drop table child", "drop table child; rollback; select 1", "drop table if exists nothing; select 1/0",
	"copy t from stdin; drop table child", "drop table child; select $1::int", "drop table child; vacuum t", "vacuum t; drop table child; commit",
	"rollback; drop table child; begin", "insert into child values (99); drop table if exists nothing",
}

// drawMessage returns any message that a client may send at any time.
func drawMessage(t *rapid.T) []byte {
	text := rapid.SampledFrom(texts)
	name := rapid.SampledFrom([]string{"", "s"})
	portal := rapid.SampledFrom([]string{"", "p"})
	// Postgres reads memory that it has freed, and may crash, when a Query has
	// failed in a transaction and then its portal, the unnamed one, is executed or
	// described: that is sent behind a Bind only.
	bound := rapid.SampledFrom([]string{"p", "nobody"})
	switch rapid.IntRange(0, 16).Draw(t, "message") {
	case 0, 1:
		return query(text.Draw(t, "query"))
	case 2:
		return query(rapid.SampledFrom(scripts).Draw(t, "script"))
	case 3, 4, 5:
		return batch(run(text.Draw(t, "statement"))...)
	case 6:
		return batch(&pgproto3.Parse{Name: name.Draw(t, "name"), Query: text.Draw(t, "parse")})
	case 7:
		return batch(&pgproto3.Bind{DestinationPortal: portal.Draw(t, "portal"), PreparedStatement: name.Draw(t, "name")})
	case 8:
		return batch(&pgproto3.Execute{Portal: bound.Draw(t, "portal"), MaxRows: uint32(rapid.IntRange(0, 2).Draw(t, "limit"))})
	case 9:
		return batch(&pgproto3.Close{ObjectType: rapid.SampledFrom([]byte("SP")).Draw(t, "type"), Name: name.Draw(t, "name")})
	case 10:
		if rapid.Bool().Draw(t, "statement") {
			return batch(&pgproto3.Describe{ObjectType: 'S', Name: name.Draw(t, "name")})
		}
		return batch(&pgproto3.Describe{ObjectType: 'P', Name: bound.Draw(t, "portal")})
	case 11, 12:
		return batch(&pgproto3.Sync{})
	case 13:
		return batch(&pgproto3.Flush{})
	case 14:
		return functionCall
	case 15:
		return batch(&pgproto3.CopyFail{Message: "no"})
	default:
		data := rapid.SampledFrom([]string{"7\tx\n", "x\ty\n"}).Draw(t, "data")
		return batch(&pgproto3.CopyData{Data: []byte(data)}, &pgproto3.CopyDone{})
	}
}

// drawConversation returns messages, and where they are cut into packets.
func drawConversation(t *rapid.T) (packets [][]byte) {
	var send []byte
	for range rapid.IntRange(1, 12).Draw(t, "messages") {
		send = append(send, drawMessage(t)...)
	}
	for _, cut := range rapid.SliceOfN(rapid.IntRange(1, 60), 0, 3).Draw(t, "cuts") {
		if cut < len(send) {
			packets = append(packets, send[:cut])
			send = send[cut:]
		}
	}
	return append(packets, send)
}

// conversationsPerSession is how many conversations a session has: a hundred
// sessions, which rapid draws by default, make three thousand.
const conversationsPerSession = 30

// TestAnyConversationHasPostgressAnswers says random conversations to Postgres
// and to the proxy: message by message, the answers are the same.
func TestAnyConversationHasPostgressAnswers(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	proxied := startProxy(t, forwarding).url(t, url)
	rapid.Check(t, func(r *rapid.T) {
		var all [][][]byte
		for range conversationsPerSession {
			all = append(all, drawConversation(r))
		}
		want, got := converseOften(t, url, all), converseOften(t, proxied, all)
		for i := range all {
			if diff := cmp.Diff(want[i], got[i]); diff != "" {
				r.Fatalf("direct and proxied answers differ (-direct +proxied):\n%s\nsent: %q", diff, all[i])
			}
		}
	})
}

// converseOften has conversations one after another, in one session as long as
// Postgres does not end it, each with the same tables. It returns the answers
// to each as text.
func converseOften(t *testing.T, url string, all [][][]byte) [][]string {
	t.Helper()
	schema := fmt.Sprintf("s%d", schemas.Add(1))
	setup := connect(t, url)
	exec(t, setup, "create schema "+schema+"; set search_path = "+schema)
	exec(t, setup, conversationTables)
	function := oid(value(t, setup, "select 't_count'::regproc::oid"))
	defer setup.Close(t.Context())
	var w *wire
	answers := make([][]string, len(all))
	for i, packets := range all {
		if w == nil {
			w = dialWire(t, url, "options", "-csearch_path="+schema)
			defer w.conn.Close()
		}
		// Whatever state the packets leave behind, after the last one Postgres is
		// at the start again, and says so; or it has ended the session.
		mark := fmt.Sprintf("mark %d", i)
		last := join(batch(&pgproto3.CopyFail{}, &pgproto3.Sync{}), query("rollback"), query("deallocate all"), query("select '"+mark+"'"))
		for _, packet := range append(packets[:len(packets):len(packets)], last) {
			if _, err := w.conn.Write(bytes.ReplaceAll(packet, functionPlaceholder, function)); err != nil {
				break // the session has ended, which is read below
			}
		}
		answers[i], w = answersUpTo(w, mark)
		exec(t, setup, restoreConversationTables)
	}
	return answers
}

// answersUpTo reads to the answer of the Query that selects mark. It returns a
// nil wire when the session has ended before it.
func answersUpTo(w *wire, mark string) ([]string, *wire) {
	var answers []string
	for {
		f := w.read()
		if f == nil {
			w.conn.Close()
			return append(answers, "the end"), nil
		}
		answers = append(answers, normal(w, f))
		if f.typ() == 'D' && strings.HasSuffix(string(f), mark) {
			for _, f := range w.until('Z') {
				answers = append(answers, normal(w, f))
			}
			return answers, w
		}
	}
}
