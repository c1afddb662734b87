package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/conformance/broken"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/memory"
)

// The numbered backend is memory that numbers its messages and keeps no headers. Its replies take a
// moment, as on a wire: deliveries overtake them, and the outcome of a push is unknown when its
// context ends meanwhile.
type numbered struct {
	backend.Backend
	numbers *sync.Map // of the last message, by queue
}

const numberedReply = 50 * time.Microsecond

func newNumbered(context.Context) (backend.Backend, func(), error) {
	return numberedOn(memory.New()), nil, nil
}

func numberedOn(b backend.Backend) backend.Backend { return numbered{b, new(sync.Map)} }

func attachNumbered(_ context.Context, b backend.Backend) (backend.Backend, func(), error) {
	n := b.(numbered)
	return numbered{unclosed{n.Backend}, n.numbers}, nil, nil
}

func numberedLeftovers(ctx context.Context, b backend.Backend) ([]string, error) {
	return memoryLeftovers(ctx, b.(numbered).Backend)
}

func (b numbered) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Name, t.Lacks = "numbered", t.Lacks.With(backend.OwnIDs, backend.Deduplicating, backend.KeepingHeaders)
	return t
}

func (b numbered) Open(ctx context.Context, name string, o backend.Options) (backend.Queue, error) {
	q, err := b.Backend.Open(ctx, name, o)
	if err != nil {
		return nil, err
	}
	last, _ := b.numbers.LoadOrStore(name, new(atomic.Int64))
	return &numberedQueue{Queue: q, last: last.(*atomic.Int64)}, nil
}

type numberedQueue struct {
	backend.Queue
	last *atomic.Int64
}

func (q *numberedQueue) Schedule(ctx context.Context, ms []backend.Message) []error {
	errs := make([]error, len(ms))
	var kept []backend.Message
	var places []int
	for i, m := range ms {
		if len(m.Headers) > 0 {
			errs[i] = &backend.UnsupportedError{Backend: "numbered", Op: "headers"}
			continue
		}
		m.ID = fmt.Sprint(q.last.Add(1))
		kept, places = append(kept, m), append(places, i)
	}
	for k, err := range q.Queue.Schedule(ctx, kept) {
		errs[places[k]] = err
	}
	return q.reply(ctx, errs, func() {
		for k, i := range places {
			if errs[i] == nil {
				ms[i].ID = kept[k].ID
			}
		}
	})
}

// reply returns the outcomes after a moment.
func (q *numberedQueue) reply(ctx context.Context, errs []error, tell func()) []error {
	select {
	case <-time.After(numberedReply):
		tell()
		return errs
	case <-ctx.Done():
		return backend.FailAll(len(errs), ctx.Err())
	}
}

// TestSuiteCatchesWhereIDsAreMade runs the suite on a store that makes ids, with the faults under
// it.
func TestSuiteCatchesWhereIDsAreMade(t *testing.T) {
	testenv.In(t, testenv.All)
	for _, f := range broken.Faults() {
		t.Run(f.Name, func(t *testing.T) {
			vs, err := conformance.Judge(t.Context(), numbering(f), f.Rule)
			if err != nil {
				t.Fatal(err)
			}
			var v *conformance.Violation
			switch {
			case vs[0].Skipped != "":
				t.Skip(vs[0].Skipped)
			case needsMore[f.Name] != "":
				t.Skip(needsMore[f.Name])
			case !errors.As(vs[0].Err, &v):
				t.Fatalf("check %s did not catch a backend that %s: %v", f.Rule, f.Name, vs[0].Err)
			}
			t.Logf("caught by %s: %s", v.Check, firstLine(v.Detail))
		})
	}
}

// needsMore are the faults that do not show on the numbered backend, with the reason.
var needsMore = map[string]string{
	"drops a header": "the backend has no headers",
	"cuts the values of headers at 32 KiB where it lists dead letters": "the backend has no headers",
	"gives leases from before a purge again":                           "the backend has no id twice",
	"keeps no ids taken after a purge":                                 "the backend keeps no ids taken",
	"does not count a push that replaces a message":                    "the backend replaces no messages",
	"shows the windows of the messages that it lists":                  "the backend keeps no ids taken",
	"lists queues under a context that has ended":                      "the backend lists no queues",
	"lists queues after Close":                                         "the backend lists no queues",
}

// numbering is a harness of the numbered backend over memory with a fault. The fault is over it
// where it shows only in batches that are rejected in part.
func numbering(f broken.Fault) conformance.Harness {
	h := judging(f)
	h.Leftovers = nil
	h.New = func(context.Context) (backend.Backend, func(), error) {
		if f.Rule == "batch-outcomes" {
			return f.Wrap(numberedOn(memory.New())), nil, nil
		}
		return numberedOn(f.Wrap(memory.New())), nil, nil
	}
	if f.Rule == "leaves-nothing" {
		faulty := judging(f).Leftovers
		h.Leftovers = func(ctx context.Context, b backend.Backend) ([]string, error) {
			return faulty(ctx, b.(numbered).Backend)
		}
	}
	return h
}

// pretender is a backend that declares lacking features that it has.
type pretender struct {
	backend.Backend
	lacks []backend.Feature
}

func (b pretender) Traits() backend.Traits {
	t := b.Backend.Traits()
	t.Lacks = t.Lacks.With(b.lacks...)
	return t
}

// TestSuiteCatchesClaims has backends declare too little.
func TestSuiteCatchesClaims(t *testing.T) {
	for _, c := range []struct {
		name, rule string
		lacks      []backend.Feature
	}{
		{"keeps the pusher's ids", "ids", []backend.Feature{backend.OwnIDs, backend.Deduplicating}},
		{"deduplicates by ids that it ignores", "ids", []backend.Feature{backend.OwnIDs}},
		{"has headers", "unsupported", []backend.Feature{backend.KeepingHeaders}},
		{"sees what it cancels", "cancel-settled", []backend.Feature{backend.CancelNotFound}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := conformance.Harness{Virtual: true, Patience: 300 * time.Millisecond}
			h.New = func(context.Context) (backend.Backend, func(), error) {
				return pretender{memory.New(), c.lacks}, nil, nil
			}
			var v *conformance.Violation
			if err := conformance.Verify(t.Context(), h, c.rule); !errors.As(err, &v) {
				t.Errorf("check %s did not catch a backend that %s and says otherwise: %v", c.rule, c.name, err)
			} else {
				t.Log(firstLine(v.Detail))
			}
		})
	}
}
