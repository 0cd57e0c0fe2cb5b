package config

import "testing"

func TestListenIsAnAddressOrADirectory(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]Listen{
		"localhost:6432": {"tcp", "localhost:6432"},
		":0":             {"tcp", ":0"},
		"[::1]:5432":     {"tcp", "[::1]:5432"},
		"/run/rwproxy":   {"unix", "/run/rwproxy/.s.PGSQL.6432"},
	} {
		got, err := parseListen(value)
		if err != nil || got != want {
			t.Errorf("%s: %v, %v", value, got, err)
		}
	}
	for _, value := range []string{"", "localhost", "localhost:", "localhost:http", "::1:5432"} {
		if got, err := parseListen(value); err == nil {
			t.Errorf("%q was read as %v", value, got)
		}
	}
}

func TestOnlyLoopbackAndSocketsAreLocal(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]bool{
		"127.0.0.1:1": true, "127.1.2.3:1": true, "[::1]:1": true, "localhost:1": true, "/run": true,
		":1": false, "0.0.0.0:1": false, "[::]:1": false, "192.0.2.1:1": false, "db.example:1": false,
	} {
		l, err := parseListen(value)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.local(); got != want {
			t.Errorf("%s: %v", value, got)
		}
	}
}
