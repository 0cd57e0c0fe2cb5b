package server_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// rest waits until a session has come to rest, where the loop may have it.
func (w *wire) rest() {
	w.t.Helper()
	w.send(query("select 1"))
	w.until('Z')
}

func TestASessionGoesBackAndForthBetweenOursAndPostgress(t *testing.T) {
	t.Parallel()
	w, direct := intercepting(t)
	for range 50 {
		w.rest()
		w.send(join(query("select 2"), query(refreshGood), query("select 3")))
		wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")
		wantShape(t, w.until('Z'), "C(REFRESH STREAMING TABLE) ZI")
		wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")
	}
	if n := value(t, direct, "select count(*) from log"); n != "50" {
		t.Errorf("%s of 50 ran", n)
	}
}

// A client that does not read stops its own backend and nothing else: what it
// sends meanwhile arrives, and what the proxy keeps for it is bounded.
func TestASlowReaderIsWaitedForWithoutKeepingItsRows(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	p := startProxy(t, refreshing)
	w := dialWire(t, p.url(t, url))
	other := dialWire(t, p.url(t, url))
	w.rest()
	const rows, width = 3000, 100_000
	w.send(query("select repeat('x', 100000) from generate_series(1, 3000)"))
	eventually(t, "the backend waits for its client", func() bool {
		return value(t, direct, "select count(*) from pg_stat_activity where wait_event = 'ClientWrite' and pid = "+itoa(w.pid)) == "1"
	})
	other.rest()
	w.send(query("select 'behind'"))
	bytesOfRows := 0
	for {
		f := w.read()
		if f.typ() == 'D' {
			bytesOfRows += len(f.content()) - 6
		}
		if f.typ() == 'Z' {
			break
		}
	}
	if bytesOfRows != rows*width {
		t.Errorf("%d bytes of rows arrived", bytesOfRows)
	}
	wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")
}

// A backend that does not read, for a while, stops its client only.
func TestABackendThatIsBusyIsSentEverythingLater(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	exec(t, direct, "select pg_advisory_lock(7)")
	w := dialWire(t, startProxy(t, refreshing).url(t, url))
	w.rest()
	text := "select length('" + strings.Repeat("x", 4<<20) + "')"
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w.send(join(query("select pg_advisory_lock(7)"), query(text), query(text)))
	}()
	eventually(t, "the statement waits", func() bool {
		return value(t, direct, "select count(*) from pg_locks where not granted and pid = "+itoa(w.pid)) == "1"
	})
	exec(t, direct, "select pg_advisory_unlock(7)")
	for range 3 {
		wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")
	}
	<-sent
}

// A value of many megabytes passes in both directions at once, in parameters
// and rows, one message each.
func TestAMessageLargerThanEveryBufferStreams(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	w := dialWire(t, startProxy(t, refreshing).url(t, url))
	w.rest()
	const size = 64 << 20
	parse := batch(&pgproto3.Parse{Query: "select $1::text"})
	head := binary.BigEndian.AppendUint32([]byte{'B'}, uint32(4+1+1+2+2+4+size+2))
	head = append(head, 0, 0, 0, 0, 0, 1)
	head = binary.BigEndian.AppendUint32(head, size)
	go func() {
		w.send(join(parse, head))
		chunk := bytes.Repeat([]byte{'v'}, 1<<20)
		for range size / len(chunk) {
			w.send(chunk)
		}
		w.send(join([]byte{0, 0}, batch(&pgproto3.Execute{}, &pgproto3.Sync{})))
	}()
	wantShape(t, []frame{w.read(), w.read()}, "1 2")
	row := make([]byte, 5)
	if _, err := io.ReadFull(w.conn, row); err != nil || row[0] != 'D' {
		t.Fatalf("%q, %v", row, err)
	}
	if n, err := io.CopyN(io.Discard, w.conn, int64(binary.BigEndian.Uint32(row[1:]))-4); err != nil {
		t.Fatalf("%d bytes, then %v", n, err)
	}
	wantShape(t, w.until('Z'), "C(SELECT 1) ZI")
}

// Sessions at rest have no goroutines where there is a loop.
func TestManySessionsAtRestAreAllServed(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	p := startProxy(t, refreshing)
	var sessions []*wire
	for range 40 {
		w := dialWire(t, p.url(t, url))
		w.rest()
		sessions = append(sessions, w)
	}
	for _, w := range sessions {
		w.send(query("select 1"))
	}
	for _, w := range sessions {
		wantShape(t, w.until('Z'), "T D C(SELECT 1) ZI")
	}
	stopInTime(t, p)
	for _, w := range sessions {
		if e := firstError(t, w.untilEnd()); e.Code != "57P01" {
			t.Errorf("told %+v", e)
		}
	}
}

func TestAClientThatResetsItsConnectionEndsItsBackend(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	w := dialWire(t, startProxy(t, refreshing).url(t, url))
	w.rest()
	w.send(query("select repeat('x', 100000) from generate_series(1, 100000)"))
	eventually(t, "the backend waits for its client", func() bool {
		return value(t, direct, "select count(*) from pg_stat_activity where wait_event = 'ClientWrite' and pid = "+itoa(w.pid)) == "1"
	})
	if err := w.conn.(*net.TCPConn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	w.conn.Close()
	eventually(t, "the backend ends", w.backendIsGone(direct))
}

// The bytes of a client's last messages, more than are read at once, and the
// end of its connection may arrive together.
func TestAClientThatLeavesRightBehindItsLastMessageIsAnswered(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	direct := connect(t, url)
	p := startProxy(t, refreshing)
	for _, size := range []int{1, 1000, 100_000, 128 << 10, 144 << 10, 1 << 20} {
		for range 5 {
			w := dialWire(t, p.url(t, url))
			// Not to be ended by Postgres, which looks for clients that have left.
			w.send(query("set client_connection_check_interval = 0"))
			w.until('Z')
			w.send(join(query("select length('"+strings.Repeat("x", size)+"')"), query("select 2")))
			if err := w.conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			wantShape(t, w.untilEnd(), "T D C(SELECT 1) ZI T D C(SELECT 1) ZI")
			eventually(t, "the backend ends", w.backendIsGone(direct))
		}
	}
}
