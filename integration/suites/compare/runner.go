package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rwproxy/rwproxy/integration/suites/backend"
)

// preparing is how long a script may take to fetch and build its suites.
const preparing = 15 * time.Minute

// runner runs suites.
type runner struct {
	program  string // rwproxy
	scripts  string // folder of the scripts
	work     string // folder of what the scripts fetch
	output   string // folder of what the suites print
	prepared map[string]string
}

// compare runs a suite directly and through the proxy. If a test's outcomes
// differ it does both again, to tell tests that are unstable by themselves.
func (r *runner) compare(ctx context.Context, s suite) report {
	rep := report{suite: s.name}
	first, err := r.both(ctx, s, "1")
	if err != nil {
		rep.err = err
		return rep
	}
	rep.direct, rep.proxied = first.direct.passed(), first.proxied.passed()
	rep.tests = len(first.names())
	rounds := []round{first}
	if len(first.differing()) > 0 {
		second, err := r.both(ctx, s, "2")
		if err != nil {
			rep.err = err
			return rep
		}
		rounds = append(rounds, second)
	}
	rep.differences = differences(rounds)
	return rep
}

// both runs a suite directly and through the proxy, each on a new server.
func (r *runner) both(ctx context.Context, s suite, number string) (round, error) {
	var both round
	source, err := r.prepare(ctx, s.script)
	if err != nil {
		return both, err
	}
	err = backend.Postgres(ctx, s.server, func(server backend.Server) (err error) {
		both.direct, err = r.run(ctx, s, source, "direct-"+number, clientEnvironment(server.Port, server.Certificate))
		return err
	})
	if err != nil {
		return both, err
	}
	err = backend.Postgres(ctx, s.server, func(server backend.Server) error {
		return backend.Rwproxy(ctx, r.program, server, func(port int) (err error) {
			both.proxied, err = r.run(ctx, s, source, "rwproxy-"+number, clientEnvironment(port, server.Certificate))
			return err
		})
	})
	return both, err
}

// prepare has a script fetch its suites, once, and returns the folder.
func (r *runner) prepare(ctx context.Context, script string) (string, error) {
	if dir, ok := r.prepared[script]; ok {
		return dir, nil
	}
	dir := filepath.Join(r.work, strings.TrimSuffix(script, ".sh"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, preparing)
	defer cancel()
	if err := r.execute(ctx, os.Environ(), filepath.Join(dir, "prepare.log"), script, "prepare", dir); err != nil {
		return "", err
	}
	r.prepared[script] = dir
	return dir, nil
}

// run runs a suite against a server and reads its results. That tests fail is a
// result too; that there is none is an error.
func (r *runner) run(ctx context.Context, s suite, source, side string, environment []string) (results, error) {
	dir := filepath.Join(r.output, s.name, side)
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	// The server's user writes there too.
	if err := os.Chmod(dir, 0o777); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	failure := r.execute(ctx, environment, filepath.Join(dir, "log"), s.script, s.name, source, dir)
	if ctx.Err() != nil {
		return nil, failure
	}
	found, err := s.read(dir)
	if err == nil && len(found) == 0 {
		err = errors.New("it has no results")
	}
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", s.name, side, errors.Join(err, failure))
	}
	return found, nil
}

// execute runs a script, which may not outlive ctx, nor may its children.
func (r *runner) execute(ctx context.Context, environment []string, log, script string, arguments ...string) error {
	output, err := os.Create(log)
	if err != nil {
		return err
	}
	defer output.Close()
	command := exec.CommandContext(ctx, filepath.Join(r.scripts, script), arguments...)
	command.Env = environment
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	err = command.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		err = errors.Join(ctx.Err(), err)
	}
	text, _ := os.ReadFile(log) // what it has printed only explains err
	return fmt.Errorf("%s %s: %w\n%s", script, strings.Join(arguments, " "), err, lastLines(string(text), 20))
}

// clientEnvironment returns our environment with libpq's variables for a
// superuser's connection to the port, and no others of libpq's. PGSSLROOTCERT
// is there where TLS is.
func clientEnvironment(port int, c backend.Certificate) []string {
	var kept []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "PG") {
			kept = append(kept, variable)
		}
	}
	if c.File != "" {
		kept = append(kept, "PGSSLROOTCERT="+c.File)
	}
	return append(kept,
		"PGHOST=127.0.0.1", "PGPORT="+strconv.Itoa(port), "PGUSER=postgres", "PGDATABASE=postgres")
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
