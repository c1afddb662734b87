package memory

import (
	"context"
	"errors"
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
	if got, want := New().Traits(), (backend.Traits{Name: "memory", Lacks: backend.Lacking(backend.Durability, backend.Transactions), Calls: backend.NoRoundTrip}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
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
