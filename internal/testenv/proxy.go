package testenv

import (
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// FaultProxy passes TCP connections on to a server and injects network faults. Its methods may be
// called at any time from any goroutine; Refuse only from the test's own.
type FaultProxy struct {
	tb             testing.TB
	addr, upstream string
	tasks          sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while it rejects
	links    map[*link]struct{}
	faults   faults
	conns    int
	cuts     int
}

type faults struct {
	seed    uint64
	cut     float64
	latency time.Duration
	hole    bool
	stall   *stall // nil for none
}

// A stall lets some replies through and holds the others back until it ends.
type stall struct {
	left  int
	holds bool // it has held back a reply
	over  chan struct{}
}

// Proxy starts a proxy in front of a server, which ends with the test. At first it only passes on.
func Proxy(tb testing.TB, upstream string) *FaultProxy {
	tb.Helper()
	l, err := listen()
	if err != nil {
		tb.Fatalf("starting a proxy: %v", err)
	}
	p := &FaultProxy{tb: tb, addr: l.Addr().String(), upstream: upstream, links: map[*link]struct{}{}}
	p.serve(l)
	tb.Cleanup(p.close)
	return p
}

// Addr is the host and port to connect to instead of the server's.
func (p *FaultProxy) Addr() string { return p.addr }

// Seed fixes which replies are cut: the nth connection from the start of the proxy always sees the
// same cuts, counted in replies. A seed applies to later connections; the first one is 0.
func (p *FaultProxy) Seed(seed uint64) { p.change(func(f *faults) { f.seed = seed }) }

// CutReplies drops each reply with a probability, and cuts its connection: the server has executed
// the command, and the client does not know.
func (p *FaultProxy) CutReplies(probability float64) {
	p.change(func(f *faults) { f.cut = probability })
}

// Latency makes every reply arrive later. Those that follow do not wait for it longer than that.
func (p *FaultProxy) Latency(d time.Duration) { p.change(func(f *faults) { f.latency = d }) }

// Blackhole drops all bytes in either direction, while connections stay open and new ones are
// accepted. When it is over, connections that lost bytes are cut.
func (p *FaultProxy) Blackhole(on bool) {
	p.change(func(f *faults) { f.hole = on })
	if !on {
		p.closeLinks(func(l *link) bool { return l.robbed })
	}
}

// Freeze stops reading from the connections that are open, in both directions, until they are closed, as
// a server that was stopped does. Others work.
func (p *FaultProxy) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.frozen = true
	}
}

// StallAfter passes on a number of further replies, of all connections together, and then holds
// replies back until Resume. Requests still reach the server, and new connections are accepted.
func (p *FaultProxy) StallAfter(replies int) {
	p.Resume()
	p.change(func(f *faults) { f.stall = &stall{left: replies, over: make(chan struct{})} })
}

// Stalled reports whether the last StallAfter has held back a reply, until Resume.
func (p *FaultProxy) Stalled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults.stall != nil && p.faults.stall.holds
}

// Resume passes on the bytes that StallAfter has held back.
func (p *FaultProxy) Resume() {
	p.change(func(f *faults) {
		if f.stall != nil {
			close(f.stall.over)
			f.stall = nil
		}
	})
}

// CloseAll cuts all connections.
func (p *FaultProxy) CloseAll() { p.closeLinks(func(*link) bool { return true }) }

// Refuse rejects new connections, as a machine without a server does. Open ones stay open.
func (p *FaultProxy) Refuse(on bool) {
	p.tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case on && p.listener != nil:
		_ = p.listener.Close() // it is open, so that this cannot fail
		p.listener = nil
	case !on && p.listener == nil:
		l, err := net.Listen("tcp", p.addr)
		if err != nil {
			p.tb.Fatalf("accepting connections again: %v", err)
		}
		p.serve(l)
	}
}

// Connections counts the connections that were accepted.
func (p *FaultProxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns
}

// Cuts counts the replies that CutReplies made vanish.
func (p *FaultProxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

func (p *FaultProxy) change(f func(*faults)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.faults)
}

func (p *FaultProxy) serve(l net.Listener) {
	p.listener = l
	p.tasks.Go(func() {
		for {
			client, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				p.tb.Errorf("accepting a connection to %s: %v", p.addr, err)
				return
			}
			p.open(l, client)
		}
	})
}

func (p *FaultProxy) open(from net.Listener, client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != from { // it was closed while this one came in
		_ = client.Close()
		return
	}
	p.conns++
	l := &link{
		proxy: p, client: client, gone: make(chan struct{}),
		dice: rand.New(rand.NewPCG(p.faults.seed, uint64(p.conns))),
	}
	p.links[l] = struct{}{}
	p.tasks.Go(l.run)
}

func (p *FaultProxy) closeLinks(which func(*link) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if which(l) {
			l.close()
		}
	}
}

func (p *FaultProxy) close() {
	p.Refuse(true)
	p.CloseAll()
	p.tasks.Wait()
}
