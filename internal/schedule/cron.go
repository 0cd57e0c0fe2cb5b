package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// cron is a Quartz cron expression.
type cron struct {
	seconds, minutes, hours values
	months, years           values
	days                    days
}

// values are the values of a field that match.
type values map[int]bool

// days are the days that match: one of the two fields has none.
type days struct {
	ofMonth, ofWeek values
	// Of the month: the last day, or as many days before it.
	last       bool
	beforeLast int
	// The weekday next to the day that ofMonth or last says, in the same month.
	nearestWeekday bool
	// Of the week: the nth in the month, -1 for the last one, 0 for each.
	nth int
}

// field is the range and the names of one field.
type field struct {
	name        string
	least, most int
	names       []string // of the values from least on
	cyclic      bool     // a range may run from a later value to an earlier one
}

var fields = []field{
	{name: "second", least: 0, most: 59, cyclic: true},
	{name: "minute", least: 0, most: 59, cyclic: true},
	{name: "hour", least: 0, most: 23, cyclic: true},
	{name: "day of month", least: 1, most: 31, cyclic: true},
	{name: "month", least: 1, most: 12, cyclic: true, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
	{name: "day of week", least: 1, most: 7, cyclic: true, names: strings.Fields("SUN MON TUE WED THU FRI SAT")},
	{name: "year", least: 1970, most: lastYear},
}

const (
	dayOfMonth = 3
	dayOfWeek  = 5

	lastYear = 2099
	// furthestBack is how far L-n goes back from the last day of the month.
	furthestBack = 30
	// weeksOfMonth is the greatest n of day#n.
	weeksOfMonth = 5
)

// readCron reads a Quartz cron expression: six fields, seconds first, or seven
// with a year. Its errors are clauses.
func readCron(text string) (*cron, error) {
	texts := strings.Fields(strings.ToUpper(text))
	switch len(texts) {
	case 6:
		texts = append(texts, "*")
	case 7:
	default:
		return nil, fmt.Errorf("it has %d fields instead of 6 or 7", len(texts))
	}
	if (texts[dayOfMonth] == "?") == (texts[dayOfWeek] == "?") {
		return nil, errors.New("one of day of month and day of week is to be ?, the other not")
	}
	c := &cron{}
	var err error
	if c.days, err = readDays(texts[dayOfMonth], texts[dayOfWeek]); err != nil {
		return nil, err
	}
	for i, into := range []*values{0: &c.seconds, 1: &c.minutes, 2: &c.hours, 4: &c.months, 6: &c.years} {
		if into == nil {
			continue
		}
		if *into, err = fields[i].read(texts[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// read reads a list of values, ranges and steps.
func (f field) read(text string) (values, error) {
	read := values{}
	for item := range strings.SplitSeq(text, ",") {
		if err := f.add(item, read); err != nil {
			return nil, err
		}
	}
	return read, nil
}

// add reads n, n-m, *, and each of these with /step.
func (f field) add(item string, to values) error {
	wrong := fmt.Errorf("%q is no %s", excerpt(item), f.name)
	span, stepText, stepped := strings.Cut(item, "/")
	step := 1
	if stepped {
		var ok bool
		if step, ok = number(stepText); !ok || step < 1 || step > f.most {
			return wrong
		}
	}
	first, last := f.least, f.most
	if span != "*" && (span != "" || !stepped) {
		from, until, ranged := strings.Cut(span, "-")
		start, ok := f.value(from)
		if !ok {
			return wrong
		}
		first = start
		switch {
		case ranged:
			if last, ok = f.value(until); !ok || last < first && !f.cyclic {
				return wrong
			}
		case !stepped:
			last = first
		}
		if stepped && slices.ContainsFunc([]string{from, until}, func(s string) bool { return slices.Contains(f.names, s) }) {
			return fmt.Errorf("%q has a step after a name, which Quartz ignores: write the %s as a number", excerpt(item), f.name)
		}
	}
	cycle := f.most - f.least + 1
	if last < first {
		last += cycle
	}
	for v := first; v <= last; v += step {
		to[f.least+(v-f.least)%cycle] = true
	}
	return nil
}

// value reads a number in range, or a name.
func (f field) value(text string) (int, bool) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.least + i, true
	}
	n, ok := number(text)
	return n, ok && n >= f.least && n <= f.most
}

// number reads a number without a sign.
func number(text string) (int, bool) {
	n, err := strconv.Atoi(text)
	return n, err == nil && text[0] >= '0' && text[0] <= '9'
}

// readDays reads the fields of the two days, of which one is "?".
func readDays(ofMonth, ofWeek string) (d days, err error) {
	if ofMonth == "?" {
		return readDaysOfWeek(ofWeek)
	}
	return readDaysOfMonth(ofMonth)
}

// readDaysOfMonth knows L (the last day), L-n, and with W the weekday next to
// one of them or to a day.
func readDaysOfMonth(text string) (d days, err error) {
	f := fields[dayOfMonth]
	day, nearest := strings.CutSuffix(text, "W")
	back, before := strings.CutPrefix(day, "L-")
	switch {
	case day == "L":
		d.last = true
	case before:
		var ok bool
		if d.beforeLast, ok = number(back); !ok || d.beforeLast > furthestBack {
			return d, fmt.Errorf("%q is no %s", excerpt(text), f.name)
		}
		d.last = true
	case strings.Contains(text, ",") && strings.ContainsAny(text, "LW"):
		return d, fmt.Errorf("%q mixes L or W with other days", excerpt(text))
	case nearest:
		n, ok := f.value(day)
		if !ok {
			return d, fmt.Errorf("%q is no %s", excerpt(text), f.name)
		}
		d.ofMonth = values{n: true}
	default:
		d.ofMonth, err = f.read(text)
	}
	d.nearestWeekday = nearest
	return d, err
}

// readDaysOfWeek knows L (Saturday), nL (the month's last n) and n#k (its kth).
func readDaysOfWeek(text string) (d days, err error) {
	f := fields[dayOfWeek]
	day, nth, numbered := strings.Cut(text, "#")
	if before, last := strings.CutSuffix(text, "L"); last && before != "" {
		day, d.nth = before, -1
	} else if text == "L" {
		day = "SAT"
	}
	switch {
	case strings.Contains(text, ",") && (strings.Contains(text, "#") || d.nth < 0):
		return d, fmt.Errorf("%q mixes L or # with other days", excerpt(text))
	case numbered:
		var ok bool
		if d.nth, ok = number(nth); !ok || d.nth < 1 || d.nth > weeksOfMonth {
			return d, fmt.Errorf("%q is no %s", excerpt(text), f.name)
		}
	case d.nth == 0:
		d.ofWeek, err = f.read(day)
		return d, err
	}
	n, ok := f.value(day)
	if !ok {
		return d, fmt.Errorf("%q is no %s", excerpt(text), f.name)
	}
	d.ofWeek = values{n: true}
	return d, nil
}

// excerpt is a text that is short enough for a message.
func excerpt(text string) string {
	const most = 20
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
