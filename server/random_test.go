package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"

	"github.com/rwproxy/rwproxy/internal/embedded"
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
		return batch(&pgproto3.Execute{Portal: portal.Draw(t, "portal"), MaxRows: uint32(rapid.IntRange(0, 2).Draw(t, "limit"))})
	case 9:
		return batch(&pgproto3.Close{ObjectType: rapid.SampledFrom([]byte("SP")).Draw(t, "type"), Name: name.Draw(t, "name")})
	case 10:
		return batch(&pgproto3.Describe{ObjectType: rapid.SampledFrom([]byte("SP")).Draw(t, "type"), Name: name.Draw(t, "name")})
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
	postgres := startCrashing(t)
	url := postgres.server.URL("postgres")
	proxied := startProxy(t, forwarding).url(t, url)
	rapid.Check(t, func(r *rapid.T) {
		var all [][][]byte
		for range conversationsPerSession {
			all = append(all, drawConversation(r))
		}
		var want, got [][]string
		postgres.withoutCrash(func() error {
			var err, proxiedErr error
			want, err = converseOften(t, url, all)
			got, proxiedErr = converseOften(t, proxied, all)
			return errors.Join(err, proxiedErr)
		})
		for i := range all {
			if diff := cmp.Diff(want[i], got[i]); diff != "" {
				r.Fatalf("direct and proxied answers differ (-direct +proxied):\n%s\nsent: %q", diff, all[i])
			}
		}
	})
}

// crashing is a server of a test's own. PostgreSQL 15.18 itself ends with signal
// 11 in very few of the conversations, on a busy machine, and not again in the
// same one.
type crashing struct {
	t       *testing.T
	server  *embedded.Postgres
	crashes atomic.Int64
}

func startCrashing(t *testing.T) *crashing {
	t.Helper()
	c := &crashing{t: t}
	var err error
	c.server, err = embedded.Start(t.Context(), embedded.Config{
		DataDir:  pgtest.TempDir(t),
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		Settings: map[string]string{"fsync": "off", "autovacuum": "off"},
		Trust:    true,
		Logger:   zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(zapcore.EncoderConfig{}), zapcore.AddSync(c), zap.DebugLevel)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		if err := c.server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return c
}

// Write reads the server's log.
func (c *crashing) Write(entry []byte) (int, error) {
	if bytes.Contains(entry, []byte("was terminated by signal")) {
		c.crashes.Add(1)
	}
	return len(entry), nil
}

// withoutCrash has conversations, again when the server crashed meanwhile: then
// they show nothing.
func (c *crashing) withoutCrash(converse func() error) {
	c.t.Helper()
	const attempts = 3
	for attempt := 1; ; attempt++ {
		before := c.crashes.Load()
		err := converse()
		eventually(c.t, "the server accepts", func() bool {
			conn, err := pgx.Connect(c.t.Context(), c.server.URL("postgres"))
			if err == nil {
				conn.Close(c.t.Context())
			}
			return err == nil
		})
		crashed := c.crashes.Load() > before
		if err == nil && !crashed {
			return
		}
		if !crashed || attempt == attempts {
			c.t.Fatal(err)
		}
		c.t.Logf("PostgreSQL crashed: %v", err)
	}
}

// converseOften has conversations one after another, in one session as long as
// Postgres does not end it, each with the same tables. It returns the answers
// to each as text. Errors are those of the statements around them.
func converseOften(t *testing.T, url string, all [][][]byte) ([][]string, error) {
	t.Helper()
	schema := fmt.Sprintf("s%d", schemas.Add(1))
	setup, err := pgx.Connect(t.Context(), url)
	if err != nil {
		return nil, err
	}
	defer setup.Close(t.Context())
	prepared, err := setup.PgConn().Exec(t.Context(), "create schema "+schema+"; set search_path = "+schema+"; "+
		conversationTables+"; select 't_count'::regproc::oid").ReadAll()
	if err != nil {
		return nil, err
	}
	function := oid(string(prepared[len(prepared)-1].Rows[0][0]))
	var w *wire
	answers := make([][]string, len(all))
	for i, packets := range all {
		if w == nil {
			if w, err = tryWire(t, url, "options", "-csearch_path="+schema); err != nil {
				return nil, err
			}
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
		if _, err := setup.PgConn().Exec(t.Context(), restoreConversationTables).ReadAll(); err != nil {
			return nil, err
		}
	}
	return answers, nil
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
