package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// startCauses are the causes that a client may give.
var startCauses = []string{
	"API_CALL", "INFRASTRUCTURE_MAINTENANCE", "JOB_TASK", "RETRY_ON_FAILURE", "SCHEMA_CHANGE", "SERVICE_UPGRADE", "USER_ACTION",
}

// startField is a field of the body of POST …/updates.
type startField struct {
	into any    // nil for one that clients send and that means nothing here
	want string // what it has to be
}

func (b *startUpdateRequest) fields() map[string]startField {
	const names, object = "a list of names", "an object"
	return map[string]startField{
		"cause":                      {&b.cause, "a text"},
		"full_refresh":               {&b.fullRefresh, "true or false"},
		"full_refresh_selection":     {&b.fullRefreshSelection, names},
		"parameters":                 {&b.parameters, object},
		"pipeline_id":                {},
		"refresh_selection":          {&b.refreshSelection, names},
		"replace_where_overrides":    {&b.replaceWhereOverrides, `a list of {"flow_name": "…", "predicate_override": "…"}`},
		"reset_checkpoint_selection": {&b.resetCheckpointSelection, names},
		"rewind_spec":                {&b.rewindSpec, object},
		"update_cause_details":       {},
		"validate_only":              {&b.validateOnly, "true or false"},
	}
}

// readStartUpdate reads the body of a call; an empty one asks for nothing in
// particular.
func readStartUpdate(r *http.Request) (*startUpdateRequest, error) {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBodyBytes))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, &apiError{status: http.StatusRequestEntityTooLarge, code: codeInvalid, message: "the body is larger than " + strconv.Itoa(maxBodyBytes) + " bytes"}
	case err != nil:
		return nil, &apiError{status: http.StatusBadRequest, code: codeMalformed, message: "the body could not be read", cause: err}
	}
	body := &startUpdateRequest{}
	if len(bytes.TrimSpace(text)) == 0 {
		return body, nil
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, malformedBody(err)
	}
	if err := body.read(values); err != nil {
		return nil, err
	}
	return body, body.check()
}

func malformedBody(err error) *apiError {
	reason := err.Error()
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		reason = "it is not an object"
	}
	return &apiError{status: http.StatusBadRequest, code: codeMalformed, message: "the body is not the JSON of an update: " + reason}
}

// read refuses a field that there is not: with a selection that is misspelt all
// tables would be refreshed.
func (b *startUpdateRequest) read(values map[string]json.RawMessage) error {
	fields := b.fields()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		field, known := fields[name]
		switch {
		case !known:
			return invalid("unknown field " + strconv.Quote(shortened(name)) + ": an update has " +
				strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
		case field.into == nil:
			continue
		}
		decoder := json.NewDecoder(bytes.NewReader(values[name]))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(field.into); err != nil {
			return invalid(name + ": not " + field.want)
		}
	}
	return nil
}

func (b *startUpdateRequest) check() error {
	switch {
	case b.cause != "" && !slices.Contains(startCauses, b.cause):
		return invalid("cause: not one of " + strings.Join(startCauses, ", "))
	case len(b.resetCheckpointSelection) > 0:
		return invalid("reset_checkpoint_selection: a REPLACE WHERE flow has no checkpoint")
	case len(b.parameters) > 0:
		return invalid("parameters: flows have none")
	case len(b.rewindSpec) > 0 && string(b.rewindSpec) != "null":
		return invalid("rewind_spec: not supported")
	}
	for _, o := range b.replaceWhereOverrides {
		if o.FlowName == "" || strings.TrimSpace(o.PredicateOverride) == "" {
			return invalid("replace_where_overrides: each needs a flow_name and a predicate_override")
		}
	}
	return nil
}
