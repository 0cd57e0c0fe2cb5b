package schedule

import (
	"errors"
	"regexp"
	"strconv"
	"time"
	_ "time/tzdata" // for systems without a database of time zones
)

// fixedZone is a time zone of PostgreSQL that is no more than an offset, as SET
// TIME ZONE 2 makes it: <+02>-02, with the sign of POSIX, hours west.
var fixedZone = regexp.MustCompile(`^(?:<[^>]+>|[A-Za-z]{3,})([-+]?)(\d{1,2})(?::(\d{2})(?::(\d{2}))?)?$`)

// loadZone returns the rules of a time zone by its name in the database of time
// zones, or of one with a fixed offset.
func loadZone(name string) (*time.Location, error) {
	if parts := fixedZone.FindStringSubmatch(name); parts != nil {
		seconds := 0
		for _, part := range parts[2:] {
			n, _ := strconv.Atoi(part) // "" is 0
			seconds = seconds*60 + n
		}
		if parts[1] != "-" {
			seconds = -seconds
		}
		return time.FixedZone(name, seconds), nil
	}
	if name == "" || name == "Local" {
		return nil, errors.New("no zone is named")
	}
	return time.LoadLocation(name)
}
