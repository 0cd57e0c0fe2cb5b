package server

import "net"

// RelayInGoroutines has every session relayed as on systems without epoll.
func RelayInGoroutines(c *Config) { c.goroutinesOnly = true }

// ProbeConnections has proxies started from now on look for ends that have gone
// as config says, until restore is called.
func ProbeConnections(config net.KeepAliveConfig) (restore func()) {
	usual := keepAlive
	keepAlive = config
	return func() { keepAlive = usual }
}
