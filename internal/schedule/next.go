package schedule

import "time"

// next is the first time that matches after a moment, the zero time when there
// is none any more.
//
// It goes from change to change of the zone's offset: between two of them wall
// clocks run as time does.
func (c *cron) next(zone *time.Location, after time.Time) time.Time {
	everyHour := len(c.hours) == 24
	for at := after.Truncate(time.Second).Add(time.Second); at.Year() <= lastYear; {
		_, change := at.In(zone).ZoneBounds()
		if !change.IsZero() && !change.After(at) {
			// time is wrong on the last day of leap years to come.
			change = at.AddDate(0, 0, 1)
		}
		offset := offsetAt(zone, at)
		until := wall(at, offset).AddDate(lastYear, 0, 0)
		if !change.IsZero() {
			until = wall(change, offset)
			if later := offsetAt(zone, change); later < offset && !everyHour {
				// These hours come again.
				until = wall(change, later)
			}
		}
		due, found := c.nextWall(wall(at, offset), until)
		due = due.Add(-offset)
		if skipped, ok := c.nextSkipped(zone, at, offset); ok && (!found || skipped.Before(due)) {
			due, found = skipped, true
		}
		if found {
			return due.In(zone)
		}
		if change.IsZero() {
			break
		}
		at = change
	}
	return time.Time{}
}

// nextSkipped is the first time from a moment on that runs later because clocks
// skipped it when they came to this offset.
func (c *cron) nextSkipped(zone *time.Location, at time.Time, offset time.Duration) (time.Time, bool) {
	change, _ := at.In(zone).ZoneBounds()
	if change.IsZero() {
		return time.Time{}, false
	}
	before := offsetAt(zone, change.Add(-time.Second))
	due, found := c.nextWall(wall(at, before), wall(change, offset))
	return due.Add(-before), found
}

func offsetAt(zone *time.Location, at time.Time) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}

// wall is what wall clocks show, as a time in UTC.
func wall(at time.Time, offset time.Duration) time.Time { return at.UTC().Add(offset) }

// nextWall is the first matching time from one on, before another.
func (c *cron) nextWall(from, until time.Time) (time.Time, bool) {
	for t := from; t.Before(until) && t.Year() <= lastYear; {
		year, month, day := t.Date()
		hour, minute, second := t.Clock()
		switch {
		case !c.years[year]:
			t = date(year+1, time.January, 1)
		case !c.months[int(month)]:
			t = date(year, month+1, 1)
		case !c.days.match(t):
			t = date(year, month, day+1)
		case !c.hours[hour]:
			t = t.Truncate(time.Hour).Add(time.Hour)
		case !c.minutes[minute]:
			t = t.Truncate(time.Minute).Add(time.Minute)
		case !c.seconds[second]:
			t = t.Add(time.Second)
		default:
			return t, true
		}
	}
	return time.Time{}, false
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// match reports that the day of a time matches.
func (d days) match(t time.Time) bool {
	year, month, day := t.Date()
	lastDay := date(year, month+1, 0).Day()
	switch {
	case d.ofWeek != nil:
		nth := (day-1)/7 + 1
		isLast := day+7 > lastDay
		return d.ofWeek[int(t.Weekday())+1] && (d.nth == 0 || d.nth == nth || d.nth < 0 && isLast)
	case !d.last && !d.nearestWeekday:
		return d.ofMonth[day]
	}
	wanted := lastDay - d.beforeLast
	for n := range d.ofMonth {
		wanted = n
	}
	if wanted < 1 || wanted > lastDay {
		return false
	}
	if d.nearestWeekday {
		wanted = nearestWeekday(date(year, month, wanted), lastDay)
	}
	return day == wanted
}

// nearestWeekday is the day from Monday to Friday next to one, in its month.
func nearestWeekday(t time.Time, lastDay int) int {
	day := t.Day()
	switch {
	case t.Weekday() == time.Saturday && day == 1:
		return day + 2
	case t.Weekday() == time.Saturday:
		return day - 1
	case t.Weekday() == time.Sunday && day == lastDay:
		return day - 2
	case t.Weekday() == time.Sunday:
		return day + 1
	}
	return day
}
