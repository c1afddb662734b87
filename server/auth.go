package server

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/delayq/delayq/internal/wire"
)

// anyone may do everything, where there are no tokens.
var anyone = &caller{name: "anyone", grants: []grant{{Admin, "", true}}}

// identify returns who sends a request, or the problem that rejects it.
func (s *Server) identify(r *http.Request) (*caller, *wire.Problem) {
	if err := s.origins.Check(r); err != nil {
		return nil, wire.New(wire.ForeignOrigin, "a browser sent this for another site")
	}
	if s.tokens == nil {
		if !s.anyHost && !localName(r.Host) {
			return nil, wire.New(wire.ForeignOrigin,
				"without tokens, the host has to be localhost or an IP address: a name may be that of another site")
		}
		return anyone, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, wire.New(wire.Unauthorized, `allowed is the header "Authorization: Bearer TOKEN"`)
	}
	if c := s.tokens.caller(strings.TrimSpace(token)); c != nil {
		return c, nil
	}
	return nil, wire.New(wire.Unauthorized, "the token is not known")
}

// localName reports whether a host is one that no DNS server of another site can name.
func localName(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	_, err = netip.ParseAddr(host)
	return err == nil
}
