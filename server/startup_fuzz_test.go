package server

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
)

// recorded is a connection whose client has said everything.
type recorded struct {
	net.Conn // nil: nothing else is called
	io.Reader
}

func (r recorded) Read(b []byte) (int, error) { return r.Reader.Read(b) }

func (recorded) Write(b []byte) (int, error) { return len(b), nil }

func FuzzStartup(f *testing.F) {
	ssl, gss := requestPacket(sslRequestCode), requestPacket(gssRequestCode)
	start := []byte("\x00\x00\x00\x28\x00\x03\x00\x00user\x00me\x00replication\x00on\x00\x00")
	start[3] = byte(len(start))
	f.Add(start)
	f.Add(bytes.Join([][]byte{ssl, gss, start}, nil))
	f.Add(bytes.Join([][]byte{gss, gss}, nil))
	f.Add([]byte("\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x01\x00\x00\x00\x02"))
	f.Add([]byte("\x16\x03\x01\x00\x05hello"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		left := bytes.NewReader(sent)
		_, first, err := negotiate(recorded{Reader: left}, nil)
		if err != nil {
			return
		}
		if n := len(first.raw); n < minStartup || n > maxStartup {
			t.Errorf("a packet of %d bytes", n)
		}
		taken := sent[:len(sent)-left.Len()]
		if !bytes.HasSuffix(taken, first.raw) {
			t.Errorf("the packet %q is not the end of %q", first.raw, taken)
		}
		if rest := taken[:len(taken)-len(first.raw)]; len(rest) > len(ssl)+len(gss) {
			t.Errorf("%d bytes of requests", len(rest))
		}
	})
}

func FuzzProxyHeader(f *testing.F) {
	f.Add([]byte("PROXY TCP4 192.0.2.1 192.0.2.2 1234 5432\r\nrest"))
	f.Add([]byte("PROXY TCP6 2001:db8::1 2001:db8::2 1234 5432\r\nrest"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add([]byte(proxySignature + "\x21\x11\x00\x0c\xc0\x00\x02\x01\xc0\x00\x02\x02\x04\xd2\x15\x38rest"))
	f.Add([]byte(proxySignature + "\x20\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		left := bytes.NewReader(sent)
		source, err := readProxyHeader(left)
		taken := len(sent) - left.Len()
		if taken > maxProxyLine && !strings.HasPrefix(string(sent), proxySignature) || taken > 16+maxProxyBody {
			t.Errorf("%d bytes taken", taken)
		}
		if err != nil && source.IsValid() {
			t.Errorf("%v with an error", source)
		}
		if err != nil && !errors.Is(err, errProxyHeader) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	})
}

func FuzzSCRAM(f *testing.F) {
	f.Add("SCRAM-SHA-256\x00\x00\x00\x00\x0bn,,n=,r=abc", "c=biws,r=abc,p=AAAA", "r=abc,s=c2FsdA==,i=4096", "SCRAM-SHA-256$4096:c2FsdA==$:")
	f.Add("SCRAM-SHA-256-PLUS\x00\xff\xff\xff\xff", "p=", "r=,s=,i=-1", "md5")
	f.Fuzz(func(t *testing.T, initial, final, challenge, text string) {
		v, err := parseVerifier(text)
		if err != nil {
			v = mockVerifier()
		}
		mechanism, message, err := initialResponse([]byte(initial))
		if err != nil {
			mechanism, message = scramSHA256Plus, initial
		}
		s := &scramServer{binding: []byte("end point")}
		if d := s.start(mechanism, message); d == nil {
			s.ask(v.salt, v.iterations)
			if key, d := s.finish(strings.ReplaceAll(final, "abc", s.nonce), v.storedKey); d == nil && len(key) != 32 {
				t.Errorf("a key of %d bytes", len(key))
			}
		}
		c := &scramClient{}
		c.start()
		if _, _, err := c.read(strings.Replace(challenge, "abc", c.nonce, 1)); err == nil {
			c.prove(randomBytes(32), v.storedKey)
			if c.trusts(final, v.serverKey) {
				t.Error("a signature made without the key")
			}
		}
		mechanisms([]byte(initial))
		if m, err := readMessage(strings.NewReader(initial), maxSASLMessage); err == nil && len(m) > 1+4+maxSASLMessage {
			t.Errorf("a message of %d bytes", len(m))
		}
	})
}
