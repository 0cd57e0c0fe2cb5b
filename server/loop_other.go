//go:build !linux

package server

import (
	"errors"

	"go.uber.org/zap"
)

// loops does not exist here: goroutines relay every session.
type loops struct{}

type polled struct{}

func startLoops(*zap.Logger) (*loops, error) { return nil, nil }

func (*loops) stop() {}

func (*loops) traffic() []*traffic { return nil }

func (s *Server) mayPoll(*session) bool { return false }

func (s *session) moveToLoop() bool { return false }

func send(int, []byte) (int, error) { return 0, errors.ErrUnsupported }
