package webhook

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestSignature has the vector of the libraries of Standard Webhooks.
func TestSignature(t *testing.T) {
	var s settings
	if err := Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")(&s); err != nil {
		t.Fatal(err)
	}
	const want = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := sign(s.secrets[0], "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", []byte(`{"test": 2432232314}`)); got != want {
		t.Errorf("got %s; want %s", got, want)
	}
}

func TestRefusedAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true, "0.0.0.0": true, "::": true, "169.254.169.254": true,
		"::ffff:169.254.169.254": true, "fe80::1": true, "fe80::1%eth0": true, "224.0.0.1": true, "ff02::1": true,
		"fd00:ec2::254": true, "fd00:ec2::23": true, "fd20:ce::254": true, "168.63.129.16": true, "192.0.0.192": true, "::ffff:168.63.129.16": true,
		"100.100.100.200": true, "fd00:100::100:200": true, "fd00:42::42": true, "fd00:c1::a9fe:a9fe": true, "fd00:a9fe:a9fe::1": true,
		"64:ff9b::7f00:1": true, "64:ff9b::a9fe:a9fe": true, "2002:7f00:1::": true, "2002:a9fe:a9fe::1": true, "::127.0.0.1": true,
		"64:ff9b:1::a9fe:a9fe": true, "64:ff9b:1:5::7f00:1": true, "::ffff:0:169.254.169.254": true, "64:ff9b:1::c000:201": false,
		"64:ff9b::c000:201": false, "2002:c000:201::": false,
		"10.0.0.1": false, "192.0.2.1": false, "2001:db8::1": false, "fd00::1": false,
	} {
		if got := refused(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %t; want %t", address, got, want)
		}
		if err := check("tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 80).String(), nil); (err != nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// TestOwnAddress connects to this machine. Only a target that names the loopback goes there.
func TestOwnAddress(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	to := func(text string) *url.URL {
		u, err := parse("To", text, origin)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	post := func(s *settings) error {
		reply, err := newClient(s).Post(server.URL, "text/plain", http.NoBody)
		if err == nil {
			err = reply.Body.Close()
		}
		return err
	}
	if err := post(&settings{to: to("http://example.org")}); !errors.Is(err, errRefused) {
		t.Errorf("posting to the loopback: %v", err)
	}
	if err := post(&settings{to: to("http://example.org"), allowed: []*url.URL{to(server.URL)}}); err != nil {
		t.Error(err)
	}
}

// silenced is a listener whose connections can stop to carry anything, as if a cable was cut.
type silenced struct {
	net.Listener
	mu    sync.Mutex
	conns []*silencedConn
}

func (l *silenced) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	c := &silencedConn{Conn: conn}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
	return c, err
}

func (l *silenced) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.cut.Store(true)
	}
}

type silencedConn struct {
	net.Conn
	cut atomic.Bool
}

func (c *silencedConn) Read(b []byte) (n int, err error) {
	for n, err = c.Conn.Read(b); err == nil && c.cut.Load(); {
		n, err = c.Conn.Read(b)
	}
	return n, err
}

func (c *silencedConn) Write(b []byte) (int, error) {
	if c.cut.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// TestConnectionLost cuts a connection of HTTP/2. It does not take the requests after that one too.
func TestConnectionLost(t *testing.T) {
	defer func(before time.Duration) { pingAfter = before }(pingAfter)
	pingAfter = 2 * time.Second
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	l := &silenced{Listener: server.Listener}
	server.Listener, server.EnableHTTP2 = l, true
	server.StartTLS()
	defer server.Close()
	u, err := parse("To", server.URL, origin)
	if err != nil {
		t.Fatal(err)
	}
	client := newClient(&settings{to: u})
	client.Timeout = time.Minute
	client.Transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	defer client.CloseIdleConnections()
	post := func() error {
		reply, err := client.Post(server.URL, "text/plain", http.NoBody)
		if err != nil {
			return err
		}
		if reply.ProtoMajor != 2 {
			t.Errorf("the request was one of %s", reply.Proto)
		}
		return reply.Body.Close()
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	l.cut()
	if err := post(); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("on the lost connection: %v", err)
	}
	if err := post(); err != nil {
		t.Errorf("after it: %v", err)
	}
}
