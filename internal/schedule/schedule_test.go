package schedule

import (
	"errors"
	"testing"
	"time"
)

// runs are the next times of a schedule, as wall clocks in its zone show them.
func runs(t *testing.T, stored, after string, count int) []string {
	t.Helper()
	s, err := Parse(stored)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, after)
	if err != nil {
		t.Fatal(err)
	}
	var times []string
	for range count {
		if at = s.Next(time.Time{}, at); at.IsZero() {
			return append(times, "never")
		}
		times = append(times, at.Format("2006-01-02 15:04:05 -07:00"))
	}
	return times
}

func TestCronAroundChangesOfClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stored, after string
		want                []string
	}{
		{
			"a time that is skipped runs as much later", "CRON '0 30 2 * * ?' AT TIME ZONE 'Europe/Berlin'", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29 03:30:00 +02:00", "2026-03-30 02:30:00 +02:00"},
		},
		{
			"a time that exists twice runs the second time", "CRON '0 30 2 * * ?' AT TIME ZONE 'Europe/Berlin'", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25 02:30:00 +01:00", "2026-10-26 02:30:00 +01:00"},
		},
		{
			"a schedule of every hour runs in both", "CRON '0 0/30 * * * ?' AT TIME ZONE 'Europe/Berlin'", "2026-10-25T00:00:00Z",
			[]string{
				"2026-10-25 02:30:00 +02:00", "2026-10-25 02:00:00 +01:00", "2026-10-25 02:30:00 +01:00",
				"2026-10-25 03:00:00 +01:00",
			},
		},
		{
			"a skipped hour and the next one are one", "CRON '0 0 2,3 * * ?' AT TIME ZONE 'America/New_York'", "2026-03-08T05:00:00Z",
			[]string{"2026-03-08 03:00:00 -04:00", "2026-03-09 02:00:00 -04:00", "2026-03-09 03:00:00 -04:00"},
		},
		{
			"skipped times keep their order with those that are there", "CRON '0 45,15 2-3 * * ?' AT TIME ZONE 'America/New_York'",
			"2026-03-08T05:00:00Z",
			[]string{"2026-03-08 03:15:00 -04:00", "2026-03-08 03:45:00 -04:00", "2026-03-09 02:15:00 -04:00"},
		},
		{
			"clocks that go forward by half an hour", "CRON '0 15 2 * * ?' AT TIME ZONE 'Australia/Lord_Howe'", "2026-10-03T00:00:00Z",
			[]string{"2026-10-04 02:45:00 +11:00", "2026-10-05 02:15:00 +11:00"},
		},
		{
			"clocks that go back by half an hour", "CRON '0 45 1 * * ?' AT TIME ZONE 'Australia/Lord_Howe'", "2026-04-04T00:00:00Z",
			[]string{"2026-04-05 01:45:00 +10:30", "2026-04-06 01:45:00 +10:30"},
		},
		{
			"a day that there was not", "CRON '0 0 12 * * ?' AT TIME ZONE 'Pacific/Apia'", "2011-12-29T12:00:00Z",
			[]string{"2011-12-29 12:00:00 -10:00", "2011-12-31 12:00:00 +14:00"},
		},
		{
			"a moment before clocks are changed", "CRON '0 0 3 * * ?' AT TIME ZONE 'Europe/Berlin'", "2026-03-29T00:59:59Z",
			[]string{"2026-03-29 03:00:00 +02:00"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i, got := range runs(t, c.stored, c.after, len(c.want)) {
				if got != c.want[i] {
					t.Errorf("run %d is at %s, want %s", i+1, got, c.want[i])
				}
			}
		})
	}
}

func TestCronAtTheEndsOfMonthsAndYears(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, stored, after string
		want                []string
	}{
		{
			"29 February", "CRON '0 0 0 29 2 ?' AT TIME ZONE 'UTC'", "2096-02-29T00:00:00Z",
			[]string{"never"},
		},
		{
			"29 February on a Friday", "CRON '0 0 0 ? 2 FRI#5' AT TIME ZONE 'UTC'", "2026-01-01T00:00:00Z",
			[]string{"2036-02-29 00:00:00 +00:00"}, // its next fifth Friday is in 2064
		},
		{
			"the last day of February", "CRON '0 0 0 L 2 ?' AT TIME ZONE 'UTC'", "2027-01-01T00:00:00Z",
			[]string{"2027-02-28 00:00:00 +00:00", "2028-02-29 00:00:00 +00:00"},
		},
		{
			"the last second of a year", "CRON '59 59 23 31 12 ?' AT TIME ZONE 'America/New_York'", "2026-12-31T23:59:59Z",
			[]string{"2026-12-31 23:59:59 -05:00", "2027-12-31 23:59:59 -05:00"},
		},
		{
			"the last weekday of a month", "CRON '0 0 0 LW * ?' AT TIME ZONE 'UTC'", "2026-05-01T00:00:00Z",
			[]string{"2026-05-29 00:00:00 +00:00", "2026-06-30 00:00:00 +00:00"},
		},
		{
			"a time within a second", "CRON '* * * * * ?' AT TIME ZONE 'UTC'", "2026-05-01T00:00:00.9Z",
			[]string{"2026-05-01 00:00:01 +00:00"},
		},
		{"no such day", "CRON '0 0 0 31 2 ?' AT TIME ZONE 'Europe/Berlin'", "2026-05-01T00:00:00Z", []string{"never"}},
		{"a year that is over", "CRON '0 0 0 1 1 ? 2025' AT TIME ZONE 'Europe/Berlin'", "2026-05-01T00:00:00Z", []string{"never"}},
		{
			"the last day of a leap year to come, in a zone with rules", "CRON '0 0 0 1 1 ?' AT TIME ZONE 'Africa/Cairo'", "2040-12-31T02:00:00Z",
			[]string{"2041-01-01 00:00:00 +02:00"},
		},
		{"a fixed offset", "CRON '0 0 6 * * ?' AT TIME ZONE '<+05:30>-05:30'", "2026-05-01T00:00:00Z", []string{"2026-05-01 06:00:00 +05:30"}},
		{"a fixed offset with the sign of POSIX", "CRON '0 0 6 * * ?' AT TIME ZONE 'UTC+3'", "2026-05-01T00:00:00Z", []string{"2026-05-01 06:00:00 -03:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i, got := range runs(t, c.stored, c.after, len(c.want)) {
				if got != c.want[i] {
					t.Errorf("run %d is at %s, want %s", i+1, got, c.want[i])
				}
			}
		})
	}
}

func TestEveryCountsFromItsAnchor(t *testing.T) {
	t.Parallel()
	anchor := time.Date(2026, 3, 28, 10, 17, 42, 0, time.UTC)
	for _, c := range []struct {
		stored string
		after  time.Duration
		want   time.Duration
	}{
		{"EVERY 1 HOURS", 0, time.Hour},
		{"EVERY 1 HOURS", time.Hour - 1, time.Hour},
		{"EVERY 1 HOURS", time.Hour, 2 * time.Hour},
		{"EVERY 5 HOURS", 101 * time.Hour, 105 * time.Hour},
		{"EVERY 1 HOURS", -100 * time.Hour, time.Hour},
		{"EVERY 1 DAYS", 30 * time.Hour, 48 * time.Hour},
		{"EVERY 2 WEEKS", 0, 14 * 24 * time.Hour},
	} {
		s, err := Parse(c.stored)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Next(anchor, anchor.Add(c.after)).Sub(anchor); got != c.want {
			t.Errorf("%s, %s after it was set: next after %s, want %s", c.stored, c.after, got, c.want)
		}
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{
		"", "EVERY", "EVERY x DAYS", "EVERY 0 DAYS", "EVERY 1 DAY", "EVERY 99999999999999999999 DAYS", "EVERY 281474976710656 WEEKS", "EVERY 16000 WEEKS", "TRIGGER ON UPDATE",
		"CRON '0 0 0 * * ?'", "CRON",
	} {
		if s, err := Parse(stored); err == nil {
			t.Errorf("%q is %+v", stored, s)
		}
	}
	for _, zone := range []string{"", "Local", "Mars/Olympus", "../etc/passwd", "CET-1CEST,M3.5.0,M10.5.0/3"} {
		_, err := Parse("CRON '0 0 0 * * ?' AT TIME ZONE '" + zone + "'")
		var zoneError *ZoneError
		if !errors.As(err, &zoneError) || zoneError.Zone != zone {
			t.Errorf("time zone %q: %v", zone, err)
		}
	}
}
