package server_test

import (
	"fmt"
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
	switch rapid.IntRange(0, 13).Draw(t, "message") {
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
		return batch(&pgproto3.Execute{Portal: portal.Draw(t, "portal"), MaxRows: uint32(rapid.IntRange(0, 2).Draw(t, "limit"))})
	case 9:
		return batch(&pgproto3.Close{ObjectType: rapid.SampledFrom([]byte("SP")).Draw(t, "type"), Name: name.Draw(t, "name")})
	case 10, 11:
		return batch(&pgproto3.Sync{})
	case 12:
		return batch(&pgproto3.Flush{})
	default:
		data := rapid.SampledFrom([]string{"7\tx\n", "x\ty\n"}).Draw(t, "data")
		return batch(&pgproto3.CopyData{Data: []byte(data)}, &pgproto3.CopyDone{})
	}
}

// TestAnyConversationHasPostgressAnswers says random conversations to Postgres
// and to the proxy: message by message, the answers are the same.
func TestAnyConversationHasPostgressAnswers(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	proxied := startProxy(t, forwarding).url(t, url)
	rapid.Check(t, func(r *rapid.T) {
		var send []byte
		for range rapid.IntRange(1, 12).Draw(r, "messages") {
			send = append(send, drawMessage(r)...)
		}
		// Whatever state this ends in, a Sync makes Postgres send its answers.
		steps := []step{{join(send, batch(&pgproto3.Sync{}, &pgproto3.Terminate{})), "$"}}
		want, got := converse(t, url, steps, false), converse(t, proxied, steps, false)
		if diff := cmp.Diff(want, got); diff != "" {
			r.Fatalf("direct and proxied answers differ (-direct +proxied):\n%s\nsent: %s", diff, fmt.Sprintf("%q", send))
		}
	})
}
