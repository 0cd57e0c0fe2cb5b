package cli

import (
	"context"
	"errors"
	"time"

	"github.com/rwproxy/rwproxy/internal/config"
)

// errInterrupted is returned when the program is told to stop before it is
// ready.
var errInterrupted = errors.New("interrupted while starting")

// Run runs the proxy until a signal.
func (c *serveCommand) Run(ctx context.Context, p *program) error {
	settings, err := config.Load(c.Flags, p.lookup)
	if err != nil {
		return err
	}
	s := notify(ctx)
	defer s.release()
	i, err := start(s.first, settings, newLogger(p.stderr, settings.LogLevel, settings.LogFormat))
	if err != nil {
		if s.first.Err() != nil {
			return errInterrupted
		}
		return err
	}
	return untilStopped(s, i, settings.ShutdownTimeout)
}

// untilStopped lets an instance run until the first signal or until a part of
// it fails, and then stops it.
func untilStopped(s *signals, i *instance, timeout time.Duration) error {
	for {
		select {
		case <-s.first.Done():
			drain(s, i, timeout)
			return nil
		case err := <-i.failed:
			drain(s, i, timeout)
			return err
		case <-s.hangup:
			i.reload()
		}
	}
}

// drain stops an instance. Running statements get the timeout to finish, and
// less on a second signal.
func drain(s *signals, i *instance, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(s.second, timeout)
	defer cancel()
	i.log.Info("stopping")
	i.stop(ctx)
	i.log.Info("stopped")
}
