package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signals are what the program is told from outside while it runs.
type signals struct {
	first  context.Context // ends with the first SIGINT or SIGTERM: drain
	second context.Context // ends with the second: cut
	hangup chan struct{}   // gets one value for SIGHUPs that nobody has seen yet

	release context.CancelFunc // ends everything and gives the signals back
}

// notify takes the signals over from the runtime until release is called. The
// end of ctx counts as the first signal.
func notify(ctx context.Context) *signals {
	first, cancelFirst := context.WithCancel(ctx)
	second, cancelSecond := context.WithCancel(context.WithoutCancel(ctx))
	s := &signals{first: first, second: second, hangup: make(chan struct{}, 1)}
	arrived := make(chan os.Signal, 4)
	signal.Notify(arrived, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	s.release = func() {
		signal.Stop(arrived)
		cancelFirst()
		cancelSecond()
	}
	go func() {
		for {
			select {
			case <-second.Done():
				return
			case number := <-arrived:
				switch {
				case number == syscall.SIGHUP:
					select {
					case s.hangup <- struct{}{}:
					default:
					}
				case first.Err() == nil:
					cancelFirst()
				default:
					cancelSecond()
				}
			}
		}
	}()
	return s
}
