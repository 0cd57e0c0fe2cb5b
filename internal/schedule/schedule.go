package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schedule says when a streaming table is refreshed.
type Schedule struct {
	trigger bool
	// every is the time between two runs, of a trigger at least.
	every time.Duration
	cron  *cron
	zone  *time.Location
}

// The stored texts, as DESCRIBE shows them.
const (
	everyWord   = "EVERY "
	cronWord    = "CRON "
	zoneWords   = " AT TIME ZONE "
	triggerWord = "TRIGGER ON UPDATE"
	mostWords   = triggerWord + " AT MOST EVERY INTERVAL "
	secondWord  = " SECOND"
)

// everyUnits are the units of EVERY. A day is 24 hours: what is to run at a time
// of day is a cron expression.
var everyUnits = map[string]time.Duration{
	"HOURS": time.Hour,
	"DAYS":  24 * time.Hour,
	"WEEKS": 7 * 24 * time.Hour,
}

// Parse reads a schedule as it is stored. An error of its cron expression is a
// [*CronError], one of its time zone a [*ZoneError].
func Parse(stored string) (Schedule, error) {
	unreadable := fmt.Errorf("a stored schedule cannot be read: %q", stored)
	if rest, ok := strings.CutPrefix(stored, cronWord); ok {
		text, zone, ok := strings.Cut(rest, zoneWords)
		if !ok {
			return Schedule{}, unreadable
		}
		return parseCron(unquoted(text), unquoted(zone))
	}
	if rest, ok := strings.CutPrefix(stored, everyWord); ok {
		number, unit, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || everyUnits[unit] == 0 {
			return Schedule{}, unreadable
		}
		return Schedule{every: time.Duration(n) * everyUnits[unit]}, nil
	}
	if stored == triggerWord {
		return Schedule{trigger: true}, nil
	}
	number, isInterval := strings.CutPrefix(stored, mostWords)
	number, isSeconds := strings.CutSuffix(number, secondWord)
	seconds, err := strconv.Atoi(number)
	if !isInterval || !isSeconds || err != nil || seconds < 1 {
		return Schedule{}, unreadable
	}
	return Schedule{trigger: true, every: time.Duration(seconds) * time.Second}, nil
}

// unquoted is the value of a string literal without escapes.
func unquoted(literal string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(literal, "'"), "'"), "''", "'")
}

func parseCron(text, zone string) (Schedule, error) {
	c, err := readCron(text)
	if err != nil {
		return Schedule{}, &CronError{Reason: err.Error()}
	}
	location, err := loadZone(zone)
	if err != nil {
		return Schedule{}, &ZoneError{Zone: zone}
	}
	return Schedule{cron: c, zone: location}, nil
}

// CronError says what is wrong with a cron expression.
type CronError struct {
	Reason string // a clause
}

func (e *CronError) Error() string { return "invalid cron expression: " + e.Reason }

// ZoneError is a time zone whose rules are not known.
type ZoneError struct {
	Zone string
}

func (e *ZoneError) Error() string {
	return fmt.Sprintf("the rules of time zone %q are not known", e.Zone)
}

// IsTrigger reports that changes of the sources make a refresh due, and no time.
func (s Schedule) IsTrigger() bool { return s.trigger }

// AtMostEvery is the least time between two refreshes of a trigger, 0 for none.
func (s Schedule) AtMostEvery() time.Duration {
	if !s.trigger {
		return 0
	}
	return s.every
}

// Next is the first time due after a moment; the zero time when there is none
// any more, as for every trigger. EVERY counts from the anchor, which is when
// the schedule was set, so that its times do not drift.
func (s Schedule) Next(anchor, after time.Time) time.Time {
	switch {
	case s.trigger:
		return time.Time{}
	case s.cron != nil:
		return s.cron.next(s.zone, after)
	}
	if after.Before(anchor) {
		after = anchor
	}
	return after.Add(s.every - after.Sub(anchor)%s.every)
}
