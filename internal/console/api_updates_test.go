package console

import (
	"net/http"
	"strings"
	"testing"
)

func aBadUpdateIsRefused(t *testing.T, w *world) {
	path := pipelines + "/shop/updates"
	for body, want := range map[string]string{
		`{`:                                     "the body is not the JSON of an update",
		`[]`:                                    "the body is not the JSON of an update",
		`{} {}`:                                 "the body is not the JSON of an update",
		`{"full_refresh": "yes"}`:               "the body is not the JSON of an update",
		`{"cause": "BOREDOM"}`:                  "cause: not one of",
		`{"parameters": {"a":"b"}}`:             "parameters: flows have none",
		`{"rewind_spec": {}}`:                   "rewind_spec: not supported",
		`{"reset_checkpoint_selection": ["x"]}`: "reset_checkpoint_selection: ",
		`{"replace_where_overrides": [{}]}`:     "replace_where_overrides: each needs",
		`{"replace_where_overrides": [{"flow_name": "daily"}]}`: "replace_where_overrides: each needs",
		`{"replace_where_overrides": {"flow_name": "daily"}}`:   "the body is not the JSON of an update",
		`{"full_refresh_selection": "daily"}`:                   "the body is not the JSON of an update",
		"{\"cause\": \"" + strings.Repeat("x", 300<<10) + "\"}": "",
	} {
		a := w.call(t, alice(), "POST", path, body)
		if want == "" && a.status == http.StatusRequestEntityTooLarge {
			continue
		}
		if a.status != http.StatusBadRequest || !strings.HasPrefix(a.string("message"), want) {
			t.Errorf("%.80s: %d %s", body, a.status, a.text)
		}
	}
	foreign := func(r *http.Request) { alice()(r); r.Header.Set("Sec-Fetch-Site", "cross-site") }
	w.refused(t, foreign, "POST", path, "", http.StatusForbidden, codeDenied)
}
