package delayq_test

import (
	"context"
	"errors"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

func TestQueuesRejects(t *testing.T) {
	t.Parallel()
	b := memory.New()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for want, call := range map[error]func() ([]string, error){
		delayq.ErrInvalid:     func() ([]string, error) { return delayq.Queues(t.Context(), nil) },
		context.Canceled:      func() ([]string, error) { return delayq.Queues(canceled, b) },
		delayq.ErrUnsupported: func() ([]string, error) { return delayq.Queues(t.Context(), struct{ backend.Backend }{b}) },
	} {
		if names, err := call(); !errors.Is(err, want) || names != nil {
			t.Errorf("got %q, %v; want %v", names, err, want)
		}
	}
	must(t, b.Close())
	if _, err := delayq.Queues(t.Context(), b); !errors.Is(err, delayq.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}
