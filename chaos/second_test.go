package chaos_test

import (
	"context"
	"errors"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/chaos"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/memory"
)

// away is a store that no client reaches until the run is over.
type away struct {
	backend.Backend
	over context.CancelFunc
}

func (a away) Open(context.Context, string, backend.Options) (backend.Queue, error) {
	a.over()
	return nil, errors.New("the store is away")
}

// TestClientsStopWithoutAStore ends a run, as a failed test does, while no client has a handle yet.
func TestClientsStopWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*chaos.Env, int) func(context.Context, backend.Backend){
		"worker": chaos.Worker, "second worker": chaos.SecondWorker, "misuse": chaos.MisuseClient, "dead letters": chaos.DeadLetterClient,
		"pusher": func(e *chaos.Env, proc int) func(context.Context, backend.Backend) { return chaos.Pusher(e, proc, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := memory.New()
			defer func() { must(t, b.Close()) }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := &chaos.Env{Queue: queueName, Rec: new(judge.Log), Mix: chaos.DefaultMix(), Numbers: chaos.NewNumbers(0, 0)}
			client(e, 1)(ctx, away{b, cancel})
		})
	}
}
