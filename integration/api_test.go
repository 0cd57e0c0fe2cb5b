package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// api is a proxy of a test's own whose REST API answers, with a token.
type api struct {
	proxy *proxy
	base  string // http://host:port
	addr  string
	token string
}

// newAPI starts a proxy with a token of a role.
func newAPI(t *testing.T, role string, settings ...string) *api {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	make := exec.Command(path, "token", role)
	make.Env = cleanEnvironment()
	var line, token bytes.Buffer
	make.Stdout, make.Stderr = &line, &token
	if err := make.Run(); err != nil {
		t.Fatal(err, token.String())
	}
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, line.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	addr, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p := ownProxy(t, server.URL("postgres"), append([]string{"--http", addr, "--api-tokens", tokens}, settings...)...)
	eventually(t, "the API accepts", func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		return err == nil && conn.Close() == nil
	})
	a := &api{proxy: p, base: "http://" + addr, addr: addr, token: strings.TrimSpace(token.String())}
	t.Cleanup(func() {
		if strings.Contains(p.log.String(), a.token) {
			t.Error("the token is in the log")
		}
	})
	return a
}

// sales makes two flows, the second on the first, and an order that neither has
// seen.
func sales(t *testing.T, d database) {
	t.Helper()
	s := connect(t, d.url)
	s.exec(
		"create table orders (day date, amount numeric)",
		"insert into orders values ('2024-05-01', 10), ('2024-05-02', 20)",
		`create streaming table daily flow replace where day >= date '2024-05-02' by name
			select day, sum(amount) as amount from orders group by day`,
		`create streaming table doubled flow replace where day >= date '2024-05-01' by name
			select day, 2 * amount as amount from daily`,
		"insert into orders values ('2024-05-01', 5)",
	)
	s.close()
}

// The helper that the Databricks documentation has for overrides: it starts an
// update, asks until it has ended, and reads its events.
type helper struct {
	client *http.Client
	host   string
	token  string
}

func (h helper) call(ctx context.Context, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, method, h.host+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+h.token)
	r.Header.Set("Content-Type", "application/json")
	response, err := h.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if text, err = io.ReadAll(response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, text)
	}
	return json.Unmarshal(text, answer)
}

func (h helper) startUpdate(ctx context.Context, pipelineID string, overrides map[string]string) (string, error) {
	list := []map[string]string{}
	for flow, predicate := range overrides {
		list = append(list, map[string]string{"flow_name": flow, "predicate_override": predicate})
	}
	var answer struct {
		UpdateID string `json:"update_id"`
	}
	err := h.call(ctx, http.MethodPost, "/api/2.0/pipelines/"+pipelineID+"/updates", map[string]any{
		"pipeline_id":             pipelineID,
		"update_cause_details":    map[string]any{"job_details": map[string]any{"performance_target": "PERFORMANCE"}},
		"replace_where_overrides": list,
	}, &answer)
	return answer.UpdateID, err
}

func (h helper) wait(ctx context.Context, pipelineID, updateID string) (state string, err error) {
	for {
		var answer struct {
			Update struct {
				State string `json:"state"`
			} `json:"update"`
		}
		if err := h.call(ctx, http.MethodGet, "/api/2.0/pipelines/"+pipelineID+"/updates/"+updateID, nil, &answer); err != nil {
			return "", err
		}
		switch answer.Update.State {
		case "COMPLETED", "FAILED", "CANCELED":
			return answer.Update.State, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return answer.Update.State, ctx.Err()
		}
	}
}

// TestTheDocumentedHelperStartsAnUpdate runs it unchanged but for host and
// token.
func TestTheDocumentedHelperStartsAnUpdate(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	sales(t, d)
	a := newAPI(t, "postgres")
	h := helper{&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, a.base, a.token}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	update, err := h.startUpdate(ctx, d.name, map[string]string{"daily": "day = date '2024-05-01'"})
	if err != nil {
		t.Fatal(err)
	}
	state, err := h.wait(ctx, d.name, update)
	if err != nil || state != "COMPLETED" {
		t.Fatalf("%s, %v", state, err)
	}
	s := connect(t, d.url)
	defer s.close()
	s.want("select string_agg(day || ' ' || amount, ', ' order by day) from daily", "2024-05-01 15, 2024-05-02 20")
	s.want("select string_agg(day || ' ' || amount, ', ' order by day) from doubled", "2024-05-01 30, 2024-05-02 40")
}

var eventLine = regexp.MustCompile(`^\d{4}-\d\d-\d\dT[\d:.]+Z (INFO|WARN|ERROR|METRICS) (.+)$`)

func TestTheExampleScriptStartsAnUpdate(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	sales(t, d)
	a := newAPI(t, "postgres")
	run := func(arguments ...string) (string, error) {
		cmd := exec.Command("../examples/start-update.sh", append([]string{d.name}, arguments...)...)
		cmd.Env = append(cleanEnvironment(), "RWPROXY_API="+a.base, "RWPROXY_TOKEN="+a.token)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("daily", "day = date '2024-05-01'")
	if err != nil {
		t.Fatal(err, out)
	}
	printed := lines(out)
	id := strings.TrimPrefix(printed[0], "update ")
	seen := map[string]bool{}
	for _, line := range printed[1:] {
		match := eventLine.FindStringSubmatch(line)
		if match == nil {
			t.Fatalf("%q is no event in\n%s", line, out)
		}
		seen[strings.ReplaceAll(match[2], id, "(id)")] = true
	}
	for _, want := range []string{"Update (id) started by postgres.", "Flow 'daily' has COMPLETED.", "Flow 'doubled' has COMPLETED.", "Update (id) is COMPLETED."} {
		if !seen[want] {
			t.Errorf("no event %q in\n%s", want, out)
		}
	}
	s := connect(t, d.url)
	defer s.close()
	s.want("select string_agg(day || ' ' || amount, ', ' order by day) from doubled", "2024-05-01 30, 2024-05-02 40")

	out, err = run("daily", "no_such_column = 1")
	if err == nil || !strings.Contains(out, "no_such_column") {
		t.Errorf("a wrong predicate: %v\n%s", err, out)
	}
}
