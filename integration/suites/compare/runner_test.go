package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rwproxy/rwproxy/integration/suites/backend"
)

func TestAScriptThatTakesTooLongIsEndedWithItsChildren(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"slow.sh": "#!/bin/sh\nsleep 600 &\necho $!\nwait\n"})
	if err := os.Chmod(filepath.Join(dir, "slow.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := &runner{scripts: dir}
	ended := make(chan error, 1)
	log := filepath.Join(dir, "log")
	go func() { ended <- r.execute(ctx, os.Environ(), log, "slow.sh") }()
	child := 0
	eventually(t, func() bool {
		text, err := os.ReadFile(log)
		if err != nil || !strings.HasSuffix(string(text), "\n") {
			return false
		}
		child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err == nil
	})
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	eventually(t, func() bool { return errors.Is(syscall.Kill(child, 0), syscall.ESRCH) })
}

// eventually waits until a condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition does not come true")
		}
	}
}

func TestASuiteSeesNoVariablesOfLibpqButOurs(t *testing.T) {
	t.Setenv("PGSERVICE", "elsewhere")
	t.Setenv("PGPORT", "1")
	environment := strings.Join(clientEnvironment(5432, backend.Certificate{}), "\n") + "\n"
	if strings.Contains(environment, "PGSERVICE") || strings.Contains(environment, "PGPORT=1\n") ||
		!strings.Contains(environment, "PGPORT=5432\n") {
		t.Errorf("the environment is %s", environment)
	}
}
