package memory

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"go.uber.org/goleak"

	"github.com/delayq/delayq/backend"
)

func TestOpenReportsBadOptions(t *testing.T) {
	for _, c := range []struct {
		option Option
		shows  string
	}{
		{MaxMessages(0), "memory.MaxMessages 0"},
		{MaxMessages(-5), "memory.MaxMessages -5"},
		{MaxBytes(0), "memory.MaxBytes 0"},
		{MaxBytes(-1), "memory.MaxBytes -1"},
		{nil, "memory option"},
	} {
		_, err := New(c.option).Open(context.Background(), "q", backend.Options{})
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(err.Error(), c.shows) {
			t.Errorf("want an error with %q, got %v", c.shows, err)
		}
	}
}

func TestOpenAfterTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New().Open(ctx, "q", backend.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestTraits(t *testing.T) {
	if got, want := New().Traits(), (backend.Traits{Name: "memory", Lacks: backend.Lacking(backend.Durability)}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTwoHandlesOneQueue(t *testing.T) {
	b, clock := New(), clockwork.NewFakeClockAt(epoch)
	one, two := openOn(t, b, clock), openOn(t, b, clock)
	mustPush(t, one, "a", time.Minute)
	got := receive(context.Background(), t, two)
	clock.Advance(time.Minute)
	d := mustGet(t, got, "a")
	must(t, two.Close())
	mustAll(t, one.Ack(context.Background(), []backend.Lease{d.Lease()}))
	mustBeEmpty(t, one.store)
}

func TestOneClockForAllHandles(t *testing.T) {
	b, clock := New(), clockwork.NewFakeClockAt(epoch)
	openOn(t, b, clock)
	for _, other := range []clockwork.Clock{nil, clockwork.NewFakeClockAt(epoch)} {
		if _, err := b.Open(context.Background(), "q", backend.Options{Clock: other}); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("clock %v: %v", other, err)
		}
	}
	openOn(t, b, clock)
}

func TestTwoHandlesOnTheRealClock(t *testing.T) {
	b := New()
	openOn(t, b, nil)
	openOn(t, b, nil)
}

func TestCloseWakesItsOwnReceives(t *testing.T) {
	b, clock := New(), clockwork.NewFakeClockAt(epoch)
	one, two := openOn(t, b, clock), openOn(t, b, clock)
	first, second := receive(context.Background(), t, one), receive(context.Background(), t, one)
	other := receive(context.Background(), t, two)
	must(t, one.Close())
	for _, got := range []<-chan received{first, second} {
		if r := mustReturn(t, got); !errors.Is(r.err, backend.ErrClosed) || r.ds != nil {
			t.Errorf("got %v", r)
		}
	}
	mustPush(t, two, "a", 0)
	mustGet(t, other, "a")
}

func TestClosedQueueRefusesEverything(t *testing.T) {
	q, _ := open(t)
	mustPush(t, q, "a", 0)
	lease := mustTake(t, q, 1, time.Minute)[0].Lease()
	must(t, q.Close())
	must(t, q.Close())
	mustRefuse(context.Background(), t, q, lease, backend.ErrClosed)
}

func TestEndedContextChangesNothing(t *testing.T) {
	q, _ := open(t)
	mustPush(t, q, "a", 0)
	lease := mustTake(t, q, 1, time.Minute)[0].Lease()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	mustRefuse(ctx, t, q, lease, context.Canceled)
	mustAll(t, q.Ack(context.Background(), []backend.Lease{lease}))
	mustBeEmpty(t, q.store)
}

// mustRefuse calls every method and wants this error from each.
func mustRefuse(ctx context.Context, t *testing.T, q *queue, lease backend.Lease, want error) {
	t.Helper()
	ids, ls := []string{"a"}, []backend.Lease{lease}
	_, receiveErr := q.Receive(ctx, 1, time.Minute)
	_, extendErrs := q.Extend(ctx, ls, time.Minute)
	_, statsErr := q.Stats(ctx)
	_, _, listErr := q.ListDead(ctx, "", 1)
	for method, err := range map[string]error{
		"Schedule":   one(q.Schedule(ctx, []backend.Message{{ID: "b"}})),
		"Receive":    receiveErr,
		"Ack":        one(q.Ack(ctx, ls)),
		"Nack":       one(q.Nack(ctx, []backend.Return{{Lease: lease}})),
		"Extend":     one(extendErrs),
		"Dead":       one(q.Dead(ctx, []backend.Burial{{Lease: lease}})),
		"Cancel":     one(q.Cancel(ctx, ids)),
		"Reschedule": one(q.Reschedule(ctx, []backend.Move{{ID: "a"}})),
		"Stats":      statsErr,
		"ListDead":   listErr,
		"Redrive":    one(q.Redrive(ctx, ids)),
		"DeleteDead": one(q.DeleteDead(ctx, ids)),
	} {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", method, err, want)
		}
	}
}

func TestBackendCloseClosesAll(t *testing.T) {
	defer goleak.VerifyNone(t)
	b := New()
	one, two := openOn(t, b, nil), openOn(t, b, nil)
	mustPush(t, one, "a", time.Hour)
	got := receive(context.Background(), t, two)
	must(t, b.Close())
	must(t, b.Close())
	if r := mustReturn(t, got); !errors.Is(r.err, backend.ErrClosed) {
		t.Errorf("Receive: %v", r)
	}
	if err := push(one, "b", 0); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("push: %v", err)
	}
	if _, err := b.Open(context.Background(), "q", backend.Options{}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("open: %v", err)
	}
}

// A handle that was closed is not kept, so that a process may open and close for years.
func TestClosedHandlesAreForgotten(t *testing.T) {
	b := New()
	for range 10 {
		must(t, openOn(t, b, nil).Close())
	}
	if n := len(b.handles); n != 0 {
		t.Errorf("%d handles left", n)
	}
}

func TestURLs(t *testing.T) {
	for _, c := range []struct{ url, queue string }{
		{"memory:///orders", "orders"},
		{"memory://shop/orders", "orders"},
		{"memory://shop/a.b-c_d:e", "a.b-c_d:e"},
		{"memory:///orders?max_messages=10&max_bytes=1000", "orders"},
		{"memory:///a%20b", "a b"}, // for the root package to refuse
		{"memory:///", ""},
	} {
		b, name, err := backend.DefaultMux().Open(context.Background(), c.url)
		if err != nil || name != c.queue {
			t.Errorf("%s: %q, %v", c.url, name, err)
			continue
		}
		must(t, b.Close())
	}
}

func TestBadURLs(t *testing.T) {
	for _, c := range []struct{ url, shows string }{
		{"memory:orders", "memory URL"},
		{"memory://user:secret@/orders", "memory URL"},
		{"memory:///orders#part", "memory URL"},
		{"memory:///orders?max_messages=0", "max_messages"},
		{"memory:///orders?max_messages=many", "many"},
		{"memory:///orders?max_messages=1&max_messages=2", `"1,2"`},
		{"memory:///orders?max_bytes=-1", "max_bytes"},
		{"memory:///orders?max_bytes=99999999999999999999", "max_bytes"},
		{"memory:///orders?max_bytes=", "max_bytes"},
		{"memory:///orders?lease=5s", `parameter "lease"`},
		{"memory:///orders?max_messages=5;max_bytes=5", "parameters"},
		{"memory:///orders?max_messages=%zz", "parameters"},
	} {
		_, _, err := backend.DefaultMux().Open(context.Background(), c.url)
		if !errors.Is(err, backend.ErrInvalid) || !strings.Contains(fmt.Sprint(err), c.shows) {
			t.Errorf("%s: want an error with %q, got %v", c.url, c.shows, err)
		}
		if strings.Contains(fmt.Sprint(err), "secret") {
			t.Errorf("%s: the error shows the password: %v", c.url, err)
		}
	}
}

// The same URL finds the same messages, though the first backend is closed.
func TestURLNamesOneStore(t *testing.T) {
	ctx := context.Background()
	open := func(url string) (*queue, backend.Backend) {
		b, name, err := backend.DefaultMux().Open(ctx, url)
		must(t, err)
		q, err := b.Open(ctx, name, backend.Options{})
		must(t, err)
		return q.(*queue), b
	}
	url := "memory://" + t.Name() + "/q"
	first, b := open(url)
	mustPush(t, first, "a", 0)
	must(t, first.Close())
	must(t, b.Close())
	again, _ := open(url)
	other, _ := open("memory://" + t.Name() + "-other/q")
	if n, _ := other.usage(); n != 0 {
		t.Errorf("another store has %d messages", n)
	}
	d := mustTake(t, again, 1, time.Minute)
	mustAll(t, again.Ack(ctx, leasesOf(d)))
}

func TestURLLimits(t *testing.T) {
	b, name, err := backend.DefaultMux().Open(context.Background(), "memory://"+t.Name()+"/q?max_messages=1")
	must(t, err)
	q, err := b.Open(context.Background(), name, backend.Options{})
	must(t, err)
	errs := q.Schedule(context.Background(), []backend.Message{{ID: "a"}, {ID: "b"}})
	if !errors.Is(errs[1], backend.ErrFull) {
		t.Errorf("got %v", errs)
	}
	mustAll(t, q.(*queue).Cancel(context.Background(), []string{"a"}))
}
