package schedule

import (
	"bufio"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestCronRunsWhenQuartzRuns compares with what Quartz 2.3.2 says; see
// testdata/Times.java. The days on which clocks are changed are left out.
func TestCronRunsWhenQuartzRuns(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/quartz.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.Split(lines.Text(), "\t")
		expression, zone, count, want := line[0], line[1], integer(t, line[3]), line[4]
		if got := times(expression, zone, time.Unix(int64(integer(t, line[2])), 0), count); got != want {
			t.Errorf("%s in %s after %s:\n got %s\nwant %s", expression, zone, line[2], got, want)
		}
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}

func times(expression, zone string, at time.Time, count int) string {
	s, err := parseCron(expression, zone)
	if err != nil {
		return "refused"
	}
	var times []string
	for i := 0; i < count; i++ {
		at = s.Next(time.Time{}, at)
		if at.IsZero() {
			times = append(times, "never")
			break
		}
		times = append(times, strconv.FormatInt(at.Unix(), 10))
	}
	return strings.Join(times, " ")
}

func integer(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInvalidCronExpressionsAreRefusedWithAReason(t *testing.T) {
	t.Parallel()
	for expression, reason := range map[string]string{
		"":                      "it has 0 fields instead of 6 or 7",
		"0 * * * *":             "it has 5 fields instead of 6 or 7",
		"0 0 0 1 1 ? 2030 x":    "it has 8 fields instead of 6 or 7",
		"0 0 0 * * *":           "one of day of month and day of week is to be ?, the other not",
		"0 0 0 ? * ?":           "one of day of month and day of week is to be ?, the other not",
		"0 60 * * * ?":          `"60" is no minute`,
		"0 -1 * * * ?":          `"-1" is no minute`,
		"0 +1 * * * ?":          `"+1" is no minute`,
		"0 0/0 * * * ?":         `"0/0" is no minute`,
		"0 0/60 * * * ?":        `"0/60" is no minute`,
		"0 , * * * ?":           `"" is no minute`,
		"0 ? * * * ?":           `"?" is no minute`,
		"0 0 24 * * ?":          `"24" is no hour`,
		"0 0 0 32 * ?":          `"32" is no day of month`,
		"0 0 0 0W * ?":          `"0W" is no day of month`,
		"0 0 0 W * ?":           `"W" is no day of month`,
		"0 0 0 L-31 * ?":        `"L-31" is no day of month`,
		"0 0 0 1,15W * ?":       `"1,15W" mixes L or W with other days`,
		"0 0 0 L,15 * ?":        `"L,15" mixes L or W with other days`,
		"0 0 0 ? FOO MON":       `"FOO" is no month`,
		"0 0 0 ? 13 MON":        `"13" is no month`,
		"0 0 0 ? * 0":           `"0" is no day of week`,
		"0 0 0 ? * 8L":          `"8L" is no day of week`,
		"0 0 0 ? * MON#6":       `"MON#6" is no day of week`,
		"0 0 0 ? * MON#":        `"MON#" is no day of week`,
		"0 0 0 ? * #1":          `"#1" is no day of week`,
		"0 0 0 ? * 2,3#1":       `"2,3#1" mixes L or # with other days`,
		"0 0 0 ? * MON-FRI/2":   `"MON-FRI/2" has a step after a name, which Quartz ignores: write the day of week as a number`,
		"0 0 0 1 1 ? 2100":      `"2100" is no year`,
		"0 0 0 1 1 ? 2030-29":   `"2030-29" is no year`,
		"0 99999999999 * * * ?": `"99999999999" is no minute`,
	} {
		_, err := Parse("CRON '" + expression + "' AT TIME ZONE 'UTC'")
		var cronError *CronError
		if !errors.As(err, &cronError) || cronError.Reason != reason {
			t.Errorf("%q: got %v, want %s", expression, err, reason)
		}
	}
}

func FuzzCron(f *testing.F) {
	f.Add("0 0/15 22-2 L-3W JAN-MAR ? 2027/2", "Europe/Berlin", int64(1774652400))
	f.Add("0 30 2 ? * 6#5", "Australia/Lord_Howe", int64(1792886400))
	f.Add("0 0 0 31 2 ?", "<+02>-02", int64(2556057600))
	f.Fuzz(func(t *testing.T, expression, zone string, seconds int64) {
		s, err := parseCron(expression, zone)
		if err != nil || seconds < 0 || seconds > 5e9 {
			return
		}
		after := time.Unix(seconds, 0)
		if next := s.Next(time.Time{}, after); !next.IsZero() && !next.After(after) {
			t.Errorf("%q runs at %s, which is not after %s", expression, next, after)
		}
	})
}
