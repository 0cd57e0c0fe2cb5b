package server

import (
	"context"
	"io"
)

// forwardCancel hands a CancelRequest to Postgres, whose keys clients hold, so
// that any proxy in front of the same Postgres can serve it. It returns once
// Postgres has acted on it, which it shows by closing the connection.
func (s *Server) forwardCancel(ctx context.Context, request []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.ConnectTimeout)
	defer cancel()
	conn, err := s.config.Upstream.dial(ctx)
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
