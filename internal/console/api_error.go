package console

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/internal/pgsession"
)

// Codes of errors, as the Databricks API has them.
const (
	codeBusy            = "RESOURCE_EXHAUSTED"
	codeConflict        = "RESOURCE_CONFLICT"
	codeDenied          = "PERMISSION_DENIED"
	codeInternal        = "INTERNAL_ERROR"
	codeInvalid         = "INVALID_PARAMETER_VALUE"
	codeMalformed       = "MALFORMED_REQUEST"
	codeMissing         = "RESOURCE_DOES_NOT_EXIST"
	codeUnauthenticated = "UNAUTHENTICATED"
	codeUnavailable     = "TEMPORARILY_UNAVAILABLE"
)

// apiError is an error as a client is told it.
type apiError struct {
	status     int
	code       string
	message    string
	retryAfter time.Duration      // 0 for no header
	diagnostic *pgdiag.Diagnostic // of Postgres or an update, nil if there is none
	cause      error              // for the log only
}

func (e *apiError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	return e.message
}

func (e *apiError) Unwrap() error { return e.cause }

var (
	errInsecure = &apiError{
		status: http.StatusForbidden, code: codeDenied,
		message: "credentials are taken over TLS only, or from this machine: call an address of it, or set --tls-cert",
	}
	errBusy = &apiError{
		status: http.StatusTooManyRequests, code: codeBusy, retryAfter: time.Second,
		message: "too many calls are running",
	}
	errNoCredentials = &apiError{
		status: http.StatusUnauthorized, code: codeUnauthenticated,
		message: "name a role and its password with HTTP Basic, or a bearer token",
	}
)

// unauthenticated is the answer to wrong credentials, whatever is wrong with
// them; cause is for the log.
func unauthenticated(cause error) *apiError {
	return &apiError{
		status: http.StatusUnauthorized, code: codeUnauthenticated, cause: cause,
		message: "the credentials are not accepted",
	}
}

// throttled is the answer to credentials that are not even tried.
func throttled(wait time.Duration) *apiError {
	return &apiError{
		status: http.StatusTooManyRequests, code: codeBusy, retryAfter: wait,
		message: "too many calls with credentials that are not accepted: try again later",
	}
}

func invalid(message string) *apiError {
	return &apiError{status: http.StatusBadRequest, code: codeInvalid, message: message}
}

// echoed is how much of a name from the request an answer repeats.
const echoed = 128

func pipelineMissing(id string) *apiError {
	return &apiError{status: http.StatusNotFound, code: codeMissing, message: "The specified pipeline " + shortened(id) + " was not found."}
}

func updateMissing(id string) *apiError {
	return &apiError{status: http.StatusNotFound, code: codeMissing, message: "The specified update " + shortened(id) + " was not found."}
}

func shortened(text string) string {
	if len(text) > echoed {
		return strings.ToValidUTF8(text[:echoed], "") + "..."
	}
	return text
}

// asAPIError returns how a client is told err, nil for none.
func asAPIError(err error) *apiError {
	var known *apiError
	var d *pgdiag.Diagnostic
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(pgsession.FromPgxError(err), &d):
		return fromDiagnostic(d)
	case errors.Is(err, context.DeadlineExceeded):
		return &apiError{status: http.StatusGatewayTimeout, code: codeUnavailable, message: "the database took too long to answer", cause: err}
	}
	return &apiError{status: http.StatusInternalServerError, code: codeInternal, message: "an internal error, see the log of rwproxy", cause: err}
}

// fromDiagnostic gives a SQLSTATE the status that it means.
func fromDiagnostic(d *pgdiag.Diagnostic) *apiError {
	e := &apiError{status: http.StatusInternalServerError, code: codeInternal, message: sentence(d), diagnostic: d, cause: d}
	switch class := d.Code[:min(2, len(d.Code))]; {
	case d.Code == "42501":
		e.status, e.code = http.StatusForbidden, codeDenied
	case d.Code == "55006":
		e.status, e.code = http.StatusConflict, codeConflict
	case d.Code == "57014":
		e.status, e.code = http.StatusGatewayTimeout, codeUnavailable
	case class == "08" || class == "53" || class == "57" || d.Code == "55P03":
		e.status, e.code, e.retryAfter = http.StatusServiceUnavailable, codeUnavailable, time.Second
	case class == "0A" || class == "22" || class == "42" || class == "44" || class == "55" || class == "2D" ||
		d.Code == "25006": // a standby, say
		e.status, e.code = http.StatusBadRequest, codeInvalid
	}
	return e
}

// sentence is all that a diagnostic says, for clients that show the message
// only.
func sentence(d *pgdiag.Diagnostic) string {
	message := d.Message
	for _, more := range []string{d.Detail, d.Hint} {
		if more != "" {
			message = strings.TrimSuffix(message, ".") + ". " + more
		}
	}
	return message
}

// errorBody is the JSON of an error.
type errorBody struct {
	Code    string        `json:"error_code"`
	Message string        `json:"message"`
	Details []errorDetail `json:"details,omitempty"`
}

// errorDetail is the ErrorInfo of Google's RPC errors, which clients of the
// Databricks API take apart.
type errorDetail struct {
	Type     string            `json:"@type"`
	Reason   string            `json:"reason"` // SQLSTATE
	Domain   string            `json:"domain"`
	Metadata map[string]string `json:"metadata"`
}

func writeError(w http.ResponseWriter, e *apiError) {
	body := errorBody{Code: e.code, Message: e.message}
	if d := e.diagnostic; d != nil {
		metadata := map[string]string{"message": d.Message}
		for name, value := range map[string]string{"detail": d.Detail, "hint": d.Hint} {
			if value != "" {
				metadata[name] = value
			}
		}
		if d.Position > 0 {
			metadata["position"] = strconv.Itoa(d.Position)
		}
		body.Details = []errorDetail{{
			Type: "type.googleapis.com/google.rpc.ErrorInfo", Reason: d.Code, Domain: "postgresql.org", Metadata: metadata,
		}}
	}
	if e.status == http.StatusUnauthorized {
		w.Header().Add("WWW-Authenticate", `Bearer realm="rwproxy"`)
		w.Header().Add("WWW-Authenticate", `Basic realm="rwproxy", charset="UTF-8"`)
	}
	if e.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(int64((e.retryAfter+time.Second-1)/time.Second), 10))
	}
	writeJSON(w, e.status, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil { // a value that Postgres sent as JSON and that is none
		status, text = http.StatusInternalServerError, []byte(`{"error_code":"INTERNAL_ERROR","message":"an internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n')) // the caller may be gone
}
