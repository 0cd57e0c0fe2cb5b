package server

import "time"

// Metrics is told what happens, for counters and histograms. Its methods are
// called from many goroutines and must not block.
type Metrics interface {
	SessionStarted()
	SessionEnded()
	// StatementRun reports an intercepted statement by its command tag;
	// sqlState is "" when it succeeded.
	StatementRun(tag string, duration time.Duration, sqlState string)
}

type noMetrics struct{}

func (noMetrics) SessionStarted()                            {}
func (noMetrics) SessionEnded()                              {}
func (noMetrics) StatementRun(string, time.Duration, string) {}
