package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// maxEvents is how many events a page may have.
const maxEvents = 250

// eventFields are the fields of events that a filter may name.
var eventFields = map[string]filterField{
	"event_type": {operators: []string{"=", "in"}},
	"id":         {operators: []string{"="}, check: checkUUID},
	"level":      {operators: []string{"=", "in"}, check: checkLevel},
	"timestamp":  {operators: []string{"=", "<", "<=", ">", ">="}, check: checkTime},
	"update_id":  {operators: []string{"="}},
}

// eventColumns are the fields as expressions. Times are those that a client was
// shown, which are cut to milliseconds.
var eventColumns = map[string]string{
	"event_type": "e.event_type",
	"id":         "e.id::pg_catalog.text",
	"level":      "e.level",
	"timestamp":  "pg_catalog.date_trunc('milliseconds', e.timestamp)",
	"update_id":  "e.origin ->> 'update_id'",
}

const selectEvents = `
select e.id,
       e.sequence,
       pg_catalog.to_char(e.timestamp at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
       e.message,
       e.level,
       e.maturity_level,
       e.event_type,
       e.origin,
       e.error,
       e.details
  from rwproxy.event_log e`

// listEvents is GET …/events.
func (a *api) listEvents(ctx context.Context, c *caller, r *http.Request) (any, error) {
	s, err := a.open(ctx, c, r.PathValue("pipeline_id"))
	if err != nil {
		return nil, err
	}
	defer s.close()
	limit, err := maxResults(r.URL.Query(), maxEvents)
	if err != nil {
		return nil, err
	}
	at, err := readPosition(r.URL.Query(), checkSequence)
	if err != nil {
		return nil, err
	}
	events, err := eventListing(at)
	if err != nil {
		return nil, err
	}
	rows, more, err := events.page(ctx, s, at, limit)
	if err != nil {
		return nil, err
	}
	answer := listEventsResponse{Events: make([]pipelineEvent, len(rows))}
	for i, row := range rows {
		if answer.Events[i], err = s.event(row); err != nil {
			return nil, err
		}
	}
	if len(rows) > 0 {
		answer.pageTokens = at.tokens(more, []string{rows[0][1].Text}, []string{rows[len(rows)-1][1].Text})
	}
	return answer, nil
}

// eventListing returns the events of a filter, in the wanted order: that of
// their sequence numbers is that of time too.
func eventListing(at position) (*listing, error) {
	conditions, err := parseFilter(at.Filter, eventFields)
	if err != nil {
		return nil, err
	}
	order, err := at.ordered("timestamp desc", "timestamp asc")
	if err != nil {
		return nil, err
	}
	l := &listing{
		selected: selectEvents, key: []string{"e.sequence"}, casts: []string{"int8"},
		descending: order == "timestamp desc",
	}
	for _, c := range conditions {
		column := eventColumns[c.field]
		switch {
		case c.operator == "in":
			l.where(column + " = any (" + l.parameter(c.values) + "::pg_catalog.text[])")
		case c.field == "timestamp":
			t, err := parseTime(c.values[0])
			if err != nil {
				return nil, invalid("filter: not " + err.Error())
			}
			l.where(column + " " + c.operator + " " + l.parameter(t.UTC().Format(timeLayout)) + "::pg_catalog.timestamptz")
		default:
			l.where(column + " = " + l.parameter(c.values[0]) + "::pg_catalog.text")
		}
	}
	return l, nil
}

func (s *session) event(row pgsession.Row) (pipelineEvent, error) {
	sequence, err := strconv.ParseInt(row[1].Text, 10, 64)
	if err != nil {
		return pipelineEvent{}, err
	}
	e := pipelineEvent{
		ID:            row[0].Text,
		Sequence:      sequencing{ControlPlane: sequence},
		Timestamp:     row[2].Text,
		Message:       row[3].Text,
		Level:         row[4].Text,
		MaturityLevel: row[5].Text,
		EventType:     row[6].Text,
		Details:       json.RawMessage(row[9].Text),
	}
	if !row[8].Null {
		e.Error = json.RawMessage(row[8].Text)
	}
	if err := json.Unmarshal([]byte(row[7].Text), &e.Origin); err != nil {
		return pipelineEvent{}, err
	}
	e.Origin["pipeline_id"], e.Origin["pipeline_name"] = quoted(s.id), quoted(s.database)
	return e, nil
}

func quoted(text string) json.RawMessage {
	value, _ := json.Marshal(text) // a string always can be
	return value
}

func checkUUID(value string) error {
	if !isUUID(strings.ToLower(value)) {
		return errors.New("a UUID")
	}
	return nil
}

func checkLevel(value string) error {
	if !slices.Contains([]string{"INFO", "WARN", "ERROR", "METRICS"}, value) {
		return errors.New("one of INFO, WARN, ERROR, METRICS")
	}
	return nil
}

func checkTime(value string) error {
	_, err := parseTime(value)
	return err
}

// checkSequence checks the key of an event.
func checkSequence(key []string) bool {
	if len(key) != 1 {
		return false
	}
	_, err := strconv.ParseInt(key[0], 10, 64)
	return err == nil
}
