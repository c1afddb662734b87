package demo

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

// numbered is memory that numbers its messages. Its replies take a moment, so that messages come
// before the demo knows their ids.
type numbered struct {
	*memory.Backend
	last *atomic.Int64
}

func init() {
	b := numbered{memory.New(), new(atomic.Int64)}
	backend.Register("numbered", func(_ context.Context, u *url.URL) (backend.Backend, string, error) {
		return b, strings.TrimPrefix(u.Path, "/"), nil
	})
}

func (numbered) Close() error { return nil } // its queues outlive one client, as on a server

func (b numbered) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Lacks = t.Lacks.With(backend.OwnIDs, backend.Deduplicating, backend.KeepingHeaders)
	return t
}

func (b numbered) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return numberedQueue{q, b.last}, nil
}

type numberedQueue struct {
	backend.Queue
	last *atomic.Int64
}

func (q numberedQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	for i := range ms {
		ms[i].ID = fmt.Sprint(q.last.Add(1))
	}
	errs := q.Queue.Schedule(ctx, ms)
	<-time.After(time.Millisecond)
	return errs
}

// TestStoreMakesIDs plays all, and the ledger, which has the messages by name, must balance.
func TestStoreMakesIDs(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"": "summary: pushed 35 handled ",
		"-": "summary: pushed 2 handled 2 cancelled 0 dead 0 redriven 0 | " +
			"early 0 lost 0 duplicates 0 fired-after-cancel 0 altered 0 left 0 |",
	} {
		var out bytes.Buffer
		err := Run(t.Context(), Config{
			URL: "numbered:///of-" + input, Speed: 20, Workers: 4, Patience: 10 * time.Second,
			Input: input, Stdin: strings.NewReader("{\"id\":\"mine\"}\n{\"body\":\"second\"}\n"),
			Out: &out, Logger: slog.New(slog.DiscardHandler),
		})
		if err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("got %v, want %q in:\n%s", err, want, &out)
		}
		if input == "" && !strings.Contains(out.String(), "dead 1 redriven 1 | early 0 lost 0 duplicates 0 ") {
			t.Errorf("no redriven dead letter in:\n%s", &out)
		}
	}
}
