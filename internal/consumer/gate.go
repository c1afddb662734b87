package consumer

import (
	"context"
	"sync"
)

// A Gate holds the consumers of a queue back while it is shut. Its methods are safe for concurrent
// use and do not block.
type Gate struct {
	mu     sync.Mutex
	opened chan struct{}   // closed while the gate is open
	flow   context.Context //nolint:containedctx // ends when the gate shuts
	end    context.CancelFunc
}

// NewGate returns a gate that is open.
func NewGate() *Gate {
	g := &Gate{opened: make(chan struct{})}
	close(g.opened)
	g.flow, g.end = context.WithCancel(context.Background())
	return g
}

// Shut makes every Run with this gate receive no more messages and give back untouched what no
// handler has seen, until Open.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flow.Err() == nil {
		g.opened = make(chan struct{})
		g.end()
	}
}

// Open ends a Shut.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flow.Err() != nil {
		g.flow, g.end = context.WithCancel(context.Background())
		close(g.opened)
	}
}

func (g *Gate) isShut() bool {
	_, flow := g.state()
	return flow.Err() != nil
}

func (g *Gate) state() (opened <-chan struct{}, flow context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened, g.flow
}

// pass waits until the gate is open and returns a context that ends with ctx, or when the gate
// shuts.
func (g *Gate) pass(ctx context.Context) (open context.Context, stop func()) {
	opened, flow := g.state()
	for flow.Err() != nil && ctx.Err() == nil {
		select {
		case <-opened:
		case <-ctx.Done():
		}
		opened, flow = g.state()
	}
	open, cancel := context.WithCancel(ctx)
	unhook := context.AfterFunc(flow, cancel)
	return open, func() {
		unhook()
		cancel()
	}
}
