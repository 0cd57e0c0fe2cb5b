package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Message types as in "Message Formats" of the protocol documentation. Some
// letters mean one thing from a client and another from the backend.
const (
	// Of a client.
	msgBind         = 'B'
	msgClose        = 'C'
	msgCopyFail     = 'f'
	msgDescribe     = 'D'
	msgExecute      = 'E'
	msgFlush        = 'H'
	msgFunctionCall = 'F'
	msgParse        = 'P'
	msgQuery        = 'Q'
	msgSync         = 'S'
	msgTerminate    = 'X'
	// Of both.
	msgCopyData = 'd'
	msgCopyDone = 'c'
	// Of the backend.
	msgAuthentication       = 'R'
	msgBackendKeyData       = 'K'
	msgBindComplete         = '2'
	msgCloseComplete        = '3'
	msgCommandComplete      = 'C'
	msgCopyInResponse       = 'G'
	msgDataRow              = 'D'
	msgEmptyQueryResponse   = 'I'
	msgErrorResponse        = 'E'
	msgNoData               = 'n'
	msgNoticeResponse       = 'N'
	msgNotificationResponse = 'A'
	msgParameterDescription = 't'
	msgParameterStatus      = 'S'
	msgParseComplete        = '1'
	msgPortalSuspended      = 's'
	msgReadyForQuery        = 'Z'
	msgRowDescription       = 'T'
)

// Transaction status as in ReadyForQuery.
const (
	statusIdle    = 'I'
	statusInBlock = 'T'
	statusAborted = 'E'
)

const textFormat, binaryFormat = 0, 1

var errMalformed = errors.New("malformed message")

// encode appends messages of ours to dst.
func encode(dst []byte, messages ...pgproto3.Message) ([]byte, error) {
	for _, m := range messages {
		var err error
		if dst, err = m.Encode(dst); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// decodeError reads the body of an ErrorResponse that Postgres sent.
func decodeError(body []byte) *pgdiag.Diagnostic {
	var e pgproto3.ErrorResponse
	if err := e.Decode(body); err != nil {
		return pgdiag.New("08P01", "malformed error response from the server")
	}
	return pgdiag.FromErrorResponse(&e)
}

// isFatal reports that a diagnostic ends the session.
func isFatal(d *pgdiag.Diagnostic) bool {
	return d.Severity == "FATAL" || d.Severity == "PANIC"
}

// shiftPosition adds characters to the P field of an ErrorResponse's body and
// returns the whole message; a body without one is returned as it is.
func shiftPosition(message []byte, characters int) []byte {
	for at := headerSize; at < len(message) && message[at] != 0; {
		end := bytes.IndexByte(message[at+1:], 0)
		if end < 0 {
			break
		}
		end += at + 1
		if message[at] == 'P' {
			position, err := strconv.Atoi(string(message[at+1 : end]))
			if err != nil {
				break
			}
			moved := append([]byte(nil), message[:at+1]...)
			moved = strconv.AppendInt(moved, int64(position+characters), 10)
			moved = append(moved, message[end:]...)
			binary.BigEndian.PutUint32(moved[1:], uint32(len(moved)-1))
			return moved
		}
		at = end + 1
	}
	return message
}

// body reads a message's body field by field. Once it has run past the end
// every field is empty and bad is set.
type body struct {
	rest []byte
	bad  bool
}

func (b *body) take(n int) []byte {
	if b.bad || n < 0 || n > len(b.rest) {
		b.bad = true
		return nil
	}
	taken := b.rest[:n]
	b.rest = b.rest[n:]
	return taken
}

// skipText skips a string without copying it.
func (b *body) skipText() {
	b.take(bytes.IndexByte(b.rest, 0) + 1)
}

func (b *body) text() string {
	end := bytes.IndexByte(b.rest, 0)
	if b.bad || end < 0 {
		b.bad = true
		return ""
	}
	return string(b.take(end + 1)[:end])
}

func (b *body) uint8() byte {
	if v := b.take(1); v != nil {
		return v[0]
	}
	return 0
}

func (b *body) int16() int {
	if v := b.take(2); v != nil {
		return int(int16(binary.BigEndian.Uint16(v)))
	}
	return 0
}

func (b *body) int32() int {
	if v := b.take(4); v != nil {
		return int(int32(binary.BigEndian.Uint32(v)))
	}
	return 0
}

// parseRow reads the body of a DataRow in text format.
func parseRow(data []byte) (pgsession.Row, error) {
	b := body{rest: data}
	n := b.int16()
	if n < 0 || n > len(data) {
		return nil, errMalformed
	}
	row := make(pgsession.Row, n)
	for i := range row {
		size := b.int32()
		if size == -1 {
			row[i].Null = true
			continue
		}
		row[i].Text = string(b.take(size))
	}
	if b.bad || len(b.rest) > 0 {
		return nil, errMalformed
	}
	return row, nil
}

// parseColumns reads the body of a RowDescription.
func parseColumns(data []byte) ([]pgsession.Column, error) {
	b := body{rest: data}
	n := b.int16()
	if n < 0 || n > len(data) {
		return nil, errMalformed
	}
	columns := make([]pgsession.Column, n)
	for i := range columns {
		columns[i].Name = b.text()
		b.take(6) // table OID, attribute number
		columns[i].TypeOID = uint32(b.int32())
		b.take(2) // type size
		columns[i].TypeModifier = int32(b.int32())
		b.take(2) // format
	}
	if b.bad {
		return nil, errMalformed
	}
	return columns, nil
}

// parseParameters reads the body of a ParameterDescription.
func parseParameters(data []byte) ([]uint32, error) {
	b := body{rest: data}
	n := b.int16() & 0xffff
	if 4*n > len(data) {
		return nil, errMalformed
	}
	types := make([]uint32, n)
	for i := range types {
		types[i] = uint32(b.int32())
	}
	if b.bad {
		return nil, errMalformed
	}
	return types, nil
}

// parseRowCount returns the row count of a command tag, 0 if it has none.
func parseRowCount(data []byte) int64 {
	b := body{rest: data}
	tag := b.text()
	n, err := strconv.ParseInt(tag[strings.LastIndexByte(tag, ' ')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// encodeArguments formats the arguments of an injected statement as text
// parameters; nil is NULL.
func encodeArguments(args []any) ([][]byte, error) {
	parameters := make([][]byte, len(args))
	for i, arg := range args {
		text, null, err := pgsession.EncodeArgument(arg)
		if err != nil {
			return nil, err
		}
		if !null {
			parameters[i] = append([]byte{}, text...) // not nil
		}
	}
	return parameters, nil
}
