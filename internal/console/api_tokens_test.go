package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tokenFile writes a file of tokens.
func tokenFile(t *testing.T, lines ...string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// newToken returns a token of a role and the line of the file.
func newToken(t *testing.T, role string) (text, line string) {
	t.Helper()
	text, line, err := NewToken(role)
	if err != nil {
		t.Fatal(err)
	}
	return text, line
}

func TestATokenIsItsRolesUntilItIsTakenAway(t *testing.T) {
	t.Parallel()
	first, firstLine := newToken(t, "alice")
	second, secondLine := newToken(t, "the etl role")
	name := tokenFile(t, "# tokens", "", firstLine, "  "+secondLine+"  ")
	tokens, err := LoadTokens(name)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{first: "alice", second: "the etl role", first + "x": "", first[:40]: "", "": ""} {
		if role, found := tokens.role(text); role != want || found != (want != "") {
			t.Errorf("%q is of %q", text, role)
		}
	}
	if strings.Contains(firstLine, first) || first == second {
		t.Error("the token is in its line, or not random")
	}

	if err := os.WriteFile(name, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Reload(); err == nil || !strings.Contains(err.Error(), "line 1") || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("error = %v", err)
	}
	if _, found := tokens.role(first); !found {
		t.Error("a reload that failed has taken the tokens away")
	}
	if err := os.WriteFile(name, []byte(secondLine), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := tokens.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, found := tokens.role(first); found {
		t.Error("a token that was taken away is still good")
	}
}

func TestAFileOfTokensIsForItsOwner(t *testing.T) {
	t.Parallel()
	_, line := newToken(t, "alice")
	name := tokenFile(t, line)
	for mode, good := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o660: false, 0o602: false} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadTokens(name); (err == nil) != good {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := LoadTokens(t.TempDir()); err == nil {
		t.Error("a directory is read")
	}
}

func TestLinesThatAreNoTokensAreRefused(t *testing.T) {
	t.Parallel()
	text, line := newToken(t, "alice")
	for _, bad := range []string{
		text, "alice " + text, line[:len(line)-1], line + "0", line[len("alice "):], "alice", strings.Repeat("x", 64) + line,
	} {
		_, err := LoadTokens(tokenFile(t, "# comment", bad))
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v", bad, err)
		}
		if err != nil && strings.Contains(err.Error(), text) {
			t.Error("the error has the token")
		}
	}
	for _, role := range []string{"", "#x", " x", "x\ny", strings.Repeat("x", maxName+1)} {
		if _, _, err := NewToken(role); err == nil {
			t.Errorf("a token for %q", role)
		}
	}
}
