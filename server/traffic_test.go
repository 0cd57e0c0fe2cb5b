package server_test

import (
	"strings"
	"testing"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
	"github.com/rwproxy/rwproxy/server"
)

func TestTrafficIsWhatClientsAndPostgresSay(t *testing.T) {
	t.Parallel()
	for name, goroutinesOnly := range map[string]bool{"with loops": false, "in goroutines": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := pgtest.Database(t)
			p := startProxy(t, nil, func(c *server.Config) {
				if goroutinesOnly {
					server.RelayInGoroutines(c)
				}
			})
			w := dialWire(t, p.url(t, url))
			w.rest()
			clientsBefore, backendsBefore := p.Traffic()
			sent, received := 0, 0
			for range 20 {
				// Longer than what one read takes, in both ways.
				q := query("select repeat('x', 300000), length('" + strings.Repeat("1", 200_000) + "')")
				sent += len(q)
				w.send(q)
				for _, f := range w.until('Z') {
					received += len(f)
				}
			}
			clients, backends := p.Traffic()
			if got := clients - clientsBefore; got != int64(sent) {
				t.Errorf("%d bytes from clients, sent were %d", got, sent)
			}
			if got := backends - backendsBefore; got != int64(received) {
				t.Errorf("%d bytes from Postgres, received were %d", got, received)
			}
		})
	}
}
