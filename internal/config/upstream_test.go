package config

import (
	"strings"
	"testing"
	"time"
)

func TestAnUpstreamIsAServiceConnectionAndATargetOfSessions(t *testing.T) {
	t.Parallel()
	u, err := NewUpstream("postgres://flow:s%23cret@db.example:6000/main?sslmode=disable&connect_timeout=3")
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != "db.example" || u.Port != 6000 || u.SSLMode != "disable" || u.ConnectTimeout != 3*time.Second {
		t.Errorf("target = %+v", u)
	}
	s := u.Service
	if s.User != "flow" || s.Password != "s#cret" || s.Database != "main" || s.RuntimeParams["application_name"] != "rwproxy" {
		t.Errorf("service = %s %s %v", s.User, s.Database, s.RuntimeParams)
	}
}

func TestSSLModeIsLibpqs(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"disable", "prefer", "require", "verify-ca", "verify-full"} {
		u, err := NewUpstream("host=db.example user=u sslmode=" + mode)
		if err != nil {
			t.Fatal(err)
		}
		if u.SSLMode != mode {
			t.Errorf("sslmode %s became %s", mode, u.SSLMode)
		}
	}
	u, err := NewUpstream("host=db.example user=u")
	if err != nil || u.SSLMode != "prefer" {
		t.Errorf("default: %v, %v", u, err)
	}
}

func TestADirectoryIsAUnixSocketWithoutTLS(t *testing.T) {
	t.Parallel()
	u, err := NewUpstream("postgres://postgres@/main?host=%2Frun%2Fpg&port=5433&sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	if u.Host != "/run/pg" || u.Port != 5433 || u.SSLMode != "disable" {
		t.Errorf("target = %s %d %s", u.Host, u.Port, u.SSLMode)
	}
}

func TestABadUpstreamIsExplainedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	for conninfo, want := range map[string]string{
		"postgres://u:hunter2@h/db?sslmode=always":                            "sslmode is none of",
		"postgres://u:hunter2@h/db?sslmode=verify-ca&sslrootcert=/nowhere/ca": "the TLS settings cannot be used",
		"postgres://u:hun:ter2@h:port/db":                                     "the port is not a number",
		"postgres://u:p/hunter2@h/db":                                         "the port is not a number",
		"postgres://u:hunter2@a,b/db":                                         "names several hosts",
		"postgres://u:hunter2@h/db?sslmode=allow":                             "sslmode allow is not supported",
		"password='hunter2":                                                   "not a libpq URL",
		"mysql://u:hunter2@h":                                                 "not a libpq URL",
	} {
		_, err := NewUpstream(conninfo)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error = %v, want %s", conninfo, err, want)
			continue
		}
		if strings.Contains(err.Error(), "ter2") {
			t.Errorf("the error shows the password: %v", err)
		}
	}
}
