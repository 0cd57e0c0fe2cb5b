package integration

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What no two runs have in common.
var randoms = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "(id)"},
	{regexp.MustCompile(`\b1\d{12}\b`), "(milliseconds)"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:]{8}\.\d{3}Z`), "(time)"},
	{regexp.MustCompile(`("(?:next|prev)_page_token": )"[\w-]+"`), "$1(token)"},
	{regexp.MustCompile(`("control_plane_seq_no": )\d+`), "$1(number)"},
}

func withoutRandoms(text string) string {
	for _, r := range randoms {
		text = r.pattern.ReplaceAllString(text, r.name)
	}
	return text
}

// indented is JSON as the page shows it.
func indented(t *testing.T, text []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, bytes.TrimSpace(text), "", "  "); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out.String() + "\n"
}

// A json block of the page is the answer to the sh block in front of it. What
// the other sh blocks set is kept, and an update has ended before the next call.
func TestTheCallsOfTheRESTPageAnswerWhatItShows(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	a := newAPI(t, "postgres")
	p := readPage(t, "../docs/rest-api.md")
	s := connect(t, d.url)
	defer s.close()
	here := strings.NewReplacer("https://rwproxy.example.com:6433", a.base, "/sales", "/"+d.name)
	var before, updateID string
	shown := map[int]string{}
	for i, b := range p.blocks {
		answered := i+1 < len(p.blocks) && p.blocks[i+1].language == "json"
		switch {
		case b.notRun != "":
		case b.language == "sql":
			s.exec(b.text)
		case b.language == "sh" && !answered:
			before += b.text
		case b.language == "sh":
			cmd := exec.Command("bash", "-euc", here.Replace(before+b.text))
			cmd.Dir = t.TempDir()
			cmd.Env = append(cleanEnvironment(), "TOKEN="+a.token, "UPDATE="+updateID)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%s:%d: %v\n%s", p.name, b.first+1, err, out)
			}
			var started struct {
				UpdateID string `json:"update_id"`
			}
			if err := json.Unmarshal(out, &started); err == nil && started.UpdateID != "" {
				updateID = started.UpdateID
				eventually(t, "the update has ended", func() bool {
					return s.value("select ended_at is not null from rwproxy.updates where update_id = '"+updateID+"'") == "t"
				})
			}
			shown[i+1] = strings.ReplaceAll(indented(t, out), d.name, "sales")
		}
	}
	if *update {
		p.write(t, shown)
		return
	}
	for i, got := range shown {
		if diff := cmp.Diff(withoutRandoms(p.blocks[i].text), withoutRandoms(got)); diff != "" {
			t.Errorf("%s:%d (-page +rwproxy)\n%s", p.name, p.blocks[i].first+1, diff)
		}
	}
}
