package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/jackc/pgx/v5"

	"github.com/rwproxy/rwproxy/internal/embedded"
	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// A client asks for a password on its terminal, which does not show it.
func TestAClientAsksForThePasswordItNeeds(t *testing.T) {
	t.Parallel()
	server, err := embedded.Start(testContext(t), embedded.Config{
		DataDir:  pgtest.TempDir(t),
		Bin:      os.Getenv("RWPROXY_TEST_PG_BIN"),
		HBA:      []string{"host all alice 127.0.0.1/32 scram-sha-256"},
		Settings: map[string]string{"fsync": "off"},
		Trust:    true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	execute(t, session(t, server.URL("postgres")), "create role alice login password 'secret'")
	config, err := pgx.ParseConfig(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}

	for typed, want := range map[string]string{
		"secret\r": `rwproxy: rwproxy is not installed in database "postgres"`,
		"wrong\r":  "password authentication failed",
		"\x03":     "rwproxy: interrupted",
	} {
		cmd := exec.CommandContext(testContext(t), os.Args[0], "flows", "-d", "host=127.0.0.1 user=alice dbname=postgres")
		cmd.Args[0] = "rwproxy"
		cmd.Env = append(os.Environ(), fmt.Sprint("PGPORT=", config.Port), "PGPASSFILE=/nowhere")
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		output := bufio.NewReader(terminal)
		var shown strings.Builder
		for !strings.Contains(shown.String(), "Password for user alice: ") {
			b, err := output.ReadByte()
			if err != nil {
				t.Fatalf("it does not ask: %q", shown.String())
			}
			shown.WriteByte(b)
		}
		if _, err := terminal.WriteString(typed); err != nil {
			t.Fatal(err)
		}
		for {
			b, err := output.ReadByte()
			if err != nil {
				break // it has ended
			}
			shown.WriteByte(b)
		}
		terminal.Close()
		if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%q: it ended with %v", typed, err)
		}
		if got := shown.String(); !strings.Contains(got, want) || strings.Contains(got, strings.TrimSpace(typed)) {
			t.Errorf("%q: %q", typed, got)
		}
	}
}
