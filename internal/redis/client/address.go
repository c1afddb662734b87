package client

import (
	"net"
	"strconv"
	"strings"
)

// address completes HOST[:PORT]. It reports false for anything else. An IPv6 address is in
// brackets.
func address(hostport, defaultPort string) (string, bool) {
	host, port, err := net.SplitHostPort(hostport)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]"), defaultPort
		if strings.Contains(host, ":") && host == hostport {
			return "", false
		}
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" || strings.ContainsAny(host, "[]@/?#, ") {
		return "", false
	}
	return net.JoinHostPort(host, port), true
}
