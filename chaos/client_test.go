package chaos

import (
	"context"
	"errors"
	"testing"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/memory"
)

// unreachable is a store that no client reaches until the run is over.
type unreachable struct {
	backend.Backend
	endRun context.CancelFunc
}

func (u unreachable) Open(context.Context, string, backend.Options) (backend.Queue, error) {
	u.endRun()
	return nil, errors.New("the store is unreachable")
}

// TestClientsStopWithoutAStore ends a run, as a failed test does, before any client has a handle.
func TestClientsStopWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]func(*Env, int) Run{
		"worker": Worker, "second worker": SecondWorker, "misuse": MisuseClient, "dead letters": DeadLetterClient,
		"pusher": func(e *Env, proc int) Run { return Pusher(e, proc, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := memory.New()
			defer func() { must(t, b.Close()) }()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := &Env{Queue: queueName, Rec: new(judge.Log), Mix: DefaultMix(), Numbers: NewNumbers(0, 0)}
			client(e, 1)(ctx, unreachable{b, cancel})
		})
	}
}
