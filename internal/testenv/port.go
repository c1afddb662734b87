package testenv

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Servers listen below the ports that the kernel gives to outgoing connections, so that no
// client takes the port of a server that is down for a moment.
const firstPort, lastPort = 10_000, 32_000

const localhost = "127.0.0.1"

// listen opens a free port.
func listen() (net.Listener, error) {
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", address(firstPort+rand.IntN(lastPort-firstPort))); err == nil {
			return l, nil
		}
	}
	return nil, fmt.Errorf("looking for a free port between %d and %d: %w", firstPort, lastPort, err)
}

// freePort finds an unused port. Another process may be faster to take it.
func freePort() (int, error) {
	l, err := listen()
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func address(port int) string { return net.JoinHostPort(localhost, strconv.Itoa(port)) }
