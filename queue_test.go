package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/memory"
)

var errStore = errors.New("the store is away")

func TestNewReportsTheBackend(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.before = func(_ context.Context, op string) error { return errStore }
	_, err := delayq.New(t.Context(), "orders", s.option())
	wantIs(t, err, errStore)

	b := memory.New()
	must(t, b.Close())
	_, err = delayq.New(t.Context(), "orders", delayq.WithBackend(b))
	wantIs(t, err, delayq.ErrClosed)
}

func TestRefusedRequirementClosesTheStore(t *testing.T) {
	t.Parallel()
	var ops []string
	s := newSeam()
	s.before = func(_ context.Context, op string) error {
		ops = append(ops, op)
		return nil
	}
	_, err := delayq.New(t.Context(), "orders", s.option(), delayq.Require(delayq.Durability))
	wantIs(t, err, delayq.ErrUnsupported)
	if want := []string{"open", "close"}; !slices.Equal(ops, want) {
		t.Errorf("store was asked to %q, want %q", ops, want)
	}
}

func TestCloseReportsTheStore(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.before = failing("close")
	q, err := delayq.New(t.Context(), "orders", s.option())
	must(t, err)
	wantIs(t, q.Close(), errStore)
	wantIs(t, q.Close(), errStore)
}

// The backend is the caller's: another queue on it lives on, and finds the messages.
func TestCloseLeavesTheBackendOpen(t *testing.T) {
	t.Parallel()
	b := memory.New()
	defer func() { must(t, b.Close()) }()
	first := newQueue(t, delayq.WithBackend(b))
	id := push(t, first)
	must(t, first.Close())
	if d := receive(t, newQueue(t, delayq.WithBackend(b))); d.ID != id {
		t.Errorf("received %v, want %s", d, id)
	}
}

func TestOpenGivesTheSameMessagesAgain(t *testing.T) {
	t.Parallel()
	const url = "memory://open-test/orders"
	first, err := delayq.Open(t.Context(), url)
	must(t, err)
	id := push(t, first)
	must(t, first.Close())

	second, err := delayq.Open(t.Context(), url)
	must(t, err)
	d := receive(t, second)
	if d.ID != id {
		t.Errorf("received %v, want %s", d, id)
	}
	must(t, d.Ack(t.Context()))
	must(t, second.Close())
}

// opened are the backends that URLs of the scheme "seam" name by their host.
var opened sync.Map

func init() {
	backend.Register("seam", func(_ context.Context, u *url.URL) (backend.Backend, string, error) {
		b, _ := opened.Load(u.Host)
		return b.(*seam), strings.TrimPrefix(u.Path, "/"), nil
	})
}

// Open closes what it made, once, also when it fails.
func TestOpenClosesItsBackend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		path   string
		opts   []delayq.Option
		before func(context.Context, string) error
		want   error // of Open, else of Close
	}{
		{name: "sound", path: "orders"},
		{name: "close-fails", path: "orders", before: failing("close backend"), want: errStore},
		{name: "bad-name", path: "a{b}", want: delayq.ErrInvalid},
		{name: "lacking", path: "orders", opts: []delayq.Option{delayq.Require(delayq.Durability)}, want: delayq.ErrUnsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSeam()
			s.before = tt.before
			opened.Store(tt.name, s)
			defer opened.Delete(tt.name)
			q, err := delayq.Open(t.Context(), "seam://"+tt.name+"/"+tt.path, tt.opts...)
			for range 2 {
				if q != nil {
					err = q.Close()
				}
			}
			if !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			if n, _ := s.calls("close backend"); n != 1 {
				t.Errorf("backend was closed %d times, want once", n)
			}
		})
	}
}

func TestReceiveGivesUpWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q, delayq.After(time.Hour))
		for _, call := range []func(*scene, context.Context) error{methods["Queue.Receive"], receivingBatch(2)} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			wantIs(t, call(&scene{Queue: q}, ctx), context.DeadlineExceeded)
			cancel()
		}
		wantCounts(t, q, delayq.Stats{Scheduled: 1})
		time.Sleep(time.Hour)
		if d := receive(t, q); d.Attempt != 1 {
			t.Errorf("attempt %d, want 1", d.Attempt)
		}
	})
}

func TestIDsSortByThePush(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var ids []string
	for range 100 {
		ids = append(ids, push(t, q))
		batch, err := q.PushBatch(t.Context(), make([]delayq.Message, 100))
		must(t, err)
		ids = append(ids, batch...)
	}
	if !slices.IsSorted(ids) {
		t.Error("ids do not sort by the time of the push")
	}
	if n := len(ids); len(slices.Compact(ids)) != n {
		t.Error("an id came twice")
	}
}

// While a message of an id is in the queue, in whatever state, it stays as it is.
func TestReuseOfAnID(t *testing.T) {
	each(t, []string{"scheduled", "ready", "held", "dead"}, func(t *testing.T, id string) {
		s := newScene(t)
		s.wantUnchanged(t, func() {
			got, err := s.Push(t.Context(), []byte("second"), delayq.ID(id), delayq.After(time.Minute))
			wantIs(t, err, delayq.ErrDuplicate)
			if got != id {
				t.Errorf("id %q, want %q", got, id)
			}
			ids, err := s.PushBatch(t.Context(), []delayq.Message{{ID: id}})
			wantIs(t, err, delayq.ErrDuplicate)
			if !slices.Equal(ids, []string{id}) {
				t.Errorf("ids %q, want %q", ids, id)
			}
		})
	})
	t.Run("in one batch", func(t *testing.T) {
		t.Parallel()
		q := newQueue(t)
		_, err := q.PushBatch(t.Context(), []delayq.Message{
			{ID: "a", Body: []byte("first")}, {ID: "b"}, {ID: "a", Body: []byte("second")},
		})
		wantIs(t, err, delayq.ErrDuplicate)
		var batch *delayq.BatchError
		if !errors.As(err, &batch) || len(batch.Errs) != 3 || batch.Errs[0] != nil || batch.Errs[1] != nil {
			t.Errorf("error %v, want one for the third message", err)
		}
		if d := receive(t, q); string(d.Body) != "first" {
			t.Errorf("received %s, want the first", d.Body)
		}
	})
}

// A store that tried twice by itself finds its own first try. No other push has an id made here.
func TestDuplicateOfAMadeID(t *testing.T) {
	t.Parallel()
	s := newSeam()
	s.before = func(_ context.Context, op string) error {
		if op == "schedule" {
			return backend.ErrDuplicate
		}
		return nil
	}
	q := newQueue(t, s.option())
	push(t, q)
	_, err := q.PushBatch(t.Context(), make([]delayq.Message, 2))
	must(t, err)
	_, err = q.Push(t.Context(), nil, delayq.ID("given"))
	wantIs(t, err, delayq.ErrDuplicate)
}

func TestMessagesArriveWhole(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	_, err := q.Push(t.Context(), []byte("one\x00"), delayq.ID("1"), delayq.Header("k", "old"), delayq.Header("k", "\xff"))
	must(t, err)
	_, err = q.PushBatch(t.Context(), []delayq.Message{{ID: "2", Body: []byte("two"), Headers: map[string]string{"a": "", "b": "c"}}})
	must(t, err)

	ds, err := q.ReceiveBatch(t.Context(), 10)
	must(t, err)
	var got []string
	for _, d := range ds {
		got = append(got, fmt.Sprintf("%s %q %q %d", d.ID, d.Body, d.Headers, d.Attempt))
	}
	want := []string{`1 "one\x00" map["k":"\xff"] 1`, `2 "two" map["a":"" "b":"c"] 1`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	must(t, q.AckBatch(t.Context(), ds))
	wantCounts(t, q, delayq.Stats{})
}

// Whatever is tried with a settled delivery changes nothing, and the error says that it was settled
// rather than late.
func TestSettledDeliveryIsSettled(t *testing.T) {
	t.Parallel()
	for name, settle := range methods {
		if !settles[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			must(t, settle(s, t.Context()))
			before, until := stats(t, s), s.held.LeaseUntil()
			for again := range settles {
				wantIs(t, methods[again](s, t.Context()), delayq.ErrSettled)
			}
			wantIs(t, methods["Delivery.Extend"](s, t.Context()), delayq.ErrSettled)
			wantIs(t, methods["Queue.ExtendBatch"](s, t.Context()), delayq.ErrSettled)
			if after := stats(t, s); after != before {
				t.Errorf("stats are %+v, were %+v", after, before)
			}
			if !s.held.LeaseUntil().Equal(until) {
				t.Error("a lost lease was extended")
			}
		})
	}
}

func TestStringsHelpALog(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	if got, want := fmt.Sprint(q), `memory queue "orders"`; got != want {
		t.Errorf("queue is %s, want %s", got, want)
	}
	_, err := q.Push(t.Context(), []byte("a secret"), delayq.ID("17"), delayq.At(time.Unix(0, 5)))
	must(t, err)
	got, want := fmt.Sprint(receive(t, q)), "message 17, attempt 1, due 1970-01-01T00:00:00.000000005Z"
	if got != want {
		t.Errorf("delivery is %s, want %s", got, want)
	}
}
