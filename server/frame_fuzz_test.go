package server

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"testing"
)

// cutting is a connection whose bytes arrive in pieces of the given sizes, over
// and over again.
type cutting struct {
	net.Conn // nil: nothing else is called
	left     []byte
	sizes    []byte
	reads    int
}

func (c *cutting) Read(b []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.piece())
	c.left = c.left[n:]
	return n, nil
}

// piece returns what arrives next.
func (c *cutting) piece() []byte {
	n := len(c.left)
	if len(c.sizes) > 0 {
		n = min(n, 1+int(c.sizes[c.reads%len(c.sizes)]))
		c.reads++
	}
	return c.left[:n]
}

// walked is what was made of a stream of messages.
type walked struct {
	types  []byte       // of the messages that cannot be part of a run
	passed bytes.Buffer // the messages, as far as they have arrived
}

// walk takes messages as a session does: some whole, others as they arrive,
// runs of CopyData at once.
func (w *walked) walk(f *frameReader) error {
	if err := f.streamRest(&w.passed); err != nil {
		return err
	}
	for {
		if n := f.run(msgCopyData, msgDataRow); n > 0 {
			if err := f.stream(&w.passed, n); err != nil {
				return err
			}
			continue
		}
		typ, size, err := f.header()
		if err != nil {
			return err
		}
		if typ == msgQuery && size <= maxInLoop {
			message, err := f.peek(size)
			if err != nil {
				return err
			}
			w.types = append(w.types, typ)
			w.passed.Write(message)
			f.take(size)
			continue
		}
		if !inRuns(typ) {
			w.types = append(w.types, typ)
		}
		if err := f.stream(&w.passed, size); err != nil {
			return err
		}
	}
}

// inRuns reports a type whose messages walk may take many at once.
func inRuns(typ byte) bool { return typ == msgCopyData || typ == msgDataRow }

// expected is the walk of a stream that is all there at once, and the error it
// ends with.
func expected(sent []byte) (types, passed []byte, end error) {
	rest := sent
	for len(rest) > 0 {
		if len(rest) < headerSize {
			return types, passed, io.ErrUnexpectedEOF
		}
		length := int64(int32(binary.BigEndian.Uint32(rest[1:])))
		if length < 4 {
			return types, passed, errMessageLength
		}
		whole := 1+length <= int64(len(rest))
		held := rest[0] == msgQuery && 1+length <= maxInLoop
		if !inRuns(rest[0]) && (whole || !held) {
			types = append(types, rest[0])
		}
		if !whole {
			if !held {
				passed = append(passed, rest...)
			}
			return types, passed, io.ErrUnexpectedEOF
		}
		passed = append(passed, rest[:1+length]...)
		rest = rest[1+length:]
	}
	return types, passed, io.EOF
}

// FuzzFrames walks any bytes cut at any places, with a connection and as the
// loop does: the messages are those of the bytes as a whole.
func FuzzFrames(f *testing.F) {
	sync := []byte("S\x00\x00\x00\x04")
	simple := []byte("Q\x00\x00\x00\x0dselect 1\x00")
	data := []byte("d\x00\x00\x00\x08data")
	f.Add(bytes.Join([][]byte{simple, data, data, sync}, nil), []byte{0})
	f.Add(bytes.Join([][]byte{data, simple[:7]}, nil), []byte{3, 0, 6})
	f.Add(append(data, "Q\x00\x00\x00\x03"...), []byte{})
	f.Add([]byte("D\x7f\xff\xff\xffshort"), []byte{5})
	f.Add([]byte("d\x00\x00\x00\x04d\xff\xff\xff\xff"), []byte{1})
	f.Fuzz(func(t *testing.T, sent, cuts []byte) {
		types, passed, end := expected(sent)
		check := func(how string, w *walked, err error) {
			t.Helper()
			if err != end || !bytes.Equal(w.types, types) || !bytes.Equal(w.passed.Bytes(), passed) {
				t.Errorf("%s: messages %q, %q, then %v; want %q, %q, then %v", how, w.types, &w.passed, err, types, passed, end)
			}
		}

		var read walked
		check("from a connection", &read, read.walk(newFrameReader(&cutting{left: sent, sizes: cuts})))

		var given walked
		loop := newFrameReader(nil)
		arriving := &cutting{left: sent, sizes: cuts}
		err := errNoMore
		for err == errNoMore && len(arriving.left) > 0 {
			piece := arriving.piece()
			arriving.left = arriving.left[len(piece):]
			loop.give(append(bytes.Clone(loop.buf), piece...))
			err = given.walk(loop)
			loop.keep()
		}
		if err == errNoMore {
			err = io.EOF
			if !loop.atBoundary() {
				err = io.ErrUnexpectedEOF
			}
		}
		check("in the loop", &given, err)
	})
}
