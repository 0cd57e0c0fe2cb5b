package rewrite

import (
	"fmt"
	"strconv"
	"strings"
)

// everyUnits are the units of SCHEDULE EVERY and how many of them are allowed.
var everyUnits = []struct {
	singular, plural string
	most             int
}{
	{"HOUR", "HOURS", 72},
	{"DAY", "DAYS", 31},
	{"WEEK", "WEEKS", 8},
}

// readSchedule reads SCHEDULE or TRIGGER ON UPDATE.
func readSchedule(p *parser, s *CreateStreamingTable) error {
	schedule, err := p.schedule()
	s.Schedule = &schedule
	return err
}

func (p *parser) schedule() (Schedule, error) {
	at := p.tokens[p.i].Start
	s, err := p.scheduleOrTrigger()
	s.Offset = at
	return s, err
}

func (p *parser) scheduleOrTrigger() (s Schedule, err error) {
	if p.accept("TRIGGER") {
		s.Text, err = p.trigger()
		return s, err
	}
	p.i++ // SCHEDULE
	p.accept("REFRESH")
	switch {
	case p.accept("EVERY"):
		s.Text, err = p.every()
		return s, err
	case p.accept("CRON"):
		return p.cron()
	}
	return s, p.expected(p.i, "EVERY or CRON")
}

// every reads n unit.
func (p *parser) every() (string, error) {
	at := p.i
	number, err := p.wholeNumber()
	if err != nil {
		return "", err
	}
	for _, unit := range everyUnits {
		if !p.accept(unit.singular) && !p.accept(unit.plural) {
			continue
		}
		if number < 1 || number > unit.most {
			return "", p.errorAt(at, invalidParameterCode, fmt.Sprintf("a schedule of every %d %s is out of range", number,
				strings.ToLower(unit.plural)), "", fmt.Sprintf("The number of %s is 1 to %d.", strings.ToLower(unit.plural), unit.most))
		}
		return "EVERY " + strconv.Itoa(number) + " " + unit.plural, nil
	}
	expected := p.expected(p.i, "HOURS, DAYS or WEEKS")
	expected.Hint = "Any other schedule is a cron expression, such as SCHEDULE CRON '0 0/15 * * * ?'."
	return "", expected
}

// wholeNumber reads an integer of at most nine digits.
func (p *parser) wholeNumber() (int, error) {
	number, err := strconv.Atoi(p.text(p.i))
	if !p.kindAt(p.i, Number) || err != nil || number > 999_999_999 {
		return 0, p.expected(p.i, "a whole number")
	}
	p.i++
	return number, nil
}

// cron reads 'quartz' [AT TIME ZONE 'zone'].
func (p *parser) cron() (Schedule, error) {
	at := p.i
	cron, err := p.stringValue("a cron expression as a string")
	if err != nil {
		return Schedule{}, err
	}
	s := Schedule{
		Text: "CRON " + QuoteLiteral(strings.Join(strings.Fields(cron), " ")), Cron: true, CronOffset: p.tokens[at].Start,
	}
	if !p.accept("AT", "TIME", "ZONE") {
		return s, nil
	}
	if p.wordsAt(p.i, "LOCAL") {
		return s, p.unsupported(p.i, "AT TIME ZONE LOCAL", "Name the time zone: AT TIME ZONE 'Europe/Berlin'.")
	}
	if !p.atEnd() {
		s.ZoneOffset = p.tokens[p.i].Start
	}
	s.Zone, err = p.stringValue("a time zone as a string")
	return s, err
}

// trigger reads ON UPDATE [AT MOST EVERY interval].
func (p *parser) trigger() (string, error) {
	if err := p.expect("ON", "UPDATE"); err != nil {
		return "", err
	}
	if !p.accept("AT") {
		return "TRIGGER ON UPDATE", nil
	}
	if err := p.expect("MOST", "EVERY"); err != nil {
		return "", err
	}
	at := p.i
	seconds, err := p.interval()
	if err != nil {
		return "", err
	}
	if seconds < 60 {
		return "", p.errorAt(at, invalidParameterCode, "the interval of a trigger is too short", "", "It is at least one minute.")
	}
	return "TRIGGER ON UPDATE AT MOST EVERY INTERVAL " + strconv.Itoa(seconds) + " SECOND", nil
}

// triggerUnits are the seconds of the units that always have as many.
var triggerUnits = []struct {
	singular, plural string
	seconds          int
}{
	{"SECOND", "SECONDS", 1},
	{"MINUTE", "MINUTES", 60},
	{"HOUR", "HOURS", 60 * 60},
	{"DAY", "DAYS", 24 * 60 * 60},
	{"WEEK", "WEEKS", 7 * 24 * 60 * 60},
}

// longestInterval bounds the interval of a trigger: ten years, in seconds.
const longestInterval = 10 * 366 * 24 * 60 * 60

// interval reads [INTERVAL] n unit [n unit …], each n as a number or a string,
// or all of it in one string, and returns its seconds.
func (p *parser) interval() (int, error) {
	p.accept("INTERVAL")
	total := 0
	for first := true; first || p.kindAt(p.i, Number) || p.kindAt(p.i, String); first = false {
		seconds, err := p.intervalPart()
		if err != nil {
			return 0, err
		}
		if total += seconds; total > longestInterval {
			return 0, p.errorAt(p.i-1, invalidParameterCode, "interval out of range", "", "It is at most ten years.")
		}
	}
	return total, nil
}

func (p *parser) intervalPart() (int, error) {
	at := p.i
	if p.kindAt(p.i, String) {
		value, err := p.stringPiece()
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(value)
		if len(fields) == 1 {
			return p.intervalUnit(at, value)
		}
		return p.intervalFields(at, fields)
	}
	if _, err := p.wholeNumber(); err != nil {
		return 0, err
	}
	return p.intervalUnit(at, p.text(at))
}

// intervalUnit reads the unit of the number that is given at token at.
func (p *parser) intervalUnit(at int, number string) (int, error) {
	unit := p.text(p.i)
	if !p.kindAt(p.i, Word) {
		return 0, p.expected(p.i, "SECONDS, MINUTES, HOURS, DAYS or WEEKS")
	}
	seconds, err := p.intervalFields(at, []string{strings.TrimSpace(number), unit})
	p.i++
	return seconds, err
}

// intervalFields returns the seconds of n unit [n unit …].
func (p *parser) intervalFields(at int, fields []string) (int, error) {
	total := 0
	for ; len(fields) >= 2; fields = fields[2:] {
		number, err := strconv.Atoi(fields[0])
		seconds := secondsOf(fields[1])
		if err != nil || number < 0 || number > 999_999_999 || seconds == 0 {
			break
		}
		total += min(number*seconds, longestInterval+1)
	}
	if len(fields) > 0 {
		return 0, p.expected(at, "an interval of seconds, minutes, hours, days or weeks")
	}
	return total, nil
}

func secondsOf(unit string) int {
	for _, known := range triggerUnits {
		if isAnyKeyword(unit, known.singular, known.plural) {
			return known.seconds
		}
	}
	return 0
}
