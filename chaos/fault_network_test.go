package chaos_test

import (
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/testenv"
)

// A greeting is what a server answers to at once.
type greeting struct{ say, hear string }

var (
	redisGreeting  = greeting{"PING\r\n", "+PONG\r\n"}
	rabbitGreeting = greeting{"AMQP\x00\x00\x09\x01", "\x01"}
)

// answer is how long a server takes to answer, and whether it does within that time.
func (g greeting) answer(addr string, within time.Duration) (took time.Duration, answered bool) {
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

func count(happened bool) int {
	if happened {
		return 1
	}
	return 0
}

// networkFaults are what a proxy does to connections.
func networkFaults(p *testenv.FaultProxy, g greeting) []*fault {
	return []*fault{repliesCut(p), latency(p, g), blackHole(p, g), connectionsCut(p), stalled(p, g)}
}

func repliesCut(p *testenv.FaultProxy) *fault {
	var before int
	return &fault{
		Kind: chaos.Kind{Name: "replies cut", Weight: 3, For: 700 * time.Millisecond}, window: judge.Window{Breaks: true},
		on: func(_ *testing.T, dice *rand.Rand) {
			before = p.Cuts()
			p.Seed(dice.Uint64())
			p.CutReplies(0.02 + dice.Float64()/5)
		},
		off: func(*testing.T) int { p.CutReplies(0); return p.Cuts() - before },
	}
}

func latency(p *testenv.FaultProxy, g greeting) *fault {
	slow := 0
	return &fault{
		Kind: chaos.Kind{Name: "latency", Weight: 1, For: 600 * time.Millisecond}, window: judge.Window{Breaks: true},
		on: func(_ *testing.T, dice *rand.Rand) {
			d := time.Duration(10+dice.IntN(150)) * time.Millisecond
			p.Latency(d)
			took, _ := g.answer(p.Addr(), 2*time.Second)
			slow = count(took >= d)
		},
		off: func(*testing.T) int { p.Latency(0); return slow },
	}
}

// deaf is how long nothing is heard through what swallows all.
const deaf = 60 * time.Millisecond

func blackHole(p *testenv.FaultProxy, g greeting) *fault {
	silent := 0
	return &fault{
		Kind: chaos.Kind{Name: "black hole", Weight: 1, For: 700 * time.Millisecond}, window: judge.Window{Breaks: true},
		on: func(*testing.T, *rand.Rand) {
			p.Blackhole(true)
			_, answered := g.answer(p.Addr(), deaf)
			silent = count(!answered)
		},
		off: func(*testing.T) int { p.Blackhole(false); return silent },
	}
}

// stalled has the server do what it is asked while its replies are held back, from some reply on. They arrive when it is over, long after their callers have left.
func stalled(p *testenv.FaultProxy, g greeting) *fault {
	return &fault{
		Kind: chaos.Kind{Name: "replies held back", Weight: 1, For: 700 * time.Millisecond}, window: judge.Window{Breaks: true},
		on: func(_ *testing.T, dice *rand.Rand) { p.StallAfter(dice.IntN(40)) },
		off: func(*testing.T) int {
			_, answered := g.answer(p.Addr(), deaf)
			p.Resume()
			return count(!answered)
		},
	}
}

func connectionsCut(p *testenv.FaultProxy) *fault {
	var before int
	return &fault{
		Kind: chaos.Kind{Name: "connections cut", Weight: 2}, window: judge.Window{Breaks: true},
		on: func(*testing.T, *rand.Rand) { before = p.Connections(); p.CloseAll() },
		off: func(*testing.T) int { // those that were cut come back
			poll(3*time.Second, func() bool { return p.Connections() > before })
			return p.Connections() - before
		},
	}
}

// A wire is a toxiproxy in front of a server.
type wire struct {
	proxy *toxiproxy.Proxy
	addr  string
}

func newWire(t *testing.T, upstream string) *wire {
	t.Helper()
	nop := zerolog.Nop()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), nop)
	p := toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", upstream)
	if err := p.Start(); err != nil {
		t.Fatalf("starting a wire: %v", err)
	}
	t.Cleanup(p.Stop)
	return &wire{p, p.Listen}
}

func (w *wire) poison(t *testing.T, toxic string) {
	t.Helper()
	if _, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		t.Fatalf("adding a toxic: %v", err)
	}
}

// cut closes all connections.
func (w *wire) cut(t *testing.T) {
	t.Helper()
	w.proxy.Stop()
	if err := w.proxy.Start(); err != nil {
		t.Fatalf("starting a wire again: %v", err)
	}
}

// lead leads the wire to another server, and cuts it.
func (w *wire) lead(t *testing.T, upstream string) {
	t.Helper()
	w.proxy.Stop()
	w.proxy.Upstream = upstream
	if err := w.proxy.Start(); err != nil {
		t.Fatalf("leading a wire elsewhere: %v", err)
	}
}

func wireFaults(w *wire, g greeting) []*fault { return []*fault{halfOpen(w, g), slowLink(w, g)} }

// halfOpen has requests arrive and be executed, while of the replies nothing comes back, not even the end of the connection.
func halfOpen(w *wire, g greeting) *fault {
	silent := 0
	return &fault{
		Kind: chaos.Kind{Name: "half-open", Weight: 1, For: 700 * time.Millisecond}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, _ *rand.Rand) {
			w.poison(t, `{"name": "half-open", "type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`)
			_, answered := g.answer(w.addr, deaf)
			silent = count(!answered)
		},
		off: func(t *testing.T) int {
			w.cut(t) // what was lost of a stream must not be followed by the rest of it
			w.proxy.Toxics.ResetToxics(context.Background())
			return silent
		},
	}
}

func slowLink(w *wire, g greeting) *fault {
	slow := 0
	return &fault{
		Kind: chaos.Kind{Name: "slow link", Weight: 1, For: 700 * time.Millisecond}, window: judge.Window{Breaks: true},
		on: func(t *testing.T, _ *rand.Rand) {
			w.poison(t, `{"name": "slow", "type": "bandwidth", "stream": "downstream", "attributes": {"rate": 4}}`)
			w.poison(t, `{"name": "late", "type": "latency", "stream": "upstream", "attributes": {"latency": 20}}`)
			took, _ := g.answer(w.addr, 5*time.Second)
			slow = count(took >= 20*time.Millisecond)
		},
		off: func(t *testing.T) int {
			w.proxy.Toxics.ResetToxics(context.Background())
			return slow
		},
	}
}

// through is a URL with another host.
func through(t *testing.T, raw, addr string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	return u.String()
}
