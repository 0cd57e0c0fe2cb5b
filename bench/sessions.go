package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// settle is how long the idle sessions are left alone before, and while, what
// they cost is measured.
const settle = 5 * time.Second

// measureSessions prints what many sessions cost each proxy, and how evenly
// busy ones are served.
func (b *bench) measureSessions(ctx context.Context) error {
	if !b.only.MatchString("sessions") {
		return nil
	}
	fmt.Printf("\n| %d idle sessions | memory of each | CPU per second of all |\n| --- | --- | --- |\n", b.idle)
	if err := b.measureIdle(ctx); err != nil {
		return err
	}
	fmt.Printf("\n| %d busy sessions | slowest/median | fastest/median |\n| --- | --- | --- |\n", b.busy)
	return b.measureBusy(ctx)
}

func (b *bench) measureIdle(ctx context.Context) error {
	if err := raiseFileLimit(); err != nil {
		return err
	}
	stub, err := startStub(net.JoinHostPort("127.0.0.1", strconv.Itoa(b.postgres.Port())))
	if err != nil {
		return err
	}
	defer stub.Close()
	ways, err := b.ways(ctx, upstream{"TCP", "127.0.0.1", stub.Addr().(*net.TCPAddr).Port})
	if err != nil {
		return err
	}
	defer stopAll(ways)
	for _, t := range ways {
		if t.pid == 0 {
			continue
		}
		if err := b.measureIdleOf(t); err != nil {
			return fmt.Errorf("idle sessions of %s: %w", t.name, err)
		}
	}
	return nil
}

func (b *bench) measureIdleOf(t *target) error {
	before, err := residentBytes(t.pid)
	if err != nil {
		return err
	}
	for range b.idle {
		conn, err := login(t.port)
		if err != nil {
			return err
		}
		defer conn.Close()
	}
	time.Sleep(settle)
	after, err := residentBytes(t.pid)
	if err != nil {
		return err
	}
	cpuBefore, err := cpuTime(t.pid)
	if err != nil {
		return err
	}
	time.Sleep(settle)
	cpuAfter, err := cpuTime(t.pid)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.1f KiB | %.0f µs |\n", t.name, float64(after-before)/float64(b.idle)/1024,
		float64((cpuAfter-cpuBefore).Microseconds())/settle.Seconds())
	return nil
}

// stubUser is whom the stub lets in.
const stubUser = "idle"

// startStub starts what a proxy takes for Postgres: thousands of sessions of
// stubUser are nothing to it. Everybody else is passed on to Postgres.
func startStub(postgres string) (net.Listener, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveStub(conn, postgres)
		}
	}()
	return listener, nil
}

func serveStub(conn net.Conn, postgres string) {
	defer conn.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(conn, head); err != nil {
		return
	}
	packet := append(head, make([]byte, min(10_000, binary.BigEndian.Uint32(head))-4)...)
	if _, err := io.ReadFull(conn, packet[4:]); err != nil {
		return
	}
	if slices.Contains(fields(packet[8:]), stubUser) {
		// AuthenticationOk, ParameterStatus, ReadyForQuery.
		answer := append([]byte{'R', 0, 0, 0, 8, 0, 0, 0, 0}, "S\x00\x00\x00\x19client_encoding\x00UTF8\x00Z\x00\x00\x00\x05I"...)
		if _, err := conn.Write(answer); err != nil {
			return
		}
		// Until the proxy goes: pgbouncer asks something, and may wait.
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	backend, err := net.Dial("tcp", postgres)
	if err != nil {
		return
	}
	defer backend.Close()
	if _, err := backend.Write(packet); err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(backend, conn)
		backend.Close()
	}()
	_, _ = io.Copy(conn, backend)
}

// fields cuts a startup packet's names and values.
func fields(b []byte) []string {
	var all []string
	start := 0
	for i, c := range b {
		if c == 0 {
			all = append(all, string(b[start:i]))
			start = i + 1
		}
	}
	return all
}

// login starts a session as stubUser.
func login(port int) (net.Conn, error) {
	conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	packet := binary.BigEndian.AppendUint32(make([]byte, 4), 3<<16)
	packet = append(packet, "user\x00"+stubUser+"\x00database\x00bench\x00\x00"...)
	binary.BigEndian.PutUint32(packet, uint32(len(packet)))
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	head := make([]byte, 5)
	for {
		if _, err := io.ReadFull(conn, head); err != nil {
			return nil, err
		}
		content := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(conn, content); err != nil {
			return nil, err
		}
		switch head[0] {
		case 'Z':
			return conn, nil
		case 'E':
			return nil, errors.New(string(content))
		}
	}
}

// raiseFileLimit raises the limit of open files, which the proxies inherit.
func raiseFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

func (b *bench) measureBusy(ctx context.Context) error {
	ways, err := b.ways(ctx, upstream{"TCP", "127.0.0.1", b.postgres.Port()})
	if err != nil {
		return err
	}
	defer stopAll(ways)
	for _, t := range ways {
		shares, err := b.shares(ctx, t)
		if err != nil {
			return fmt.Errorf("busy sessions of %s: %w", t.name, err)
		}
		slices.Sort(shares)
		middle := float64(shares[len(shares)/2])
		fmt.Printf("| %s | %.2f | %.2f |\n", t.name, float64(shares[0])/middle, float64(shares[len(shares)-1])/middle)
	}
	return nil
}

// shares returns how many queries each of many busy sessions got answered.
func (b *bench) shares(ctx context.Context, t *target) ([]int, error) {
	shares := make([]int, b.busy)
	failures := make([]error, b.busy)
	start, connected := make(chan struct{}), sync.WaitGroup{}
	var done sync.WaitGroup
	var deadline time.Time
	connected.Add(b.busy)
	for i := range shares {
		done.Go(func() {
			conn, err := t.connect(ctx)
			connected.Done()
			if err != nil {
				failures[i] = err
				return
			}
			defer conn.Close(ctx)
			<-start
			for failures[i] == nil && time.Now().Before(deadline) {
				_, failures[i] = conn.Exec(ctx, "select 1").ReadAll()
				shares[i]++
			}
		})
	}
	connected.Wait()
	// Long enough for each to be served many times.
	deadline = time.Now().Add(2 * b.duration)
	close(start)
	done.Wait()
	return shares, errors.Join(failures...)
}
