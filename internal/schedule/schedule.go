package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Schedule says when a streaming table is refreshed. One that is triggered by
// changes has no times: it is none of these.
type Schedule struct {
	every time.Duration
	cron  *cron
	zone  *time.Location
}

// The stored texts, as DESCRIBE shows them.
const (
	everyWord = "EVERY "
	cronWord  = "CRON "
	zoneWords = " AT TIME ZONE "
)

// everyUnits are the units of EVERY. A day is 24 hours: what is to run at a time
// of day is a cron expression.
var everyUnits = map[string]time.Duration{
	"HOURS": time.Hour,
	"DAYS":  24 * time.Hour,
	"WEEKS": 7 * 24 * time.Hour,
}

// mostUnits is more than rewrite lets anybody set, and few enough for a
// time.Duration.
const mostUnits = 999

// Parse reads a schedule as it is stored. An error of its cron expression is a
// [*CronError], one of its time zone a [*ZoneError].
func Parse(stored string) (Schedule, error) {
	if rest, ok := strings.CutPrefix(stored, cronWord); ok {
		if text, zone, ok := strings.Cut(rest, zoneWords); ok {
			return parseCron(unquoted(text), unquoted(zone))
		}
	}
	if rest, ok := strings.CutPrefix(stored, everyWord); ok {
		number, unit, _ := strings.Cut(rest, " ")
		if n, err := strconv.Atoi(number); err == nil && n > 0 && n <= mostUnits && everyUnits[unit] != 0 {
			return Schedule{every: time.Duration(n) * everyUnits[unit]}, nil
		}
	}
	return Schedule{}, fmt.Errorf("a stored schedule cannot be read: %q", stored)
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

// Next is the first time due after a moment; the zero time when there is none
// any more. EVERY counts from the anchor, which is when
// the schedule was set, so that its times do not drift.
func (s Schedule) Next(anchor, after time.Time) time.Time {
	if s.cron != nil {
		return s.cron.next(s.zone, after)
	}
	if after.Before(anchor) {
		after = anchor
	}
	return after.Add(s.every - after.Sub(anchor)%s.every)
}
