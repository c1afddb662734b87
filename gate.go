package delayq

import (
	"context"
	"sync"
)

// A gate holds the consumers of a queue back while it is shut.
type gate struct {
	mu     sync.Mutex
	opened chan struct{}   // closed while the gate is open
	flow   context.Context //nolint:containedctx // ends when the gate shuts
	end    context.CancelFunc
}

func newGate() *gate {
	g := &gate{opened: make(chan struct{})}
	close(g.opened)
	g.flow, g.end = context.WithCancel(context.Background())
	return g
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flow.Err() == nil {
		g.opened = make(chan struct{})
		g.end()
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flow.Err() != nil {
		g.flow, g.end = context.WithCancel(context.Background())
		close(g.opened)
	}
}

func (g *gate) isShut() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.flow.Err() != nil
}

func (g *gate) state() (opened <-chan struct{}, flow context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, g.flow
}

// pass waits until the gate is open and returns a context that ends with ctx, or when the gate shuts.
func (g *gate) pass(ctx context.Context) (flowing context.Context, stop func()) {
	opened, flow := g.state()
	for flow.Err() != nil && ctx.Err() == nil {
		select {
		case <-opened:
		case <-ctx.Done():
		}
		opened, flow = g.state()
	}
	flowing, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(flow, cancel)
	return flowing, func() {
		unhook()
		cancel()
	}
}

func (q *queue) Pause()  { q.gate.shut() }
func (q *queue) Resume() { q.gate.open() }
