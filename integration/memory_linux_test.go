package integration

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	mebibyte = 1 << 20
	// huge is near Postgres's limit of a message.
	huge = 1000 * mebibyte
	// growth is what the proxy's resident memory may grow by meanwhile: far less
	// than what passes, and more than buffers and what is garbage for a while.
	growth = 64 * mebibyte
)

// TestWhatIsHugePassesInLittleMemory has values and tables of a gigabyte pass
// through a proxy of its own and looks at the peak of its resident memory.
func TestWhatIsHugePassesInLittleMemory(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	connect(t, d.direct).exec("create table lines (line text)")
	p := ownProxy(t, d.direct)
	chunk := bytes.Repeat([]byte{'x'}, mebibyte)
	lines := bytes.Repeat(append(bytes.Repeat([]byte{'x'}, 1023), '\n'), 1024)
	for _, test := range []struct {
		name string
		send func(io.Writer)
		tag  string // of the CommandComplete
		rows int    // bytes of DataRow and CopyData, at least
	}{
		{"a small row, to begin with", func(w io.Writer) { query(w, "select 1") }, "SELECT 1", 0},
		{"a row", func(w io.Writer) { query(w, fmt.Sprintf("select repeat('x', %d)", huge)) }, "SELECT 1", huge},
		{"a parameter", func(w io.Writer) {
			write(w, 'P', []byte("\x00select octet_length($1::bytea)\x00\x00\x00"))
			// The unnamed portal and statement, one binary parameter.
			head := []byte("\x00\x00\x00\x01\x00\x01\x00\x01")
			begin(w, 'B', len(head)+4+huge+2)
			send(w, binary.BigEndian.AppendUint32(head, huge))
			for range huge / len(chunk) {
				send(w, chunk)
			}
			send(w, []byte{0, 0})
			write(w, 'E', []byte("\x00\x00\x00\x00\x00"))
			write(w, 'S', nil)
		}, "SELECT 1", 0},
		{"COPY TO", func(w io.Writer) {
			query(w, fmt.Sprintf("copy (select repeat('x', 1023) from generate_series(1, %d)) to stdout", huge/1024))
		}, fmt.Sprintf("COPY %d", huge/1024), huge},
		{"COPY TO, one row", func(w io.Writer) {
			query(w, fmt.Sprintf("copy (select repeat('x', %d)) to stdout", huge))
		}, "COPY 1", huge},
		{"COPY FROM", func(w io.Writer) {
			// Every line is read, none is kept.
			query(w, "copy lines from stdin where length(line) <> 1023")
			for range huge / len(lines) {
				write(w, 'd', lines)
			}
			write(w, 'c', nil)
		}, "COPY 0", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			client, err := pgconn.Connect(t.Context(), p.url(d.direct))
			if err != nil {
				t.Fatal(err)
			}
			session, err := client.Hijack()
			if err != nil {
				t.Fatal(err)
			}
			defer session.Conn.Close()
			if err := session.Conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
				t.Fatal(err)
			}
			before := startPeak(t, p.cmd.Process.Pid)
			failed := make(chan error, 1)
			go func() {
				w := &firstError{w: session.Conn}
				test.send(w)
				failed <- w.err
			}()
			tag, rows := answer(t, session.Conn)
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
			if tag != test.tag || rows < test.rows {
				t.Errorf("%s with %d bytes of rows, want %s with %d", tag, rows, test.tag, test.rows)
			}
			if grown := memory(t, p.cmd.Process.Pid, "VmHWM") - before; grown > growth {
				t.Errorf("the proxy's memory grew by %d MiB", grown/mebibyte)
			} else {
				t.Logf("the proxy's memory grew by %d KiB", grown>>10)
			}
		})
	}
}

// firstError is a writer whose callers need not look at each error.
type firstError struct {
	w   io.Writer
	err error
}

func (f *firstError) Write(b []byte) (int, error) {
	if f.err == nil {
		_, f.err = f.w.Write(b)
	}
	return len(b), nil
}

// send writes to a firstError.
func send(w io.Writer, b []byte) { _, _ = w.Write(b) }

// begin sends the header of a message.
func begin(w io.Writer, typ byte, size int) {
	send(w, binary.BigEndian.AppendUint32([]byte{typ}, uint32(4+size)))
}

func write(w io.Writer, typ byte, content []byte) {
	begin(w, typ, len(content))
	send(w, content)
}

func query(w io.Writer, sql string) { write(w, 'Q', append([]byte(sql), 0)) }

// answer reads to ReadyForQuery and returns the tag, and how many bytes of rows
// there were; it keeps none of them.
func answer(t *testing.T, conn net.Conn) (tag string, rows int) {
	t.Helper()
	r := bufio.NewReaderSize(conn, mebibyte)
	for {
		head := make([]byte, 5)
		if _, err := io.ReadFull(r, head); err != nil {
			t.Fatal(err)
		}
		size := int64(binary.BigEndian.Uint32(head[1:])) - 4
		switch head[0] {
		case 'D', 'd':
			rows += int(size)
			if _, err := io.CopyN(io.Discard, r, size); err != nil {
				t.Fatal(err)
			}
			continue
		}
		content := make([]byte, size)
		if _, err := io.ReadFull(r, content); err != nil {
			t.Fatal(err)
		}
		switch head[0] {
		case 'C':
			tag = string(bytes.TrimSuffix(content, []byte{0}))
		case 'E':
			t.Errorf("error: %q", content)
		case 'Z':
			return tag, rows
		}
	}
}

// startPeak has the kernel start anew with the peak of a process's resident
// memory (proc(5), clear_refs), and returns where it starts, in bytes.
func startPeak(t *testing.T, pid int) int {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return memory(t, pid, "VmRSS")
}

// memory returns a line of a process's status in bytes.
func memory(t *testing.T, pid int, name string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(name + `:\s*(\d+) kB`).FindSubmatch(status)
	if match == nil {
		t.Fatalf("no %s in\n%s", name, status)
	}
	kibibytes, err := strconv.Atoi(string(match[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kibibytes << 10
}
