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
	if u.Network != "tcp" || u.Address != "db.example:6000" || u.ConnectTimeout != 3*time.Second {
		t.Errorf("target = %s %s %s", u.Network, u.Address, u.ConnectTimeout)
	}
	s := u.Service
	if s.User != "flow" || s.Password != "s#cret" || s.Database != "main" || s.RuntimeParams["application_name"] != "rwproxy" {
		t.Errorf("service = %s %s %v", s.User, s.Database, s.RuntimeParams)
	}
}

func TestSSLModeBecomesAttemptsInOrder(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"disable": "plain", "allow": "plain, TLS", "prefer": "TLS, plain", "require": "TLS", "verify-full": "TLS",
	} {
		u, err := NewUpstream("host=db.example user=u sslmode=" + mode)
		if err != nil {
			t.Fatal(err)
		}
		var attempts []string
		for _, attempt := range u.TLS {
			if attempt == nil {
				attempts = append(attempts, "plain")
			} else {
				attempts = append(attempts, "TLS")
			}
		}
		if got := strings.Join(attempts, ", "); got != want {
			t.Errorf("sslmode %s: %s, want %s", mode, got, want)
		}
	}
}

func TestADirectoryIsAUnixSocketWithoutTLS(t *testing.T) {
	t.Parallel()
	u, err := NewUpstream("postgres://postgres@/main?host=%2Frun%2Fpg&port=5433&sslmode=require")
	if err != nil {
		t.Fatal(err)
	}
	if u.Network != "unix" || u.Address != "/run/pg/.s.PGSQL.5433" || len(u.TLS) != 1 || u.TLS[0] != nil {
		t.Errorf("target = %s %s %v", u.Network, u.Address, u.TLS)
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
