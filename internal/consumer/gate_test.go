package consumer

import (
	"context"
	"testing"
	"testing/synctest"
)

func TestGateHoldsBackWhileShut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		first, stop := g.pass(t.Context())
		defer stop()
		if first.Err() != nil || g.isShut() {
			t.Fatal("a new gate is shut")
		}
		g.Shut()
		g.Shut()
		synctest.Wait()
		if first.Err() == nil || !g.isShut() {
			t.Error("the context outlives the shutting")
		}
		passed := make(chan context.Context)
		go func() {
			ctx, stop := g.pass(t.Context())
			defer stop()
			passed <- ctx
		}()
		synctest.Wait()
		select {
		case <-passed:
			t.Fatal("passed a gate that is shut")
		default:
		}
		g.Open()
		g.Open()
		if ctx := <-passed; g.isShut() {
			t.Errorf("the gate is shut after Open: %v", ctx.Err())
		}
		if first.Err() == nil {
			t.Error("Open brought an ended context back")
		}
	})
}

func TestGatePassEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		g.Shut()
		ctx, cancel := context.WithCancel(t.Context())
		passed := make(chan error)
		go func() {
			open, stop := g.pass(ctx)
			defer stop()
			passed <- open.Err()
		}()
		synctest.Wait()
		cancel()
		if err := <-passed; err == nil {
			t.Error("the context of a pass that gave up goes on")
		}
	})
}

func TestGateEndsOnlyItsOwnContexts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewGate()
		open, stop := g.pass(t.Context())
		stop()
		if open.Err() == nil {
			t.Error("stop does not end the context")
		}
		g.Shut()
		synctest.Wait()
		if t.Context().Err() != nil {
			t.Error("Shut ended the parent")
		}
	})
}
