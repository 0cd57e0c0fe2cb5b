package integration

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rwproxy/rwproxy/internal/embedded"
)

const (
	operationsPage  = "docs/operations.md"
	commandLinePage = "docs/command-line.md"
)

// shell runs the text of a sh block, which ends at the first failure, and
// returns what it writes to its standard output.
func shell(t *testing.T, environment []string, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-e")
	cmd.Stdin, cmd.Env, cmd.Dir = strings.NewReader(text), environment, t.TempDir()
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s\n%v\n%s%s", text, err, out, complaints.String())
	}
	return string(out)
}

// The commands of the page are run in order, as if in a terminal, and print what
// it shows but for what no two runs have in common.
func TestTheCommandLinePrintsWhatItsPageShows(t *testing.T) {
	t.Parallel()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	d := newDatabase(t)
	s := connect(t, d.url)
	environment := append(libpqEnvironment(t, d), "PATH="+filepath.Dir(path)+":"+os.Getenv("PATH"))
	p := readPage(t, "../"+commandLinePage)
	for i, b := range p.blocks {
		switch {
		case b.language == "sql":
			s.exec(b.text)
		case p.hasOutput(i):
			got := shell(t, environment, b.text)
			if diff := cmp.Diff(anyRun(p.blocks[i+1].text), anyRun(got)); diff != "" {
				t.Errorf("%s:%d (-page +program)\n%s\n%s", p.name, b.first+1, diff, got)
			}
			eventually(t, "what it has asked for is done", func() bool {
				return s.value("select count(*) from rwproxy.refreshes where state in ('QUEUED', 'RUNNING')") == "0"
			})
		}
	}
}

var runsOwn = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b|\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[\d.]+m?s\b`)

// anyRun takes out of an output what is a run's own: times, IDs and durations,
// and the spaces that depend on their lengths.
func anyRun(output string) string {
	var out strings.Builder
	for line := range strings.Lines(output) {
		out.WriteString(strings.Join(strings.Fields(runsOwn.ReplaceAllString(line, "…")), " ") + "\n")
	}
	return out.String()
}

func TestABackupKeepsFlowsAndTheirHistory(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	// Transactions have other numbers where it is restored.
	connect(t, d.direct).exec("do $$ begin for i in 1..10000 loop perform pg_current_xact_id(); commit; end loop; end $$")
	connect(t, d.url).exec("create table source (id int primary key, day date)",
		"insert into source values (1, '2026-01-01')",
		"create streaming table target flow replace where true by name select day, count(*) as n from source group by day",
		"insert into source values (2, '2026-01-01')",
		"refresh streaming table target")
	elsewhere, p := ownServer(t, "restored")
	blocks := readPage(t, "../"+operationsPage).section("## Backup and restore")
	file := filepath.Join(t.TempDir(), "sales.dump")
	for i, direct := range []string{d.direct, elsewhere.URL("postgres")} {
		u, err := url.Parse(direct)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(blocks[i].text, "sales.dump", file)
		text = regexp.MustCompile(`\bsales$`).ReplaceAllString(text, d.name)
		text = strings.NewReplacer(" sales\n", " "+d.name+"\n", "=sales ", "="+d.name+" ").Replace(text)
		shell(t, append(cleanEnvironment(), "PGHOST="+u.Hostname(), "PGPORT="+u.Port(), "PGUSER="+u.User.Username()), text)
	}

	restored := connect(t, p.url(elsewhere.URL(d.name)))
	last := func() string {
		return restored.value("select technique || ' ' || coalesce(reason, '-') from rwproxy.refreshes order by requested_at desc limit 1")
	}
	if got := last(); got != "INCREMENTAL -" {
		t.Errorf("the restored history ends with %s", got)
	}
	restored.exec("insert into source values (3, '2026-01-02')", "refresh streaming table target")
	if got := last(); got != "FULL_RECOMPUTE CLUSTER_CHANGED" {
		t.Errorf("the first refresh: %s", got)
	}
	restored.exec("insert into source values (4, '2026-01-02')", "refresh streaming table target")
	if got := last(); got != "INCREMENTAL -" {
		t.Errorf("the second refresh: %s", got)
	}
	if got := restored.rows("select day, n from target order by day"); strings.Join(got, " ") != "2026-01-01|2 2026-01-02|2" {
		t.Errorf("got %q", got)
	}
}

// The rights that the page names are enough, with the lines of pg_hba.conf that
// it shows, for a service role that is no superuser.
func TestTheServiceRoleNeedsNoMoreThanItsPageSays(t *testing.T) {
	t.Parallel()
	section := readPage(t, "../"+operationsPage).section("## The service role")
	var admission []string
	for _, b := range section {
		if b.language == "text" {
			admission = strings.Split(strings.NewReplacer("hostssl", "host", "10.0.0.8/29", "127.0.0.1/32").Replace(b.text), "\n")
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	own, err := embedded.Start(ctx, embedded.Config{
		DataDir:  filepath.Join(scratchDir, "service-role"),
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		HBA:      append([]string{"host all postgres 127.0.0.1/32 trust"}, admission...),
		Settings: map[string]string{"fsync": "off", "password_encryption": "scram-sha-256"},
		Trust:    true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopServer(own); err != nil {
			t.Error(err)
		}
	})
	admin := connect(t, own.URL("postgres"))
	admin.exec("create role alice login password 'secret'", "create database sales owner alice")
	for _, b := range section {
		if b.language == "sql" {
			for _, statement := range strings.Split(strings.TrimSpace(b.text), "\n") {
				admin.exec(statement)
			}
		}
	}
	if admin.value("select current_setting('server_version_num')::int >= 160000") == "t" {
		admin.exec("grant alice to rwproxy with admin option")
	}
	as := func(user, password, database string) string {
		u, err := url.Parse(own.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		u.User, u.RawQuery = url.UserPassword(user, password), ""
		return u.String()
	}
	passwords := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(passwords, []byte("127.0.0.1:*:*:rwproxy:choose one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := ownProxy(t, as("rwproxy", "", "postgres")+"?"+url.Values{"passfile": {passwords}}.Encode())
	alice := connect(t, p.url(as("alice", "secret", "sales")))
	alice.exec("create table source (id int)",
		"create streaming table target flow replace where true by name select id from source",
		"insert into source values (1)")
	state := func(id string) string {
		return alice.value(fmt.Sprintf("select state from rwproxy.refreshes where refresh_id = '%s'", id))
	}
	id, _, _ := strings.Cut(alice.value("refresh streaming table target async"), "|")
	eventually(t, "the refresh has completed", func() bool { return state(id) == "COMPLETED" })

	blocker := connect(t, as("alice", "secret", "sales"))
	blocker.exec("begin", "lock table source")
	id, _, _ = strings.Cut(alice.value("refresh streaming table target full async"), "|")
	eventually(t, "the refresh waits", func() bool {
		return blocker.value("select count(*) from pg_locks where relation = 'source'::regclass and not granted") == "1"
	})
	admin.exec("revoke pg_signal_backend from rwproxy")
	if refusal := alice.fails("42501", fmt.Sprintf("select rwproxy.cancel_refresh('%s')", id)); refusal.Hint != "GRANT pg_signal_backend TO rwproxy." {
		t.Errorf("without the right to signal: %v, hint %q", refusal, refusal.Hint)
	}
	admin.exec("grant pg_signal_backend to rwproxy")
	if got := alice.value(fmt.Sprintf("select rwproxy.cancel_refresh('%s')", id)); got != "t" {
		t.Errorf("canceled: %s", got)
	}
	eventually(t, "the refresh is canceled", func() bool { return state(id) == "CANCELED" })
}

// What the unit runs has to be there, and to be given the time that it takes.
func TestTheUnitOfSystemdRunsTheProgramAsItIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../deploy/systemd/rwproxy.service")
	if err != nil {
		t.Fatal(err)
	}
	value := func(key string) string {
		for line := range strings.Lines(string(text)) {
			if name, value, _ := strings.Cut(line, "="); name == key {
				return strings.TrimSpace(value)
			}
		}
		t.Fatalf("it has no %s", key)
		return ""
	}
	start := value("ExecStart")
	if err := checkCommand(t, filepath.Base(strings.Fields(start)[0])+start[len(strings.Fields(start)[0]):]); err != nil {
		t.Error(err)
	}
	stop, err := time.ParseDuration(value("TimeoutStopSec") + "s")
	if err != nil {
		t.Fatal(err)
	}
	drain, err := time.ParseDuration(regexp.MustCompile(`\d+s`).FindString(helpOf(t, "serve")["--shutdown-timeout"]))
	if err != nil {
		t.Fatal(err)
	}
	if stop <= drain {
		t.Errorf("it stops after %s, and draining takes up to %s", stop, drain)
	}
}
