package integration

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sdkAnswers is what the pipelines client of the Databricks SDK returned.
type sdkAnswers struct {
	Update struct {
		UpdateID string `json:"update_id"`
		State    string `json:"state"`
		Cause    string `json:"cause"`
	} `json:"update"`
	Stopped  string `json:"stopped"`
	Pipeline struct {
		Name   string      `json:"name"`
		State  string      `json:"state"`
		Latest []sdkUpdate `json:"latest_updates"`
	} `json:"pipeline"`
	Pipelines []struct {
		Name string `json:"name"`
	} `json:"pipelines"`
	Updates []sdkUpdate `json:"updates"`
	Events  []struct {
		Message string `json:"message"`
	} `json:"events"`
	Missing, Refused *struct {
		Status  int    `json:"status"`
		Code    string `json:"code"`
		Message string `json:"message"`
	}
}

type sdkUpdate struct {
	UpdateID string `json:"update_id"`
	State    string `json:"state"`
}

// TestTheDatabricksSDKFindsAPipeline runs the SDK for JavaScript over TLS,
// unchanged but for host and token.
func TestTheDatabricksSDKFindsAPipeline(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	sales(t, d)
	certFile, keyFile := writeCertificate(t, t.TempDir())
	a := newAPI(t, "postgres", "--tls-cert", certFile, "--tls-key", keyFile)
	cmd := exec.Command("node", filepath.Join("clients", "node", "databricks.js"), d.name, "doubled")
	cmd.Env = append(cleanEnvironment(),
		"DATABRICKS_HOST=https://127.0.0.1", "DATABRICKS_TOKEN="+a.token, "DATABRICKS_AUTH_TYPE=pat", "DATABRICKS_CONFIG_FILE="+filepath.Join(t.TempDir(), "none"),
		"API_ADDRESS="+a.addr, "API_CERTIFICATE="+certFile)
	out, err := cmd.Output()
	if err != nil {
		var stderr []byte
		if failed, ok := err.(*exec.ExitError); ok { //nolint:errorlint // exec.Command returns it as it is
			stderr = failed.Stderr
		}
		missing(t, "the Databricks SDK", err, append(stderr, out...))
	}
	var got sdkAnswers
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err, string(out))
	}
	if got.Update.State != "COMPLETED" || got.Update.Cause != "JOB_TASK" || got.Stopped != "IDLE" || got.Pipeline.State != "IDLE" || got.Pipeline.Name != d.name {
		t.Errorf("got %+v", got)
	}
	started := sdkUpdate{got.Update.UpdateID, "COMPLETED"}
	if diff := cmp.Diff(started, got.Updates[0]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(started, got.Pipeline.Latest[0]); diff != "" {
		t.Error(diff)
	}
	listed := false
	for _, p := range got.Pipelines {
		listed = listed || p.Name == d.name
	}
	if !listed || len(got.Events) != 25 || got.Events[0].Message != "Update "+got.Update.UpdateID+" is COMPLETED." {
		t.Errorf("got %+v, %+v", got.Pipelines, got.Events)
	}
	if m := got.Missing; m == nil || m.Status != 404 || m.Code != "RESOURCE_DOES_NOT_EXIST" || m.Message != "The specified pipeline nothing was not found." {
		t.Errorf("a pipeline that does not exist: %+v", m)
	}
	if r := got.Refused; r == nil || r.Status != 400 || r.Code != "INVALID_PARAMETER_VALUE" {
		t.Errorf("a table that does not exist: %+v", r)
	}
}
