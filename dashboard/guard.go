package dashboard

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// policy lets pages load their own script, style and icon, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

func setHeaders(head http.Header) {
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Frame-Options", "DENY")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "same-origin") // with no-referrer, forms would have the origin "null"
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Cache-Control", "no-store")
}

// Loopback is a function for [Authorize] that allows all actions to requests from the machine
// itself. It rejects requests for a host name other than localhost, as a page of another site can
// make, and those that a proxy has passed on, as far as they show it: by a header such as
// X-Forwarded-For or Via, or by HTTP/1.0, which no browser uses and nginx does unless it is told
// otherwise. A tunnel or a proxy that shows nothing looks like the machine itself.
func Loopback(r *http.Request, _ Action, _ string) error {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	switch {
	case err != nil || !from.Addr().Unmap().IsLoopback():
		return errors.New("the dashboard serves this machine alone")
	case passedOn(r):
		return errors.New("the dashboard serves this machine alone, and a proxy has passed this request on")
	case !isLoopbackHost(r.Host):
		return errors.New("the dashboard serves this machine alone, under the name localhost")
	}
	return nil
}

func passedOn(r *http.Request) bool {
	for name := range r.Header {
		switch {
		case strings.HasPrefix(name, "X-Forwarded-"), slices.Contains([]string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip"}, name):
			return true
		}
	}
	return !r.ProtoAtLeast(1, 1)
}

func isLoopbackHost(hostport string) bool {
	host := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		host = h
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
