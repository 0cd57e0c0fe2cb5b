package embedded

import (
	"bytes"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// process is one run of the postgres program.
type process struct {
	cmd  *exec.Cmd
	log  *tail
	done chan struct{} // closed when the program has ended
}

// launch starts the program. It returns when the program runs.
func launch(program string, args []string, dir string, a account, logger *zap.Logger) (*process, error) {
	p := &process{
		cmd:  exec.Command(program, args...),
		log:  &tail{logger: logger},
		done: make(chan struct{}),
	}
	p.cmd.Env = environment()
	p.cmd.Dir = dir
	p.cmd.Stderr = p.log
	p.cmd.WaitDelay = 5 * time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: a.credential,
		Setpgid:    true, // the terminal's Ctrl-C is for us, not for the server
	}
	dieWithOwner(p.cmd.SysProcAttr)

	started := make(chan error, 1)
	go func() {
		// Linux sends the parent-death signal when the starting thread ends,
		// so that thread has to stay.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // how it ended is in its log
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // fails only when it has ended

func (p *process) running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the server and all its processes as a power failure would.
func (p *process) kill() {
	// A stopped postmaster starts no further process, so the list is complete.
	p.signal(syscall.SIGSTOP)
	children := childrenOf(p.pid())
	p.signal(syscall.SIGKILL)
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
}

// environment is ours without what would configure the server or its locale.
func environment() []string {
	env := []string{"LC_ALL=C"}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, "PG") && !strings.HasPrefix(name, "LC_") && name != "LANG" && name != "LANGUAGE" {
			env = append(env, entry)
		}
	}
	return env
}

// tailSize is how much of the server's log is kept for error messages.
const tailSize = 4096

// tail logs what the server writes, line by line, and keeps the end of it.
type tail struct {
	logger *zap.Logger

	mu   sync.Mutex
	end  []byte // the last tailSize bytes
	line []byte // the unfinished line
}

// Write implements io.Writer. It never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, p...)
	if extra := len(t.end) - tailSize; extra > 0 {
		t.end = append([]byte(nil), t.end[extra:]...)
	}
	t.line = append(t.line, p...)
	for {
		line, rest, found := bytes.Cut(t.line, []byte("\n"))
		if !found && len(t.line) < tailSize {
			return len(p), nil
		}
		t.logger.Debug("postgres log", zap.ByteString("line", line))
		t.line = append([]byte(nil), rest...)
	}
}

// last returns the end of the log.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return lastLines(string(t.end), 5)
}

// lastLines returns the last n lines of text as one line.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "; ")
}
