package integration

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startBalancer runs haproxy with the configuration of deploy, with the
// addresses of instances in place of its own, and returns where it listens.
func startBalancer(t *testing.T, servers ...string) string {
	t.Helper()
	text, err := os.ReadFile("../deploy/haproxy/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	var config []string
	for line := range strings.Lines(string(text)) {
		switch fields := strings.Fields(line); {
		case len(fields) == 2 && fields[0] == "bind":
			line = "    bind " + address + "\n"
		case len(fields) == 3 && fields[0] == "server":
			if len(servers) == 0 {
				t.Fatal("it names more servers than the test has")
			}
			line = "    server " + fields[1] + " " + servers[0] + "\n"
			servers = servers[1:]
		}
		config = append(config, line)
	}
	if len(servers) > 0 {
		t.Fatal("it names fewer servers than the test has")
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(strings.Join(config, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	var log logBuffer
	cmd := exec.Command("haproxy", "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		missing(t, "haproxy", err, nil)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its log says why
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // else it has ended
		<-ended
	})
	eventually(t, "haproxy listens", func() bool {
		select {
		case <-ended:
			t.Fatalf("it ended\n%s", log.String())
		default:
		}
		conn, err := net.DialTimeout("tcp", address, time.Second)
		return err == nil && conn.Close() == nil
	})
	return address
}

// An instance behind the balancer is told to stop: what it runs is answered,
// and whoever comes then gets to the other one.
func TestAnInstanceLeavesABalancerAndNobodyNotices(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	var instances []*proxy
	var servers []string
	for range 2 {
		console, err := freeAddress()
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(console)
		if err != nil {
			t.Fatal(err)
		}
		p := ownProxy(t, server.URL("postgres"), "--proxy-protocol", "on", "--http", console, "--log-level", "debug")
		instances = append(instances, p)
		servers = append(servers, p.addr+" port "+port)
	}
	balanced := (&proxy{addr: startBalancer(t, servers...)}).url(d.direct)
	leaving, staying := instances[0], instances[1]
	serves := func(p *proxy, s *session) bool { // its log has the client's own address
		return strings.Contains(p.log.String(), `"`+s.conn.Conn().LocalAddr().String()+`"`)
	}

	var busy, other *session
	eventually(t, "both instances have sessions", func() bool {
		if s := connect(t, balanced); serves(leaving, s) {
			busy = s
		} else {
			other = s
		}
		return busy != nil && other != nil
	})
	blocker := connect(t, d.direct)
	blocker.exec("create table source (id int)", "begin", "lock table source")
	answered := make(chan error, 1)
	go func() {
		_, err := busy.conn.Exec(t.Context(), "insert into source values (1)").ReadAll()
		answered <- err
	}()
	eventually(t, "it waits for the lock", func() bool {
		return blocker.value("select count(*) from pg_locks where relation = 'source'::regclass and not granted") == "1"
	})
	if err := leaving.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		s := connect(t, balanced)
		if s.value("select 1"); !serves(staying, s) {
			t.Error("a new session went to the instance that leaves")
		}
		s.close()
	}
	blocker.exec("commit")
	if err := <-answered; err != nil {
		t.Errorf("what ran was not answered: %v", err)
	}
	select {
	case <-leaving.exited:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	if leaving.status != nil {
		t.Errorf("it left with %v\n%s", leaving.status, leaving.log.String())
	}
	if got := other.value("select count(*) from source"); got != "1" {
		t.Errorf("the other instance's session: %s", got)
	}
}
