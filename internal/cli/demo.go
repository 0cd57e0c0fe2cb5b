package cli

import (
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/rwproxy/rwproxy/internal/config"
)

// demonstration shows on a running instance what flows do, in plain words, and
// returns when everything has been shown. Its context ends when the user
// interrupts it.
type demonstration func(ctx context.Context, i *instance, out io.Writer) error

// Run starts a proxy, shows what flows do and, unless it is to end then, lets
// it run until a signal. Without a data directory or an upstream of the user's
// it works in a temporary directory, so that every demo begins afresh.
func (c *demoCommand) Run(ctx context.Context, p *program) error {
	if c.LogLevel == nil {
		quiet := "warn" // its words are not to be mixed with records
		c.LogLevel = &quiet
	}
	settings, err := config.Load(c.Flags, p.lookup)
	if err != nil {
		return err
	}
	s := notify(ctx)
	defer s.release()
	if _, inEnvironment := p.lookup("RWPROXY_DATA_DIR"); c.DataDir == nil && !inEnvironment && settings.Upstream == nil {
		directory, err := temporaryDirectory()
		if err != nil {
			return err
		}
		defer os.RemoveAll(directory)
		settings.DataDir = filepath.Join(directory, "data")
	}
	i, err := start(s.first, settings, newLogger(p.stderr, settings.LogLevel, settings.LogFormat))
	if err != nil {
		if s.first.Err() != nil {
			return errInterrupted
		}
		return err
	}
	err = p.demonstrate(s.first, i, p.stdout)
	if s.first.Err() != nil {
		err = nil // whoever ends a demo half-way has seen enough
	}
	if err != nil || c.Once {
		drain(s, i, settings.ShutdownTimeout)
		return err
	}
	sayHowToConnect(i, p.stdout)
	return untilStopped(s, i, settings.ShutdownTimeout)
}

// temporaryDirectory returns a directory that the server's user may enter even
// when that is not the user we are.
func temporaryDirectory() (string, error) {
	directory, err := os.MkdirTemp("", "rwproxy-demo-")
	if err != nil {
		return "", err
	}
	return directory, os.Chmod(directory, 0o755)
}
