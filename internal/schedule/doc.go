// Package schedule knows when a streaming table is due: it reads the schedule
// that is stored of it, and computes its next time.
//
// It is pure: it reads no clock and nothing from outside but the rules of time
// zones. It may import the standard library alone.
//
// A cron expression means what it means to Quartz, but for days on which clocks
// are changed. Quartz leaves out a time that clocks skip; here it runs as much
// later as the clocks went forward, so that nothing is due and does not run. A
// time that exists twice runs the second time, as in Quartz, unless the schedule
// is of every hour: that runs in both, so that it makes no pause.
package schedule
