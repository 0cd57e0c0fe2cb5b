package backend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// starting is how long the proxy may take until it accepts connections.
const starting = 30 * time.Second

// Rwproxy calls use with the port, on 127.0.0.1, of a proxy in front of a
// server. If that offers TLS so does the proxy, with the same certificate, and
// uses it too. Rwproxy returns an error too if the proxy does not end in order
// afterwards.
func Rwproxy(ctx context.Context, program string, server Server, use func(port int) error) (err error) {
	port, err := freePort()
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	arguments := []string{"serve", "--listen", address, "--http", "off", "--log-level", "error"}
	if c := server.Certificate; c.File != "" {
		arguments = append(arguments, "--upstream", server.URL+"?sslmode=require", "--tls-cert", c.File, "--tls-key", c.Key)
	} else {
		arguments = append(arguments, "--upstream", server.URL)
	}
	command := exec.CommandContext(ctx, program, arguments...)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = stopping
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	if err := await(address, ended); err != nil {
		return fmt.Errorf("rwproxy does not start: %w\n%s", err, log.Bytes())
	}
	defer func() {
		// An error means that it has ended already, which Wait reports.
		_ = command.Process.Signal(syscall.SIGTERM)
		if failure := <-ended; failure != nil {
			err = errors.Join(err, fmt.Errorf("rwproxy: %w\n%s", failure, log.Bytes()))
		}
	}()
	return use(port)
}

// await returns when the address accepts connections, or an error if the
// process ends before that.
func await(address string, ended <-chan error) error {
	deadline := time.Now().Add(starting)
	for {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return err
		}
		select {
		case err := <-ended:
			return errors.Join(errors.New("it has ended"), err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// freePort returns a loopback port that nothing listens on.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port, nil
}
