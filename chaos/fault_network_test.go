package chaos

import (
	"context"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/delayq/delayq/internal/testenv"
)

// A greeting is a request to which a server replies at once.
type greeting struct{ say, hear string }

var (
	redisGreeting  = greeting{"PING\r\n", "+PONG\r\n"}
	rabbitGreeting = greeting{"AMQP\x00\x00\x09\x01", "\x01"}
)

// probe returns how long a server takes to reply, and whether it does within that time.
func (g greeting) probe(addr string, within time.Duration) (took time.Duration, replied bool) {
	began := time.Now()
	conn, err := net.DialTimeout("tcp", addr, within)
	if err != nil {
		return time.Since(began), false
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(began.Add(within)) // of an open connection this cannot fail
	if _, err := io.WriteString(conn, g.say); err != nil {
		return time.Since(began), false
	}
	heard := make([]byte, len(g.hear))
	_, err = io.ReadFull(conn, heard)
	return time.Since(began), err == nil && string(heard) == g.hear
}

// silent returns 1 for a server that does not reply, the effect of a fault.
func (g greeting) silent(addr string) int {
	_, replied := g.probe(addr, 60*time.Millisecond)
	return count(!replied)
}

// networkFaults are the faults of the proxy of package testenv, which counts replies.
func networkFaults(p *testenv.FaultProxy, g greeting) []*fault {
	return []*fault{
		lasting("replies cut", 3, 700*time.Millisecond, breaks, func(i *injection) func() int {
			before := p.Cuts()
			p.Seed(i.rng.Uint64())
			p.CutReplies(0.02 + i.rng.Float64()/5)
			return func() int { p.CutReplies(0); return p.Cuts() - before }
		}),
		lasting("latency", 1, 600*time.Millisecond, breaks, func(i *injection) func() int {
			d := time.Duration(10+i.rng.IntN(150)) * time.Millisecond
			p.Latency(d)
			took, _ := g.probe(p.Addr(), 2*time.Second)
			return func() int { p.Latency(0); return count(took >= d) }
		}),
		lasting("black hole", 1, 700*time.Millisecond, breaks, func(*injection) func() int {
			p.Blackhole(true)
			effect := g.silent(p.Addr())
			return func() int { p.Blackhole(false); return effect }
		}),
		// The server executes commands, and their replies arrive long after their callers have left.
		lasting("replies held back", 1, 700*time.Millisecond, breaks, func(i *injection) func() int {
			p.StallAfter(i.rng.IntN(40))
			return func() int { defer p.Resume(); return g.silent(p.Addr()) }
		}),
		instant("connections cut", 2, breaks, func(*injection) int {
			before := p.Connections()
			p.CloseAll()
			poll(3*time.Second, func() bool { return p.Connections() > before }) // the clients connect again
			return p.Connections() - before
		}),
	}
}

// toxicProxy is a toxiproxy in front of a server.
type toxicProxy struct{ *toxiproxy.Proxy }

func newToxicProxy(t *testing.T, upstream string) toxicProxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := toxicProxy{toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", upstream)}
	must(t, p.Start())
	t.Cleanup(p.Stop)
	return p
}

func (p toxicProxy) add(t *testing.T, toxic string) {
	t.Helper()
	_, err := p.Toxics.AddToxicJson(strings.NewReader(toxic))
	must(t, err)
}

// restart closes all connections, and leads new ones to a server.
func (p toxicProxy) restart(t *testing.T, upstream string) {
	t.Helper()
	p.Stop()
	p.Upstream = upstream
	must(t, p.Start())
}

// toxicFaults are the faults of toxiproxy.
func toxicFaults(p toxicProxy, g greeting) []*fault {
	return []*fault{
		// The server executes commands, and everything that it sends is dropped, even its closing.
		lasting("half-open", 1, 700*time.Millisecond, breaks, func(i *injection) func() int {
			p.add(i.T, `{"name": "half-open", "type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`)
			effect := g.silent(p.Listen)
			return func() int {
				p.restart(i.T, p.Upstream) // the rest of a stream must not follow the part that was dropped
				p.Toxics.ResetToxics(context.Background())
				return effect
			}
		}),
		lasting("slow link", 1, 700*time.Millisecond, breaks, func(i *injection) func() int {
			p.add(i.T, `{"name": "slow", "type": "bandwidth", "stream": "downstream", "attributes": {"rate": 4}}`)
			p.add(i.T, `{"name": "late", "type": "latency", "stream": "upstream", "attributes": {"latency": 20}}`)
			took, _ := g.probe(p.Listen, 5*time.Second)
			return func() int { p.Toxics.ResetToxics(context.Background()); return count(took >= 20*time.Millisecond) }
		}),
	}
}

// withHost returns a URL with another host.
func withHost(t *testing.T, raw, host string) string {
	t.Helper()
	u, err := url.Parse(raw)
	must(t, err)
	u.Host = host
	return u.String()
}
