package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net/netip"
	"strings"
)

// The PROXY protocol, in which a balancer says in front of the first byte who
// has connected to it (haproxy's proxy-protocol.txt, versions 1 and 2).
const (
	// proxyStart is as much as every header has: the signature of version 2,
	// which is shorter than the shortest line of version 1.
	proxyStart = 12
	// maxProxyLine bounds a header of version 1, its end of line included.
	maxProxyLine = 107
	// maxProxyBody bounds what follows the 16 bytes of version 2's head:
	// addresses, and additions that are skipped.
	maxProxyBody = 4096
)

const proxySignature = "\r\n\r\n\x00\r\nQUIT\n"

var errProxyHeader = errors.New("invalid PROXY protocol header")

// readProxyHeader reads a header, and not a byte more. The address is the
// zero value when the header names none: the balancer speaks for itself, or
// the client has not come over TCP.
func readProxyHeader(r io.Reader) (netip.AddrPort, error) {
	head := make([]byte, proxyStart, maxProxyLine)
	if _, err := io.ReadFull(r, head); err != nil {
		return netip.AddrPort{}, err
	}
	switch {
	case string(head) == proxySignature:
		return readProxyBody(r)
	case bytes.HasPrefix(head, []byte("PROXY ")):
		return readProxyLine(r, head)
	}
	return netip.AddrPort{}, errProxyHeader
}

// readProxyLine reads the rest of a header of version 1.
func readProxyLine(r io.Reader, line []byte) (netip.AddrPort, error) {
	for !bytes.HasSuffix(line, []byte("\r\n")) {
		if len(line) == maxProxyLine {
			return netip.AddrPort{}, errProxyHeader
		}
		line = line[:len(line)+1]
		if _, err := io.ReadFull(r, line[len(line)-1:]); err != nil {
			return netip.AddrPort{}, err
		}
	}
	words := strings.Split(string(line[:len(line)-2]), " ")
	if words[1] == "UNKNOWN" {
		return netip.AddrPort{}, nil
	}
	if len(words) != 6 || words[1] != "TCP4" && words[1] != "TCP6" {
		return netip.AddrPort{}, errProxyHeader
	}
	// Source and destination address, then the two ports.
	source, err := netip.ParseAddrPort(bracketed(words[2]) + ":" + words[4])
	if err != nil || source.Addr().Is4() != (words[1] == "TCP4") || source.Addr().Zone() != "" {
		return netip.AddrPort{}, errProxyHeader
	}
	return source, nil
}

func bracketed(address string) string {
	if strings.ContainsRune(address, ':') {
		return "[" + address + "]"
	}
	return address
}

// readProxyBody reads what follows the signature of version 2.
func readProxyBody(r io.Reader) (netip.AddrPort, error) {
	// Version and command, address family and protocol, length.
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return netip.AddrPort{}, err
	}
	length := binary.BigEndian.Uint16(head[2:])
	if head[0]>>4 != 2 || length > maxProxyBody {
		return netip.AddrPort{}, errProxyHeader
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(r, content); err != nil {
		return netip.AddrPort{}, err
	}
	const local, proxied = 0, 1
	const tcp4, tcp6 = 0x11, 0x21
	b := body{rest: content}
	var source, ports []byte
	switch command := head[0] & 0xf; {
	case command == local:
		return netip.AddrPort{}, nil
	case command != proxied:
		return netip.AddrPort{}, errProxyHeader
	case head[1] == tcp4:
		source, _, ports = b.take(4), b.take(4), b.take(4)
	case head[1] == tcp6:
		source, _, ports = b.take(16), b.take(16), b.take(4)
	default:
		return netip.AddrPort{}, nil
	}
	if b.bad {
		return netip.AddrPort{}, errProxyHeader
	}
	address, _ := netip.AddrFromSlice(source)
	return netip.AddrPortFrom(address, binary.BigEndian.Uint16(ports)), nil
}
