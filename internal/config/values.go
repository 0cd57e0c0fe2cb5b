package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
)

// socketName is the file that a client looks for in a socket's directory: the
// port is the proxy's default one.
const socketName = ".s.PGSQL.6432"

func parseListen(value string) (Listen, error) {
	if strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "../") {
		path, err := filepath.Abs(filepath.Join(value, socketName))
		return Listen{Network: "unix", Address: path}, err
	}
	if err := checkHostPort(value); err != nil {
		return Listen{}, fmt.Errorf("%w, or an absolute path to a directory for a Unix socket", err)
	}
	return Listen{Network: "tcp", Address: value}, nil
}

// local reports whether only this machine can reach the listener.
func (l Listen) local() bool {
	if l.Network == "unix" {
		return true
	}
	host, _, _ := net.SplitHostPort(l.Address) // checked before
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func parseDataDir(value string) (string, error) {
	if value == "" {
		return "", errors.New("no directory named")
	}
	return value, nil
}

func parseHTTP(value string) (string, error) {
	if value == "off" {
		return "", nil
	}
	if err := checkHostPort(value); err != nil {
		return "", fmt.Errorf("%w, or off", err)
	}
	return value, nil
}

// parseHTTPURL returns nil for none.
func parseHTTPURL(value string) (*url.URL, error) {
	if value == "" {
		return nil, nil
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("not a URL such as https://rwproxy.example.com")
	}
	return u, nil
}

func checkHostPort(value string) error {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is not host:port", value)
	}
	return nil
}

// readable returns the name of a file that can be read.
func readable(value string) (string, error) {
	if value == "" {
		return "", nil
	}
	file, err := os.Open(value)
	if err != nil {
		return "", err
	}
	return value, file.Close()
}

func parseSwitch(value string) (bool, error) {
	switch value {
	case "on", "true":
		return true, nil
	case "off", "false":
		return false, nil
	}
	return false, fmt.Errorf("%q is neither on nor off", value)
}

// parseLimit returns 0 for none.
func parseLimit(value string) (int, error) {
	if value == "none" {
		return 0, nil
	}
	limit, err := parseCount(value)
	if err != nil {
		return 0, fmt.Errorf("%w, or none", err)
	}
	return limit, nil
}

func parseCount(value string) (int, error) {
	count, err := strconv.ParseInt(value, 10, 32)
	if err != nil || count < 1 {
		return 0, fmt.Errorf("%q is not a number from 1", value)
	}
	return int(count), nil
}

func parseLogLevel(value string) (zapcore.Level, error) {
	switch value {
	case "debug", "info", "warn", "error":
		return zapcore.ParseLevel(value)
	}
	return 0, fmt.Errorf("%q is none of debug, info, warn, error", value)
}

func parseLogFormat(value string) (LogFormat, error) {
	switch format := LogFormat(value); format {
	case LogAuto, LogConsole, LogJSON:
		return format, nil
	}
	return "", fmt.Errorf("%q is none of auto, console, json", value)
}

func parseTimeout(value string) (time.Duration, error) {
	duration, err := time.ParseDuration(value)
	if err != nil || duration < 0 {
		return 0, fmt.Errorf("%q is not a duration such as 30s or 2m", value)
	}
	return duration, nil
}
