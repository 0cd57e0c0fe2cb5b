// Package config is the program's settings: one struct, filled from a file,
// the environment and the command line, in this order of increasing
// precedence. All faults are reported at once, and no value of the upstream
// setting is ever part of one, since it may hold a password.
//
// It may import nothing of this module.
package config

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"go.uber.org/zap/zapcore"
)

// Settings are the program's settings, checked.
type Settings struct {
	// Listen is where clients connect to.
	Listen Listen
	// Upstream is the Postgres behind the proxy; nil means an embedded one.
	Upstream *Upstream
	// DataDir is where the embedded Postgres keeps its data.
	DataDir string
	// HTTP is the host:port of health, metrics and the pipelines API, "" for
	// none.
	HTTP string
	// HTTPURL is where clients reach the API, nil if that is not known.
	HTTPURL *url.URL
	// HTTPPublicMetrics says that metrics are shown to everybody.
	HTTPPublicMetrics bool
	// APITokens is the file of the API's bearer tokens, "" for none.
	APITokens string
	// TLSCert and TLSKey are PEM files; both are "" or neither.
	TLSCert, TLSKey string
	// ProxyProtocol says that a PROXY protocol header comes first on every
	// connection of a client.
	ProxyProtocol bool
	// MaxConnections is how many clients may be connected, 0 for any number.
	MaxConnections int
	// HistoryDays is how long refreshes that have ended are kept, 0 for ever.
	HistoryDays int
	// MaxRefreshes is how many refreshes that no client waits for run at once.
	MaxRefreshes int
	// ScheduleJitter spreads the refreshes of one scheduled time; 0 for none.
	ScheduleJitter time.Duration
	LogLevel       zapcore.Level
	LogFormat      LogFormat
	// ShutdownTimeout is how long running statements may take to finish once
	// the program has been told to stop.
	ShutdownTimeout time.Duration
}

// Listen is the address of a listener, for net.Listen.
type Listen struct {
	Network string // tcp or unix
	Address string // host:port, or the path of the socket
}

// LogFormat is how log records are written.
type LogFormat string

// The log formats. LogAuto is LogConsole on a terminal, else LogJSON.
const (
	LogAuto    LogFormat = "auto"
	LogConsole LogFormat = "console"
	LogJSON    LogFormat = "json"
)

// Flags are the settings as command-line flags, for kong. A nil one was not
// given; what a value means, and its default, is the business of [Load].
type Flags struct {
	Config          *string `name:"config" placeholder:"FILE" help:"A YAML file with these settings, named as the flags are ($RWPROXY_CONFIG)."`
	Listen          *string `name:"listen" placeholder:"ADDRESS" help:"Where clients connect: host:port, or a directory for a Unix socket (127.0.0.1:6432, $RWPROXY_LISTEN)."`
	Upstream        *string `name:"upstream" placeholder:"URL" help:"The Postgres behind the proxy, a libpq URL or keyword string. Its user and password are the service connection's, its host, port and sslmode are where sessions go (none: an embedded Postgres, $RWPROXY_UPSTREAM)."`
	DataDir         *string `name:"data-dir" placeholder:"DIR" help:"Where the embedded Postgres keeps its data (./rwproxy-data, $RWPROXY_DATA_DIR)."`
	HTTP            *string `name:"http" placeholder:"ADDRESS" help:"host:port of health, metrics and the pipelines API, or off (127.0.0.1:6433, $RWPROXY_HTTP)."`
	HTTPURL         *string `name:"http-url" placeholder:"URL" help:"Where clients reach the API, as REFRESH ... ASYNC tells them (that of --http, $RWPROXY_HTTP_URL)."`
	PublicMetrics   *string `name:"http-public-metrics" placeholder:"on|off" help:"Whether metrics are shown to everybody, or to members of pg_monitor who log in (on, $RWPROXY_HTTP_PUBLIC_METRICS)."`
	APITokens       *string `name:"api-tokens" placeholder:"FILE" help:"Bearer tokens of the API: a line of rwproxy token for each (none, $RWPROXY_API_TOKENS)."`
	TLSCert         *string `name:"tls-cert" placeholder:"FILE" help:"The certificate chain shown to clients, PEM (none: TLS is refused, $RWPROXY_TLS_CERT)."`
	TLSKey          *string `name:"tls-key" placeholder:"FILE" help:"The certificate's key, PEM ($RWPROXY_TLS_KEY)."`
	ProxyProtocol   *string `name:"proxy-protocol" placeholder:"on|off" help:"Whether a balancer sends a PROXY protocol header, version 1 or 2, in front of every connection (off, $RWPROXY_PROXY_PROTOCOL)."`
	MaxConnections  *string `name:"max-connections" placeholder:"NUMBER" help:"How many clients may be connected at a time, or none for no limit (none, $RWPROXY_MAX_CONNECTIONS)."`
	HistoryDays     *string `name:"history-days" placeholder:"NUMBER" help:"For how many days refreshes that have ended stay in the history, or none to keep them for ever (30, $RWPROXY_HISTORY_DAYS)."`
	MaxRefreshes    *string `name:"max-refreshes" placeholder:"NUMBER" help:"How many refreshes that run by themselves (ASYNC, schedules, triggers, the API) run at once (4, $RWPROXY_MAX_REFRESHES)."`
	ScheduleJitter  *string `name:"schedule-jitter" placeholder:"DURATION" help:"Over how long the refreshes of one scheduled time are spread, each table always as late, 0 for none (5s, $RWPROXY_SCHEDULE_JITTER)."`
	LogLevel        *string `name:"log-level" placeholder:"LEVEL" help:"debug, info, warn or error (info, $RWPROXY_LOG_LEVEL)."`
	LogFormat       *string `name:"log-format" placeholder:"FORMAT" help:"console, json, or auto: console on a terminal, else json (auto, $RWPROXY_LOG_FORMAT)."`
	ShutdownTimeout *string `name:"shutdown-timeout" placeholder:"DURATION" help:"How long running statements may take to finish after the first signal (30s, $RWPROXY_SHUTDOWN_TIMEOUT)."`
}

// values returns the flags that were given, by setting.
func (f Flags) values() map[string]string {
	values := map[string]string{}
	for name, value := range map[string]*string{
		"config":              f.Config,
		"listen":              f.Listen,
		"upstream":            f.Upstream,
		"data-dir":            f.DataDir,
		"http":                f.HTTP,
		"http-url":            f.HTTPURL,
		"http-public-metrics": f.PublicMetrics,
		"api-tokens":          f.APITokens,
		"tls-cert":            f.TLSCert,
		"tls-key":             f.TLSKey,
		"proxy-protocol":      f.ProxyProtocol,
		"max-connections":     f.MaxConnections,
		"history-days":        f.HistoryDays,
		"max-refreshes":       f.MaxRefreshes,
		"schedule-jitter":     f.ScheduleJitter,
		"log-level":           f.LogLevel,
		"log-format":          f.LogFormat,
		"shutdown-timeout":    f.ShutdownTimeout,
	} {
		if value != nil {
			values[name] = *value
		}
	}
	return values
}

// setting is one row of the table of settings.
type setting struct {
	name    string // of the flag, and in the file
	initial string
	set     func(s *Settings, value string) error
}

// variable returns the setting's environment variable.
func (s setting) variable() string {
	return "RWPROXY_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_"))
}

// table lists the settings, without the name of the file itself.
var table = []setting{
	{"listen", "127.0.0.1:6432", func(s *Settings, v string) (err error) { s.Listen, err = parseListen(v); return err }},
	{"upstream", "", func(s *Settings, v string) (err error) { s.Upstream, err = parseUpstream(v); return err }},
	{"data-dir", "./rwproxy-data", func(s *Settings, v string) (err error) { s.DataDir, err = parseDataDir(v); return err }},
	{"http", "127.0.0.1:6433", func(s *Settings, v string) (err error) { s.HTTP, err = parseHTTP(v); return err }},
	{"http-url", "", func(s *Settings, v string) (err error) { s.HTTPURL, err = parseHTTPURL(v); return err }},
	{"http-public-metrics", "on", func(s *Settings, v string) (err error) { s.HTTPPublicMetrics, err = parseSwitch(v); return err }},
	{"api-tokens", "", func(s *Settings, v string) (err error) { s.APITokens, err = readable(v); return err }},
	{"tls-cert", "", func(s *Settings, v string) (err error) { s.TLSCert, err = readable(v); return err }},
	{"tls-key", "", func(s *Settings, v string) (err error) { s.TLSKey, err = readable(v); return err }},
	{"proxy-protocol", "off", func(s *Settings, v string) (err error) { s.ProxyProtocol, err = parseSwitch(v); return err }},
	{"max-connections", "none", func(s *Settings, v string) (err error) { s.MaxConnections, err = parseLimit(v); return err }},
	{"history-days", "30", func(s *Settings, v string) (err error) { s.HistoryDays, err = parseLimit(v); return err }},
	{"max-refreshes", "4", func(s *Settings, v string) (err error) { s.MaxRefreshes, err = parseCount(v); return err }},
	{"schedule-jitter", "5s", func(s *Settings, v string) (err error) { s.ScheduleJitter, err = parseTimeout(v); return err }},
	{"log-level", "info", func(s *Settings, v string) (err error) { s.LogLevel, err = parseLogLevel(v); return err }},
	{"log-format", string(LogAuto), func(s *Settings, v string) (err error) { s.LogFormat, err = parseLogFormat(v); return err }},
	{"shutdown-timeout", "30s", func(s *Settings, v string) (err error) { s.ShutdownTimeout, err = parseTimeout(v); return err }},
}

// check finds the faults that lie between settings. It does not judge by a
// setting that is faulty itself.
func (s *Settings) check(faulty map[string]bool) []error {
	var faults []error
	if (s.TLSCert == "") != (s.TLSKey == "") && !faulty["tls-cert"] && !faulty["tls-key"] {
		faults = append(faults, errors.New("tls-cert and tls-key: set both or neither"))
	}
	if s.Upstream == nil && !s.Listen.local() && !faulty["upstream"] && !faulty["listen"] {
		faults = append(faults, errors.New("listen: the embedded Postgres asks for no password, so without upstream clients can only be local: use a loopback address or a Unix socket, or name a Postgres with upstream"))
	}
	return faults
}
