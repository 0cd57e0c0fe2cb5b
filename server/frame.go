package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

const (
	// bufferSize is how much a session's goroutines read at once.
	bufferSize = 16 << 10
	// restSize is the size of the buffer in which one waits for a message.
	restSize = 1 << 10
	// maxBuffered is the longest message that is held in memory as a whole;
	// longer ones stream through unread.
	maxBuffered = 16 << 20
	// maxInLoop is the longest message that the loop looks at as a whole.
	maxInLoop = 16 << 10
	// maxWatched is how much of a client's pipeline is read ahead while one
	// of its statements runs.
	maxWatched = 256 << 10
	// headerSize is a message's type byte and its length field.
	headerSize = 5
)

var (
	errMessageLength = errors.New("invalid message length")
	// errNoMore is the end of what the loop has read so far.
	errNoMore = errors.New("no more bytes to be had without waiting")
	// errNotHere is returned in the loop, before anything was done, for a
	// message that takes waiting.
	errNotHere = errors.New("not to be done in the loop")
)

// frameReader walks the messages that arrive on a connection, in place in its
// buffer. The buffer grows with the bytes that have arrived, never with what a
// length field promises. In the loop it has no connection and is given what
// was read.
type frameReader struct {
	conn net.Conn
	// beforeRead runs before every read that may block: what has been
	// forwarded so far is flushed here, and nowhere else. afterRead runs after
	// it.
	beforeRead, afterRead func() error

	buf    []byte
	r, w   int   // buf[r:w] has been read and not yet taken
	last   int   // bytes of the last read
	rest   int   // bytes of a message that is being streamed
	failed error // what ended the stream, if that was found out in the loop

	count *atomic.Int64 // of the bytes read
}

func newFrameReader(conn net.Conn) *frameReader {
	nothing := func() error { return nil }
	return &frameReader{conn: conn, beforeRead: nothing, afterRead: nothing, count: new(atomic.Int64)}
}

// header returns the type and the whole length, header included, of the next
// message without taking it.
func (f *frameReader) header() (typ byte, size int, err error) {
	head, err := f.peek(headerSize)
	if err != nil {
		return 0, 0, err
	}
	length := int32(binary.BigEndian.Uint32(head[1:]))
	if length < 4 {
		return head[0], 0, errMessageLength
	}
	return head[0], 1 + int(length), nil
}

// peek returns the next n bytes without taking them. They are valid until the
// next call. At the end of the stream it returns io.EOF, or
// io.ErrUnexpectedEOF when some but not all of them have arrived.
func (f *frameReader) peek(n int) ([]byte, error) {
	for f.w-f.r < n {
		if f.conn == nil && n > maxInLoop {
			return nil, errNotHere
		}
		if err := f.fill(); err != nil {
			if err == io.EOF && f.w > f.r {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return f.buf[f.r : f.r+n], nil
}

// take drops the next n bytes, which have been peeked.
func (f *frameReader) take(n int) {
	f.r += n
	if f.r == f.w {
		f.r, f.w = 0, 0
	}
}

// stream moves the next n bytes to w, however many they are.
func (f *frameReader) stream(w io.Writer, n int) error {
	f.rest = n
	return f.streamRest(w)
}

// streamRest goes on with a stream that the end of the bytes interrupted.
func (f *frameReader) streamRest(w io.Writer) error {
	for f.rest > 0 {
		if f.r == f.w {
			if err := f.fill(); err != nil {
				if err == io.EOF {
					err = io.ErrUnexpectedEOF
				}
				return err
			}
		}
		chunk := f.buf[f.r:min(f.w, f.r+f.rest)]
		if _, err := w.Write(chunk); err != nil {
			return err
		}
		f.rest -= len(chunk)
		f.take(len(chunk))
	}
	return nil
}

// run returns the length of the messages that come next and are of one of two
// types, as far as their headers have been read; 0 if the next one is not.
func (f *frameReader) run(a, b byte) int {
	at := f.r
	for f.w-at >= headerSize && (f.buf[at] == a || f.buf[at] == b) {
		length := int32(binary.BigEndian.Uint32(f.buf[at+1:]))
		if length < 4 {
			break
		}
		at += 1 + int(length)
	}
	return at - f.r
}

// atBoundary reports that no part of a message has arrived yet.
func (f *frameReader) atBoundary() bool { return f.r == f.w && f.rest == 0 }

// fill reads once. An expired read deadline is a tap on the shoulder: the
// deadline is lifted and beforeRead looks again at what has changed.
func (f *frameReader) fill() error {
	if f.conn == nil {
		return errNoMore
	}
	for {
		if err := f.beforeRead(); err != nil {
			return err
		}
		err := f.read()
		if err := f.afterRead(); err != nil {
			return err
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if err := f.conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
	}
}

// read reads once into free space, making some if there is none.
func (f *frameReader) read() error {
	if f.failed != nil {
		return f.failed
	}
	switch {
	case f.r == f.w:
		f.r, f.w = 0, 0
		// A little for who waits for a message, more for who gets more.
		size := restSize
		if f.last >= restSize {
			size = bufferSize
		}
		if len(f.buf) != size {
			f.buf = make([]byte, size)
		}
	case f.w == len(f.buf) && f.r > 0:
		f.w = copy(f.buf, f.buf[f.r:f.w])
		f.r = 0
	}
	if f.w == len(f.buf) {
		grown := make([]byte, max(bufferSize, 2*f.w))
		copy(grown, f.buf)
		f.buf = grown
	}
	n, err := f.conn.Read(f.buf[f.w:])
	f.w += n
	f.last = n
	f.count.Add(int64(n))
	if n > 0 {
		return nil
	}
	return err
}

// give has the loop's reader go on with what was read into buf, in which the
// bytes that were left over come first.
func (f *frameReader) give(buf []byte) {
	f.buf, f.r, f.w = buf, 0, len(buf)
}

// keep copies what is left over, so that the buffer is free.
func (f *frameReader) keep() {
	left := f.buf[f.r:f.w]
	f.buf, f.r, f.w = nil, 0, len(left)
	if len(left) > 0 {
		f.buf = bytes.Clone(left)
	}
}

// interrupt makes a blocked read of conn look again at what has changed.
func interrupt(conn net.Conn) {
	// It can only fail on a closed connection, whose reads have ended.
	_ = conn.SetReadDeadline(time.Unix(1, 0))
}
