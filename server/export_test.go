package server

// RelayInGoroutines has every session relayed as on systems without epoll.
func RelayInGoroutines(c *Config) { c.goroutinesOnly = true }
