package server

import (
	"context"
	"encoding/binary"
	"io"

	"go.uber.org/zap"
)

// forwardCancel hands a CancelRequest to Postgres, whose keys clients hold, so
// that any proxy in front of the same Postgres can serve it. It returns once
// Postgres has acted on it, which it shows by closing the connection.
func (u Upstream) forwardCancel(ctx context.Context, request []byte) error {
	conn, err := u.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { interrupt(conn) })()
	if _, err := conn.Write(request); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// cancelOurs stops an injected statement whose client has gone. Postgres by
// itself would run it to its end before it looks at its connection, and a
// refresh holds locks meanwhile that the next one waits for.
func (s *session) cancelOurs() {
	s.mu.Lock()
	running, key := s.running, s.cancelKey
	s.mu.Unlock()
	if !running || key == nil {
		return
	}
	request := binary.BigEndian.AppendUint32(nil, uint32(8+len(key)))
	request = binary.BigEndian.AppendUint32(request, cancelRequestCode)
	request = append(request, key...)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), lastWord)
	defer cancel()
	if err := s.server.config.Upstream.forwardCancel(ctx, request); err != nil {
		s.log.Warn("could not cancel the statement of a client that has gone", zap.Error(err))
	}
}
