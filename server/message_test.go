package server

import (
	"bytes"
	"testing"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

func TestMalformedMessagesOfABackendAreErrors(t *testing.T) {
	t.Parallel()
	for _, content := range []string{
		"", "\x00", "\x7f\xff", "\xff\xff", "\x00\x01", "\x00\x01\x00\x00\x00\x05abc", "\x00\x01\xff\xff\xff\xfe", "\x00\x01\xff\xff\xff\xffx",
	} {
		if row, err := parseRow([]byte(content)); err == nil {
			t.Errorf("row %q: %v", content, row)
		}
	}
	for _, content := range []string{"", "\x00\x01", "\x00\x01name", "\x00\x01name\x00", "\x7f\xff\x00", "\x00\x02a\x00bc\x00"} {
		if columns, err := parseColumns([]byte(content)); err == nil {
			t.Errorf("columns %q: %v", content, columns)
		}
	}
	for _, content := range []string{"", "\x00\x01", "\x00\x01\x00\x00", "\xff\xff\x00\x00\x00\x01"} {
		if types, err := parseParameters([]byte(content)); err == nil {
			t.Errorf("parameters %q: %v", content, types)
		}
	}
}

func TestRowsAreReadAsPostgresWritesThem(t *testing.T) {
	t.Parallel()
	message, err := (&pgproto3.DataRow{Values: [][]byte{[]byte("a"), nil, {}}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	row, err := parseRow(message[headerSize:])
	if err != nil {
		t.Fatal(err)
	}
	want := pgsession.Row{{Text: "a"}, {Null: true}, {}}
	for i := range want {
		if row[i] != want[i] {
			t.Errorf("value %d: %+v, want %+v", i, row[i], want[i])
		}
	}
}

func TestShiftPositionMovesThePositionOnly(t *testing.T) {
	t.Parallel()
	for _, d := range []*pgdiag.Diagnostic{
		pgdiag.New("42703", "no column P9").At(99).WithDetail("P1"),
		pgdiag.New("42703", "no position"),
	} {
		message, err := d.ErrorResponse().Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		moved := decodeError(shiftPosition(message, 901)[headerSize:])
		want := *d
		if d.Position > 0 {
			want.Position = 1000
		}
		want.Severity = "ERROR"
		if *moved != want {
			t.Errorf("got %+v, want %+v", *moved, want)
		}
	}
	for _, broken := range []string{"E\x00\x00\x00\x06P1", "E\x00\x00\x00\x08Pxy\x00", "E\x00\x00\x00\x04"} {
		if got := shiftPosition([]byte(broken), 1); string(got) != broken {
			t.Errorf("%q became %q", broken, got)
		}
	}
}

func TestChannelBindingIsNotOfferedOverASecondTLSConnection(t *testing.T) {
	t.Parallel()
	offer, err := (&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := (&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := withoutChannelBinding(offer); !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	ok, err := (&pgproto3.AuthenticationOk{}).Encode(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := withoutChannelBinding(ok); !bytes.Equal(got, ok) {
		t.Errorf("AuthenticationOk became %q", got)
	}
}

func FuzzMessagesOfAClient(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("p\x00s\x00\x00\x01\x00\x01\x00\x01\xff\xff\xff\xff\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if n := parseBind(content); len(n.formats) > len(content) {
			t.Errorf("%d formats in %d bytes", len(n.formats), len(content))
		}
	})
}

func FuzzMessagesOfABackend(f *testing.F) {
	f.Add([]byte("\x00\x01\x00\x00\x00\x01a"))
	f.Add([]byte("SERROR\x00P12\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if row, err := parseRow(content); err == nil && len(row) > len(content) {
			t.Errorf("%d values in %d bytes", len(row), len(content))
		}
		_, _ = parseColumns(content)
		_, _ = parseParameters(content)
		parseRowCount(content)
		message := append([]byte{msgErrorResponse, 0, 0, 0, byte(4 + len(content))}, content...)
		shiftPosition(message, 1)
		withoutChannelBinding(message)
		_ = decodeError(content)
	})
}
