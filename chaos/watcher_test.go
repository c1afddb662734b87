package chaos_test

import (
	"context"
	"errors"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/memory"
)

// away is a store that nobody reaches until the run is over.
type away struct {
	backend.Backend
	over context.CancelFunc
}

func (a away) Open(context.Context, string, backend.Options) (backend.Queue, error) {
	a.over()
	return nil, errors.New("the store is away")
}

// TestActorsLeaveWithoutAStore ends a run, as a failed test does, while nobody has a handle yet.
func TestActorsLeaveWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, actor := range map[string]func(*chaos.Stage, int) func(context.Context, backend.Backend){
		"taker": chaos.Taker, "watcher": chaos.Watcher, "blunderer": chaos.Blunderer, "undertaker": chaos.Undertaker,
		"pusher": func(s *chaos.Stage, proc int) func(context.Context, backend.Backend) { return chaos.Pusher(s, proc, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := memory.New()
			defer func() { must(t, b.Close()) }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := &chaos.Stage{Queue: queueName, Rec: new(chaos.Log), Mix: chaos.DefaultMix(), Numbers: chaos.NewNumbers(0, 0)}
			actor(s, 1)(ctx, away{b, cancel})
		})
	}
}
