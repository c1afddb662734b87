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

// errRefused says that a host has an address that messages may not go to.
var errRefused = errors.New("the address is the machine's own or link-local")

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
	a = a.Unmap().WithZone("")
	return a.IsLoopback() || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast()
}
