package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

const (
	dialTimeout = 10 * time.Second
	idlePerHost = 64
	idleFor     = time.Minute
)

var pingAfter = 10 * time.Second // a test has less

// errRefused says that a host has an address that messages may not go to.
var errRefused = errors.New("the address is one of the loopback, link-local, or of a cloud's metadata")

// newClient returns a client that follows no redirect, and connects to addresses of the machine
// itself only where the settings name them.
func newClient(s *settings) *http.Client {
	targets := s.allowed
	if s.to != nil {
		targets = append(slices.Clone(targets), s.to)
	}
	var own []string // as they are dialed
	for _, u := range targets {
		if addr, err := netip.ParseAddr(u.Hostname()); u.Hostname() == "localhost" || err == nil && refused(addr) {
			own = append(own, address(u))
		}
	}
	plain := &net.Dialer{Timeout: dialTimeout}
	checked := &net.Dialer{Timeout: dialTimeout, Control: check}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				if slices.Contains(own, addr) {
					return plain.DialContext(ctx, network, addr)
				}
				return checked.DialContext(ctx, network, addr)
			},
			TLSHandshakeTimeout: dialTimeout, MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleFor, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxRead,
			// Without pings a connection of HTTP/2 whose other end is gone takes all requests, until TCP gives it up.
			HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// check is called with the address that a name was resolved to, right before the connection.
func check(_, address string, _ syscall.RawConn) error {
	host, err := netip.ParseAddrPort(address)
	if err != nil || refused(host.Addr()) {
		return fmt.Errorf("%w: %s", errRefused, address)
	}
	return nil
}

func refused(a netip.Addr) bool {
	a = embedded(a.Unmap().WithZone(""))
	return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() || slices.Contains(metadata, a)
}

// metadata are where clouds tell a machine its credentials, beside link-local addresses.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd00:ec2::23"), // Amazon: machines, and pods of EKS
	netip.MustParseAddr("fd20:ce::254"),                                           // Google
	netip.MustParseAddr("168.63.129.16"),                                          // Azure
	netip.MustParseAddr("192.0.0.192"), netip.MustParseAddr("fd00:c1::a9fe:a9fe"), // Oracle
	netip.MustParseAddr("100.100.100.200"), netip.MustParseAddr("fd00:100::100:200"), // Alibaba
	netip.MustParseAddr("fd00:42::42"),       // Scaleway
	netip.MustParseAddr("fd00:a9fe:a9fe::1"), // Akamai
}

// localNAT64 is where a network chooses the prefix of its gateway (RFC 8215). Most choose 96 bits.
var localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")

// embedded returns the address of IPv4 that a gateway of NAT64 (RFC 6052) or 6to4 (RFC 3056) would
// connect to, or that an old form of IPv6 means.
func embedded(a netip.Addr) netip.Addr {
	b := a.As16()
	switch {
	case a.Is4() || a.IsLoopback() || a.IsUnspecified():
		return a
	case b[0] == 0x20 && b[1] == 0x02:
		return netip.AddrFrom4([4]byte(b[2:6]))
	case [12]byte(b[:12]) == [12]byte{}, [12]byte(b[:12]) == [12]byte{8: 0xff, 9: 0xff}, [12]byte(b[:12]) == [12]byte{1: 0x64, 2: 0xff, 3: 0x9b}, localNAT64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}
