package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// other is an account that is not ours and owns nothing.
var other = account{name: "other", credential: &syscall.Credential{Uid: 54321, Gid: 54321}}

func TestADirectoryBehindAClosedOneIsOutOfReach(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(tempDir(t), "closed")
	inner := filepath.Join(closed, "open", "closed")
	if err := os.MkdirAll(filepath.Dir(inner), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(inner, "data")
	err := other.reach(path)
	if !errors.Is(err, ErrUnreachable) || !strings.Contains(err.Error(), "user other") ||
		!strings.HasSuffix(err.Error(), "chmod o+x "+inner+" "+closed) {
		t.Errorf("error = %v", err)
	}
	for _, dir := range []string{closed, inner} {
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.reach(path); err != nil {
		t.Errorf("after chmod o+x: %v", err)
	}
}

func TestTheOwnUserNeedsNoCheck(t *testing.T) {
	t.Parallel()
	if err := (account{}).reach("/nowhere/at/all"); err != nil {
		t.Error(err)
	}
}

func TestWhatIsRefusedIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	closed := filepath.Join(tempDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(closed, "data")
	if _, err := openDataDir(path, other); !errors.Is(err, ErrUnreachable) {
		t.Fatalf("error = %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was made: %v", err)
	}
}
