package server

import (
	"bytes"
	"net"
	"testing"
)

// recorder is a connection that keeps each write.
type recorder struct {
	net.Conn
	writes [][]byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.writes = append(r.writes, bytes.Clone(b))
	return len(b), nil
}

func TestWhatLiesTogetherIsSentTogether(t *testing.T) {
	t.Parallel()
	buffer := []byte("onetwothree")
	for name, test := range map[string]struct {
		pieces [][]byte
		want   string
	}{
		"one behind the other":   {[][]byte{buffer[:3], buffer[3:6], buffer[6:]}, "onetwothree"},
		"a gap":                  {[][]byte{buffer[:3], buffer[6:]}, "onethree"},
		"backwards":              {[][]byte{buffer[3:6], buffer[:3]}, "twoone"},
		"something of ours":      {[][]byte{buffer[:3], []byte("ours"), buffer[3:6]}, "oneourstwo"},
		"nothing between":        {[][]byte{buffer[:3], nil, buffer[3:6]}, "onetwo"},
		"the end of its memory":  {[][]byte{buffer[6:], []byte("more")}, "threemore"},
		"nothing":                {nil, ""},
		"equal text elsewhere":   {[][]byte{buffer[:3], []byte("two")}, "onetwo"},
		"capacity that is short": {[][]byte{buffer[:3:3], buffer[3:6]}, "onetwo"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{}
			w := &sender{conn: r}
			for _, p := range test.pieces {
				if n, err := w.Write(p); n != len(p) || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			if got := string(bytes.Join(r.writes, nil)); got != test.want || len(r.writes) > 1 {
				t.Errorf("sent %q in %d writes, want %q", got, len(r.writes), test.want)
			}
			if err := w.Flush(); err != nil || len(r.writes) > 1 {
				t.Errorf("sent again: %q, %v", r.writes, err)
			}
		})
	}
}

func TestWhatIsKeptDoesNotChangeWithTheBuffer(t *testing.T) {
	t.Parallel()
	r := &recorder{}
	w := &sender{conn: r}
	buffer := []byte("before")
	_, _ = w.Write(buffer)
	w.keep()
	copy(buffer, "after!")
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if len(r.writes) != 1 || string(r.writes[0]) != "before" {
		t.Errorf("sent %q", r.writes)
	}
}

func TestARunEndsAtAnotherTypeOrAHeaderThatIsCut(t *testing.T) {
	t.Parallel()
	message := func(typ byte, content string) string {
		return string([]byte{typ, 0, 0, 0, byte(4 + len(content))}) + content
	}
	for name, test := range map[string]struct {
		bytes string
		want  int
	}{
		"another type":          {message('Z', "I"), 0},
		"two, then another":     {message('D', "ab") + message('d', "c") + message('Z', "I"), 13},
		"the last is cut":       {message('D', "ab") + message('D', "cdef")[:7], 16},
		"a header is cut":       {message('D', "ab") + "D\x00\x00", 7},
		"nothing":               {"", 0},
		"a length that is none": {message('D', "ab") + "D\x00\x00\x00\x03", 7},
	} {
		f := &frameReader{}
		f.give([]byte(test.bytes))
		if got := f.run('D', 'd'); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
}
