package integration

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5/pgconn"
)

// requests are what busy clients say again and again.
var requests = [][]pgproto3.FrontendMessage{
	{&pgproto3.Query{String: "select count(*) from source"}},
	{&pgproto3.Parse{Query: "select $1::text"}, &pgproto3.Bind{Parameters: [][]byte{[]byte("x")}}, &pgproto3.Execute{}, &pgproto3.Sync{}},
	{&pgproto3.Query{String: "select repeat('x', 100000) from generate_series(1, 20)"}},
	{&pgproto3.Query{String: "begin"}, &pgproto3.Query{String: "insert into written values (1)"}, &pgproto3.Query{String: "commit"}},
	{&pgproto3.Query{String: "refresh streaming table target"}},
	{&pgproto3.Parse{Query: "refresh streaming table target"}, &pgproto3.Bind{}, &pgproto3.Execute{}, &pgproto3.Sync{}},
}

// TestAProxyThatIsStoppedUnderLoadEndsEverySessionBetweenAnswers sends SIGTERM
// while many clients never stop asking: what has begun is answered as a whole,
// then each of them is told.
func TestAProxyThatIsStoppedUnderLoadEndsEverySessionBetweenAnswers(t *testing.T) {
	t.Parallel()
	const clients = 60
	d := newDatabase(t)
	s := connect(t, d.url)
	s.exec(`create table source (id integer)`, `insert into source select generate_series(1, 100)`, `create table written (n integer)`,
		`create streaming table target flow replace where id > 0 by name select id from source`)
	own := ownProxy(t, server.URL("postgres"))
	var answered atomic.Int64
	var running sync.WaitGroup
	for i := range clients {
		conn := connect(t, own.url(d.direct)).hijack()
		running.Go(func() {
			if err := ask(conn, requests[i%len(requests)], &answered); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	eventually(t, "everybody is busy", func() bool { return answered.Load() > 3*clients })
	if err := own.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	running.Wait()
	select {
	case <-own.exited:
	case <-time.After(patience):
		t.Fatal("the proxy does not end")
	}
	if log := own.log.String(); own.status != nil || strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic") {
		t.Errorf("the proxy left with %v\n%s", own.status, log)
	}
	direct := connect(t, d.direct)
	s.close()
	eventually(t, "every backend is gone", func() bool {
		return direct.value(`select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
			and application_name <> 'rwproxy'`) == "0" // the shared proxy serves the database still
	})
	direct.want(`select count(*) from (select id from target except select id from source) d`, "0")
}

// hijack takes the connection out of a session that is at rest.
func (s *session) hijack() *pgconn.HijackedConn {
	s.t.Helper()
	conn, err := s.conn.Hijack()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Conn.Close() })
	return conn
}

// ask sends a request again and again until the session ends, and says what is
// wrong with its end: it may come between two answers only, with a FATAL 57P01.
func ask(conn *pgconn.HijackedConn, request []pgproto3.FrontendMessage, answered *atomic.Int64) error {
	var send []byte
	asked := 0
	for _, m := range request {
		var err error
		if send, err = m.Encode(send); err != nil {
			return err
		}
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
			asked++
		}
	}
	if err := conn.Conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	r := bufio.NewReader(conn.Conn)
	for {
		// If nobody is there any more, what was said last is there to be read.
		_, _ = conn.Conn.Write(send)
		for left, inAnswer := asked, false; left > 0; {
			typ, content, err := readMessage(r)
			switch {
			case err != nil:
				return fmt.Errorf("ended without a word: %w", err)
			case typ == 'Z':
				left--
				inAnswer = false
			case typ == 'E' && strings.Contains(string(content), "\x00C57P01\x00"):
				if inAnswer {
					return fmt.Errorf("told in the middle of an answer: %q", content)
				}
				if _, _, err := readMessage(r); err != io.EOF && !isReset(err) {
					return fmt.Errorf("after the last word: %w", err)
				}
				return nil
			case typ == 'E':
				return fmt.Errorf("%q", content)
			case typ != 'S' && typ != 'N':
				inAnswer = true
			}
		}
		answered.Add(1)
	}
}

// isReset reports that a connection was closed with something of ours unread.
func isReset(err error) bool { return err != nil && strings.Contains(err.Error(), "reset by peer") }

// readMessage reads one message of the backend; its end is io.EOF only between
// two messages.
func readMessage(r io.Reader) (typ byte, content []byte, err error) {
	head := make([]byte, 5)
	if _, err := io.ReadFull(r, head); err != nil {
		return 0, nil, err
	}
	content = make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	if _, err := io.ReadFull(r, content); err != nil {
		return 0, nil, fmt.Errorf("inside a message %q: %w", head[0], err)
	}
	return head[0], content, nil
}
