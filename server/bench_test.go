package server_test

import (
	"testing"

	"github.com/jackc/pgproto3/v2"

	"github.com/rwproxy/rwproxy/internal/embedded/pgtest"
)

// BenchmarkRelay compares a session through the proxy with a direct one.
func BenchmarkRelay(b *testing.B) {
	url := pgtest.Database(b)
	p := startProxy(b, refreshing)
	for name, url := range map[string]string{"direct": url, "proxied": p.url(b, url)} {
		b.Run("round trip/"+name, func(b *testing.B) {
			w := dialWire(b, url)
			send := query("select 1")
			for b.Loop() {
				w.send(send)
				w.until('Z')
			}
		})
		b.Run("rows/"+name, func(b *testing.B) {
			w := dialWire(b, url)
			send := withSync(run("select n, repeat('x', 100) from generate_series(1, 100000) n")...)
			b.SetBytes(100_000 * 123)
			for b.Loop() {
				w.send(send)
				w.drain()
			}
		})
		b.Run("pipeline/"+name, func(b *testing.B) {
			w := dialWire(b, url)
			w.send(batch(&pgproto3.Parse{Name: "s", Query: "select 1"}, &pgproto3.Sync{}))
			w.until('Z')
			var send []byte
			for range 1000 {
				send = append(send, batch(&pgproto3.Bind{PreparedStatement: "s"}, &pgproto3.Execute{})...)
			}
			send = append(send, withSync()...)
			for b.Loop() {
				w.send(send)
				w.drain()
			}
		})
	}
}
