package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"
)

// environment is a lookup function over a map.
func environment(variables map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { value, ok := variables[name]; return value, ok }
}

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rwproxy.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func load(t *testing.T, flags Flags, variables map[string]string) *Settings {
	t.Helper()
	s, err := Load(flags, environment(variables))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// faults loads settings that are wrong and returns what is said of them.
func faults(t *testing.T, flags Flags, variables map[string]string) []string {
	t.Helper()
	_, err := Load(flags, environment(variables))
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %q", err)
	}
	var texts []string
	for _, fault := range err.(*Faults).Unwrap() {
		texts = append(texts, fault.Error())
	}
	return texts
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d faults, want %d: %q", len(got), len(want), got)
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("fault %q does not say %q", got[i], want[i])
		}
	}
}

func TestNothingGivenMeansTheDefaults(t *testing.T) {
	t.Parallel()
	got := load(t, Flags{}, nil)
	want := &Settings{
		Listen:            Listen{"tcp", "127.0.0.1:6432"},
		DataDir:           "./rwproxy-data",
		HTTP:              "127.0.0.1:6433",
		HTTPPublicMetrics: true,
		HistoryDays:       30,
		MaxRefreshes:      4,
		ScheduleJitter:    5 * time.Second,
		LogLevel:          zapcore.InfoLevel,
		LogFormat:         LogAuto,
		ShutdownTimeout:   30 * time.Second,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("settings = %+v", got)
	}
}

func TestAFlagBeatsTheEnvironmentWhichBeatsTheFile(t *testing.T) {
	t.Parallel()
	file := write(t, "listen: 127.0.0.1:1001\nhttp: 127.0.0.1:1002\ndata-dir: from-file\n")
	flag := "127.0.0.1:3001"
	got := load(t, Flags{Listen: &flag}, map[string]string{
		"RWPROXY_CONFIG": file,
		"RWPROXY_LISTEN": "127.0.0.1:2001",
		"RWPROXY_HTTP":   "127.0.0.1:2002",
	})
	if got.Listen.Address != flag || got.HTTP != "127.0.0.1:2002" || got.DataDir != "from-file" {
		t.Errorf("settings = %+v", got)
	}
}

func TestAnEmptyVariableCountsAsAbsent(t *testing.T) {
	t.Parallel()
	if got := load(t, Flags{}, map[string]string{"RWPROXY_HTTP": "", "RWPROXY_CONFIG": ""}); got.HTTP != "127.0.0.1:6433" {
		t.Errorf("http = %q", got.HTTP)
	}
}

func TestValuesInTheFileAreTakenAsWritten(t *testing.T) {
	t.Parallel()
	file := write(t, "http: off\nlisten: [a, b]\n")
	expect(t, faults(t, Flags{Config: &file}, nil), "line 2: listen takes one value")

	file = write(t, "http: off\nlisten: \"[::1]:6432\"\nlog-level:\n")
	got := load(t, Flags{Config: &file}, nil)
	if got.HTTP != "" || got.Listen.Address != "[::1]:6432" || got.LogLevel != zapcore.InfoLevel {
		t.Errorf("settings = %+v", got)
	}
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	file := write(t, "shutdown-timeout: soon\nport: 6432\n")
	listen, format := "6432", "xml"
	got := faults(t, Flags{Config: &file, Listen: &listen, LogFormat: &format}, map[string]string{
		"RWPROXY_LOG_LEVEL":       "loud",
		"RWPROXY_HTTP":            "localhost:99999",
		"RWPROXY_TLS_CERT":        "/nowhere/cert.pem",
		"RWPROXY_PROXY_PROTOCOL":  "v2",
		"RWPROXY_MAX_CONNECTIONS": "0",
		"RWPROXY_MAX_REFRESHES":   "none",
		"RWPROXY_SCHEDULE_JITTER": "-1s",
		"RWPROXY_UPSTREAM":        "mysql://localhost",
	})
	expect(t, got,
		`there is no setting "port"`,
		`--listen: "6432" is not host:port, or an absolute path`,
		"RWPROXY_UPSTREAM: not a libpq URL",
		`RWPROXY_HTTP: "localhost:99999" is not host:port, or off`,
		"RWPROXY_TLS_CERT: open /nowhere/cert.pem",
		`RWPROXY_PROXY_PROTOCOL: "v2" is neither on nor off`,
		`RWPROXY_MAX_CONNECTIONS: "0" is not a number from 1, or none`,
		`RWPROXY_MAX_REFRESHES: "none" is not a number from 1`,
		`RWPROXY_SCHEDULE_JITTER: "-1s" is not a duration`,
		`RWPROXY_LOG_LEVEL: "loud" is none of debug, info, warn, error`,
		`--log-format: "xml" is none of auto, console, json`,
		`shutdown-timeout in the file: "soon" is not a duration`,
	)
}

func TestFaultsBetweenSettingsAreFound(t *testing.T) {
	t.Parallel()
	everywhere, cert := "0.0.0.0:6432", write(t, "")
	expect(t, faults(t, Flags{Listen: &everywhere, TLSCert: &cert}, nil),
		"tls-cert and tls-key: set both or neither",
		"listen: the embedded Postgres asks for no password")

	upstream := "postgres://db.example"
	load(t, Flags{Listen: &everywhere, Upstream: &upstream}, nil)
}

func TestAMissingOrUnreadableFileIsAFault(t *testing.T) {
	t.Parallel()
	missing := "/nowhere/rwproxy.yaml"
	expect(t, faults(t, Flags{Config: &missing}, nil), "open /nowhere/rwproxy.yaml")

	secret := write(t, "upstream: hunter2: hunter2")
	got := faults(t, Flags{Config: &secret}, nil)
	expect(t, got, "not a YAML mapping")
	if strings.Contains(got[0], "hunter2") {
		t.Errorf("the fault quotes the file: %s", got[0])
	}
}

func TestEverySettingHasAFlagAndAVariableInTheHelp(t *testing.T) {
	t.Parallel()
	flags := Flags{}
	value := reflect.ValueOf(&flags).Elem()
	helps := map[string]string{}
	for i := range value.NumField() {
		given := ""
		value.Field(i).Set(reflect.ValueOf(&given))
		tag := value.Type().Field(i).Tag
		helps[tag.Get("name")] = tag.Get("help")
	}
	names := []string{"config"}
	for _, setting := range table {
		names = append(names, setting.name)
		if !strings.Contains(helps[setting.name], "$"+setting.variable()) {
			t.Errorf("the help of --%s does not name %s", setting.name, setting.variable())
		}
		if !strings.Contains(helps[setting.name], setting.initial) {
			t.Errorf("the help of --%s does not name the default %s", setting.name, setting.initial)
		}
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(helps)); !slices.Equal(got, names) {
		t.Errorf("flags %q, settings %q", got, names)
	}
	if got := slices.Sorted(maps.Keys(flags.values())); !slices.Equal(got, names) {
		t.Errorf("flags that are read %q, settings %q", got, names)
	}
}
