package rewrite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// quartzField is the range and the names of one field of a Quartz cron
// expression.
type quartzField struct {
	name        string
	least, most int
	names       []string // of the values from least on
	day         bool     // takes ?, L and W or #
}

var quartzFields = []quartzField{
	{name: "second", least: 0, most: 59},
	{name: "minute", least: 0, most: 59},
	{name: "hour", least: 0, most: 23},
	{name: "day of month", least: 1, most: 31, day: true},
	{name: "month", least: 1, most: 12, names: strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")},
	{name: "day of week", least: 1, most: 7, names: strings.Fields("SUN MON TUE WED THU FRI SAT"), day: true},
	{name: "year", least: 1970, most: 2099},
}

const (
	dayOfMonth = 3
	dayOfWeek  = 5
)

// checkQuartz returns what is wrong with a Quartz cron expression: six fields,
// seconds first, or seven with a year.
func checkQuartz(cron string) error {
	fields := strings.Fields(strings.ToUpper(cron))
	if len(fields) != 6 && len(fields) != 7 {
		return fmt.Errorf("it has %d fields instead of 6 or 7", len(fields))
	}
	for i, field := range fields {
		for item := range strings.SplitSeq(field, ",") {
			if !quartzFields[i].accepts(item, i, field == item) {
				return fmt.Errorf("%q is no %s", excerpt(item), quartzFields[i].name)
			}
		}
	}
	if (fields[dayOfMonth] == "?") == (fields[dayOfWeek] == "?") {
		return errors.New("one of day of month and day of week is to be ?, the other not")
	}
	return nil
}

// accepts reports that item is valid in field i; alone says that it is all of
// the field.
func (f quartzField) accepts(item string, i int, alone bool) bool {
	if f.day && alone && item == "?" {
		return true
	}
	switch {
	case i == dayOfMonth && f.acceptsDayOfMonth(item), i == dayOfWeek && f.acceptsDayOfWeek(item):
		return true
	}
	values, step, stepped := strings.Cut(item, "/")
	if stepped {
		n, err := strconv.Atoi(step)
		if err != nil || step[0] == '+' || n < 1 || n > f.most {
			return false
		}
	}
	if values == "*" || values == "" && stepped {
		return true
	}
	from, to, ranged := strings.Cut(values, "-")
	return f.isValue(from) && (!ranged || f.isValue(to))
}

// acceptsDayOfMonth knows L (the last day), L-n, LW and nW (the weekday next to
// the nth).
func (f quartzField) acceptsDayOfMonth(item string) bool {
	if item == "L" || item == "LW" {
		return true
	}
	if before, ok := strings.CutPrefix(item, "L-"); ok {
		return f.isValue(strings.TrimSuffix(before, "W"))
	}
	day, ok := strings.CutSuffix(item, "W")
	return ok && f.isValue(day)
}

// acceptsDayOfWeek knows L (Saturday), nL (the month's last n) and n#k (its
// kth).
func (f quartzField) acceptsDayOfWeek(item string) bool {
	if item == "L" {
		return true
	}
	if day, ok := strings.CutSuffix(item, "L"); ok {
		return f.isValue(day)
	}
	day, nth, ok := strings.Cut(item, "#")
	return ok && f.isValue(day) && len(nth) == 1 && nth >= "1" && nth <= "5"
}

// isValue reports that text is a number in range, or a name.
func (f quartzField) isValue(text string) bool {
	for _, name := range f.names {
		if text == name {
			return true
		}
	}
	n, err := strconv.Atoi(text)
	return err == nil && isDigit(text[0]) && n >= f.least && n <= f.most
}
