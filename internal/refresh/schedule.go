package refresh

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
	"github.com/rwproxy/rwproxy/internal/schedule"
	"github.com/rwproxy/rwproxy/rewrite"
)

// scheduleText is the schedule to store, of which the times can be computed. A
// CRON without a time zone is in the session's.
func scheduleText(ctx context.Context, s pgsession.Session, statement string, typed rewrite.Schedule) (string, error) {
	if !typed.Cron {
		return typed.Text, nil
	}
	zone := typed.Zone
	if zone == "" {
		rows, err := s.Query(ctx, "select pg_catalog.current_setting('TimeZone')")
		if err != nil {
			return "", err
		}
		zone = rows[0][0].Text
	}
	at := rewrite.CharPosition(statement, typed.CronOffset)
	zoneAt := at
	if typed.Zone != "" {
		zoneAt = rewrite.CharPosition(statement, typed.ZoneOffset)
	}
	text := inZone(typed.Text, zone)
	parsed, err := schedule.Parse(text)
	var ofCron *schedule.CronError
	if errors.As(err, &ofCron) {
		return "", pgdiag.New("22023", ofCron.Error()).
			WithHint("The fields are second, minute, hour, day of month, month, day of week and perhaps year, " +
				"with ? for one of the two days: '0 0/15 * * * ?'.").
			At(at)
	}
	if _, err := s.Query(ctx, "select pg_catalog.timezone($1::pg_catalog.text, pg_catalog.now())", zone); err != nil {
		return "", zoneError(err, zoneAt)
	}
	if err != nil {
		if text, parsed, err = respelled(ctx, s, typed.Text, zone, zoneAt); err != nil {
			return "", err
		}
	}
	return text, runsAgain(ctx, s, parsed, at)
}

func inZone(cron, zone string) string { return cron + " AT TIME ZONE " + rewrite.QuoteLiteral(zone) }

// respelled is a schedule in a time zone whose name Postgres knows: it ignores
// case, and knows abbreviations and rules written out, which change no clocks.
func respelled(ctx context.Context, s pgsession.Session, cron, zone string, position int) (string, schedule.Schedule, error) {
	rows, err := s.Query(ctx,
		"select z.name from pg_catalog.pg_timezone_names z where pg_catalog.lower(z.name) = pg_catalog.lower($1)", zone)
	if err != nil {
		return "", schedule.Schedule{}, err
	}
	for _, row := range rows {
		text := inZone(cron, row[0].Text)
		if parsed, err := schedule.Parse(text); err == nil {
			return text, parsed, nil
		}
	}
	return "", schedule.Schedule{}, pgdiag.New("22023", fmt.Sprintf("time zone %q cannot be that of a schedule", zone)).
		WithDetail("Only the name of a time zone says when its clocks are changed.").
		WithHint("Name one of the view pg_timezone_names, such as 'Europe/Berlin'.").
		At(position)
}

// zoneError says where the time zone is that does not exist.
func zoneError(err error, position int) error {
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		if d.Code == "22023" {
			d.Hint, d.Position = "The view pg_timezone_names lists the time zones.", position
		}
	})
}

// runsAgain refuses a schedule that has no time to come, by the clock of the
// database.
func runsAgain(ctx context.Context, s pgsession.Session, parsed schedule.Schedule, position int) error {
	rows, err := s.Query(ctx, "select pg_catalog.date_part('epoch', pg_catalog.now())::pg_catalog.int8")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(rows[0][0].Text, 10, 64)
	if err != nil {
		return err
	}
	now := time.Unix(seconds, 0)
	if parsed.Next(now, now).IsZero() {
		return pgdiag.New("22023", "the cron expression never runs").
			WithDetail("There is no such day, or it is over.").
			At(position)
	}
	return nil
}

// atTrigger says where the trigger stands that is refused.
func atTrigger(err error, statement string, typed *rewrite.Schedule) error {
	if typed == nil {
		return err
	}
	return pgdiag.Edited(err, func(d *pgdiag.Diagnostic) {
		switch d.Code {
		case "0A000", "42P17":
			d.Position = rewrite.CharPosition(statement, typed.Offset)
		}
	})
}

// mayRunFor refuses a schedule or a trigger of a table whose owner the service
// may not act for: none of its refreshes would run. A role that the client's
// transaction creates is not known yet, and is looked at when one is to run.
func (e *Engine) mayRunFor(ctx context.Context, c Client, owner string, position int) error {
	err := e.service.CheckRunner(ctx, c.Database(), owner)
	if pgdiag.Code(err) == "42704" {
		return nil
	}
	return placed(err, position)
}

// mayRunOwn is mayRunFor for a table that the client creates.
func (e *Engine) mayRunOwn(ctx context.Context, c Client, st *rewrite.CreateStreamingTable) error {
	if st.Schedule == nil {
		return nil
	}
	rows, err := c.Query(ctx, "select current_user")
	if err != nil {
		return err
	}
	return e.mayRunFor(ctx, c, rows[0][0].Text, rewrite.CharPosition(st.Text, st.Schedule.Offset))
}
