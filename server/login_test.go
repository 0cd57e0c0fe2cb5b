package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgproto3/v2"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rwproxy/rwproxy/internal/pgdiag"
	"github.com/rwproxy/rwproxy/server"
)

// front starts a proxy with TLS in front of a secure Postgres.
func (p *securePostgres) front(t *testing.T, mode server.SSLMode, change ...func(*server.Config)) *proxy {
	return startProxy(t, refreshing, append([]func(*server.Config){func(config *server.Config) {
		config.TLS = &tls.Config{Certificates: []tls.Certificate{p.pair}}
		config.Upstream.Port = p.Port()
		config.Upstream.SSLMode = mode
		config.Upstream.RootCAs = p.pool
		config.Verifier = p.verifier
	}}, change...)...)
}

func overSocket(p *securePostgres) func(*server.Config) {
	return func(config *server.Config) { config.Upstream.Host = p.SocketDir() }
}

// outcome logs in and returns what a client sees of it.
func (p *securePostgres) outcome(t *testing.T, address, user, password, options string) string {
	t.Helper()
	config, err := pgx.ParseConfig(fmt.Sprintf("postgres://%s:%s@%s/postgres?%s", user, password, address, options))
	if err != nil {
		t.Fatal(err)
	}
	if config.TLSConfig != nil {
		config.TLSConfig = &tls.Config{RootCAs: p.pool, ServerName: "127.0.0.1", NextProtos: config.TLSConfig.NextProtos}
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr):
		return fmt.Sprintf("%s %s: %s (%s)", pgErr.Severity, pgErr.Code, pgErr.Message, pgErr.Detail)
	case err != nil:
		return err.Error()
	}
	defer conn.Close(ctx)
	return "logged in as " + value(t, conn, "select current_user")
}

// TestLoginsThroughTLSOnBothSides shares one Postgres, since it takes a while
// to make one.
func TestLoginsThroughTLSOnBothSides(t *testing.T) {
	t.Parallel()
	postgres := startSecure(t)
	for name, test := range map[string]func(*testing.T, *securePostgres){
		"a login looks like a direct one":                           looksDirect,
		"a login can be bound to the proxy's certificate":           canBeBound,
		"a changed password counts at once":                         changedPassword,
		"without verifiers SCRAM is relayed":                        withoutVerifiers,
		"a role that does not exist is challenged as Postgres does": mockChallenge,
		"bad SCRAM messages are refused in Postgres's words":        badMessages,
		"a login that is not finished is ended":                     unfinished,
		"stop ends a login that waits":                              stopped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, postgres)
		})
	}
}

func looksDirect(t *testing.T, postgres *securePostgres) {
	direct := fmt.Sprintf("127.0.0.1:%d", postgres.Port())
	proxied := postgres.front(t, server.SSLVerifyFull).address
	for _, test := range []struct{ user, password, want string }{
		{"scram_user", "secret", "logged in as scram_user"},
		{"scram_user", "wrong", `FATAL 28P01: password authentication failed for user "scram_user" ()`},
		{"nobody_at_all", "secret", `FATAL 28P01: password authentication failed for user "nobody_at_all" ()`},
		{"without_password", "secret", `FATAL 28P01: password authentication failed for user "without_password" ()`},
		{"old_password", "secret", `FATAL 28P01: password authentication failed for user "old_password" ()`},
		{"expired", "secret", `FATAL 28P01: password authentication failed for user "expired" ()`},
		{"without_login", "secret", `FATAL 28000: role "without_login" is not permitted to log in ()`},
		{"md5_user", "secret", "logged in as md5_user"},
		{"md5_user", "wrong", `FATAL 28P01: password authentication failed for user "md5_user" ()`},
		{"clear_user", "secret", "logged in as clear_user"},
		{"clear_user", "wrong", `FATAL 28P01: password authentication failed for user "clear_user" ()`},
		{"trusted", "", "logged in as trusted"},
		{"cert_user", "", "FATAL 28000: connection requires a valid client certificate ()"},
		{strings.Repeat("x", 80), "secret", `FATAL 28P01: password authentication failed for user "` + strings.Repeat("x", 63) + `" ()`},
	} {
		for _, binding := range []string{"prefer", "disable"} {
			options := "sslmode=verify-full&channel_binding=" + binding
			if got := postgres.outcome(t, direct, test.user, test.password, options); got != test.want {
				t.Errorf("%s, %s, %s, directly: %s", test.user, test.password, binding, got)
			}
			if got := postgres.outcome(t, proxied, test.user, test.password, options); got != test.want {
				t.Errorf("%s, %s, %s: %s, want %s", test.user, test.password, binding, got, test.want)
			}
		}
	}
}

func canBeBound(t *testing.T, postgres *securePostgres) {
	for name, p := range map[string]*proxy{
		"TLS to Postgres":    postgres.front(t, server.SSLRequire),
		"no TLS to Postgres": postgres.front(t, server.SSLDisable),
		"a Unix socket":      postgres.front(t, server.SSLPrefer, overSocket(postgres)),
		"direct TLS":         postgres.front(t, server.SSLRequire),
	} {
		options := "sslmode=require&channel_binding=require"
		if name == "direct TLS" {
			options += "&sslnegotiation=direct"
		}
		if got := postgres.outcome(t, p.address, "scram_user", "secret", options); got != "logged in as scram_user" {
			t.Errorf("%s: %s", name, got)
		}
		if got := postgres.outcome(t, p.address, "scram_user", "wrong", options); !strings.Contains(got, "28P01") {
			t.Errorf("%s, a wrong password: %s", name, got)
		}
		if p.logs.Len() > 0 {
			t.Errorf("%s: %v", name, p.logs.All())
		}
	}
}

func changedPassword(t *testing.T, postgres *securePostgres) {
	p := postgres.front(t, server.SSLRequire)
	admin := connect(t, postgres.URL("postgres"))
	exec(t, admin, "create role changed login password 'secret'")
	if got := postgres.outcome(t, p.address, "changed", "secret", "sslmode=require"); got != "logged in as changed" {
		t.Error(got)
	}
	exec(t, admin, "alter role changed password 'another'")
	if got := postgres.outcome(t, p.address, "changed", "another", "sslmode=require"); got != "logged in as changed" {
		t.Error(got)
	}
	if got := postgres.outcome(t, p.address, "changed", "secret", "sslmode=require"); !strings.Contains(got, "28P01") {
		t.Error(got)
	}
}

func withoutVerifiers(t *testing.T, postgres *securePostgres) {
	refused := func(config *server.Config) {
		config.Verifier = func(context.Context, string) (string, error) {
			return "", pgdiag.New("42501", "permission denied for table pg_authid")
		}
	}
	for name, change := range map[string]func(*server.Config){
		"none configured": func(config *server.Config) { config.Verifier = nil },
		"refused":         refused,
	} {
		secured := postgres.front(t, server.SSLRequire, change)
		if got := postgres.outcome(t, secured.address, "scram_user", "secret", "sslmode=require&channel_binding=disable"); got != "logged in as scram_user" {
			t.Errorf("%s: %s", name, got)
		}
		if got := postgres.outcome(t, secured.address, "scram_user", "wrong", "sslmode=require&channel_binding=disable"); !strings.Contains(got, "28P01") {
			t.Errorf("%s: %s", name, got)
		}
		if got := postgres.outcome(t, secured.address, "scram_user", "secret", "sslmode=require&channel_binding=require"); !strings.Contains(got, "channel binding") {
			t.Errorf("%s: %s", name, got)
		}
		// libpq notices that a server it could bind to does not offer it.
		w := postgres.dialTLS(t, secured.address)
		w.send(startupPacket("user", "scram_user", "database", "postgres"))
		w.read()
		w.send(initialResponse("SCRAM-SHA-256", "y,,n=,r=abc"))
		e := firstError(t, w.untilEnd())
		if e.Code != "28000" || !strings.Contains(e.Message, "channel binding negotiation") || !strings.Contains(e.Hint, "pg_authid") {
			t.Errorf("%s: %+v", name, e)
		}
		if n := secured.logs.FilterMessageSnippet("SCRAM is relayed").Len(); n != 1 {
			t.Errorf("%s: %d warnings", name, n)
		}

		plain := postgres.front(t, server.SSLDisable, change)
		if got := postgres.outcome(t, plain.address, "scram_user", "secret", "sslmode=require"); got != "logged in as scram_user" {
			t.Errorf("%s, no TLS to Postgres: %s", name, got)
		}
		if plain.logs.Len() > 0 {
			t.Errorf("%s, no TLS to Postgres: %v", name, plain.logs.All())
		}
	}
}

// dialTLS connects with TLS and says nothing yet.
func (p *securePostgres) dialTLS(t *testing.T, address string) *wire {
	t.Helper()
	w := dialRaw(t, address)
	w.send(requestPacket(sslRequest))
	if got := readByte(t, w.conn); got != 'S' {
		t.Fatalf("answer %q", got)
	}
	secured := tls.Client(w.conn, &tls.Config{RootCAs: p.pool, ServerName: "127.0.0.1"})
	w.conn = secured
	return w
}

func initialResponse(mechanism, data string) []byte {
	return batch(&pgproto3.SASLInitialResponse{AuthMechanism: mechanism, Data: []byte(data)})
}

func response(data string) []byte { return batch(&pgproto3.SASLResponse{Data: []byte(data)}) }

// challenged starts SCRAM without channel binding and returns the challenge.
func (p *securePostgres) challenged(t *testing.T, address, user string) (w *wire, nonce, saltAndIterations string) {
	t.Helper()
	w = p.dialTLS(t, address)
	w.send(startupPacket("user", user, "database", "postgres"))
	w.read()
	w.send(initialResponse("SCRAM-SHA-256", "n,,n=,r=abc"))
	f := w.read()
	if f == nil || f.typ() != 'R' || !bytes.HasPrefix(f.content(), []byte{0, 0, 0, 11}) {
		t.Fatalf("no challenge, but %s", shape([]frame{f}))
	}
	nonce, saltAndIterations, _ = strings.Cut(string(f.content()[4:]), ",")
	return w, strings.TrimPrefix(nonce, "r="), saltAndIterations
}

func mockChallenge(t *testing.T, postgres *securePostgres) {
	p := postgres.front(t, server.SSLRequire)
	seen := map[string]string{}
	for _, user := range []string{"scram_user", "nobody_at_all", "without_password", "old_password", "expired"} {
		_, _, direct := postgres.challenged(t, fmt.Sprintf("127.0.0.1:%d", postgres.Port()), user)
		_, first, once := postgres.challenged(t, p.address, user)
		_, second, again := postgres.challenged(t, p.address, user)
		if once != direct || again != direct {
			t.Errorf("%s: %s, then %s; directly %s", user, once, again, direct)
		}
		if first == second {
			t.Errorf("%s: the nonce %s twice", user, first)
		}
		if other := seen[direct]; other != "" {
			t.Errorf("%s and %s have the same salt", user, other)
		}
		seen[direct] = user
	}
}

func badMessages(t *testing.T, postgres *securePostgres) {
	p := postgres.front(t, server.SSLRequire)
	addresses := []string{p.address, fmt.Sprintf("127.0.0.1:%d", postgres.Port())}
	compare := func(name string, play func(address string) []frame) {
		var said [2]string
		for i, address := range addresses {
			e := firstError(t, play(address))
			said[i] = e.Severity + " " + e.Code + ": " + e.Message
		}
		if said[0] != said[1] {
			t.Errorf("%s:\nthe proxy says %s\nPostgres says  %s", name, said[0], said[1])
		}
	}
	const plain, plus = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
	for _, first := range [][2]string{
		{"SCRAM-SHA-1", "n,,n=,r=abc"},
		{"", "n,,n=,r=abc"},
		{plain, "n"},
		{plain, "n,"},
		{plain, "n,,"},
		{plain, "n,,n=,"},
		{plain, "n,,r=abc,n="},
		{plain, "n,,m=x,n=,r=abc"},
		{plain, "n,a=me,n=,r=abc"},
		{plain, "n,x,n=,r=abc"},
		{plain, "x,,n=,r=abc"},
		{plain, "y,,n=,r=abc"},
		{plain, "n,,n=,r=a\x01c"},
		{plain, "n,,n=,r=abc\x00d"},
		{plain, "p=tls-server-end-point,,n=,r=abc"},
		{plus, "n,,n=,r=abc"},
		{plus, "y,,n=,r=abc"},
		{plus, "p=tls-unique,,n=,r=abc"},
	} {
		compare(fmt.Sprintf("first %q", first), func(address string) []frame {
			w := postgres.dialTLS(t, address)
			w.send(startupPacket("user", "scram_user", "database", "postgres"))
			w.read()
			w.send(initialResponse(first[0], first[1]))
			return w.untilEnd()
		})
	}
	proof := base64Zeros(32)
	for _, final := range []string{
		"",
		"p=" + proof,
		"c=biws,r=NONCE",
		"r=NONCE,c=biws,p=" + proof,
		"c=biws,r=NONCE,p=" + proof,
		"c=biws,r=NONCE,x=y,p=" + proof,
		"c=biws,r=NONCE,p=" + base64Zeros(16),
		"c=biws,r=NONCE,p=%%%",
		"c=biws,r=NONCE,p=" + proof + ",x=y",
		"c=biws,r=NONCEx,p=" + proof,
		"c=biws,r=abc,p=" + proof,
		"c=eSws,r=NONCE,p=" + proof,
		"c=,r=NONCE,p=" + proof,
	} {
		compare("final "+final, func(address string) []frame {
			w, nonce, _ := postgres.challenged(t, address, "scram_user")
			w.send(response(strings.ReplaceAll(final, "NONCE", nonce)))
			return w.untilEnd()
		})
	}
	compare("another message", func(address string) []frame {
		w := postgres.dialTLS(t, address)
		w.send(startupPacket("user", "scram_user", "database", "postgres"))
		w.read()
		w.send(query("select 1"))
		return w.untilEnd()
	})
	compare("a binding to another certificate", func(address string) []frame {
		w := postgres.dialTLS(t, address)
		w.send(startupPacket("user", "scram_user", "database", "postgres"))
		w.read()
		w.send(initialResponse(plus, "p=tls-server-end-point,,n=,r=abc"))
		nonce, _, _ := strings.Cut(string(w.read().content()[4:]), ",")
		w.send(response("c=cD10bHMtc2VydmVyLWVuZC1wb2ludCwsAAAA," + nonce + ",p=" + proof))
		return w.untilEnd()
	})
}

func base64Zeros(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }

func unfinished(t *testing.T, postgres *securePostgres) {
	admin := connect(t, postgres.URL("postgres"))
	exec(t, admin, "create role unfinished login password 'secret'")
	p := postgres.front(t, server.SSLRequire, func(config *server.Config) { config.AuthenticationTimeout = time.Second })
	w, _, _ := postgres.challenged(t, p.address, "unfinished")
	if e := firstError(t, w.untilEnd()); e.Code != "57014" || e.Message != "canceling authentication due to timeout" {
		t.Errorf("got %+v", e)
	}
	for name, message := range map[string][]byte{
		"a long message":     {'p', 0, 0, 0x10, 0},
		"a promise":          {'p', 0x7f, 0xff, 0xff, 0xff},
		"a negative length":  {'p', 0xff, 0xff, 0xff, 0xff},
		"a part of a packet": {'p', 0},
	} {
		w, _, _ := postgres.challenged(t, p.address, "unfinished")
		w.send(message)
		if name == "a part of a packet" {
			if err := w.conn.(*tls.Conn).NetConn().(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
		}
		if left := w.untilEnd(); len(left) > 0 {
			t.Errorf("%s: %s", name, shape(left))
		}
	}
	stopInTime(t, p)
}

func stopped(t *testing.T, postgres *securePostgres) {
	p := postgres.front(t, server.SSLRequire)
	w, _, _ := postgres.challenged(t, p.address, "scram_user")
	stopInTime(t, p)
	if left := w.untilEnd(); len(left) > 0 {
		t.Errorf("got %s", shape(left))
	}
}
