package memory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
)

// openURL opens the queue that a URL names.
func openURL(t testing.TB, rawURL string) (*queue, backend.Backend) {
	t.Helper()
	b, name, err := backend.DefaultMux().Open(context.Background(), rawURL)
	must(t, err)
	q, err := b.Open(context.Background(), name, backend.Options{})
	must(t, err)
	return q.(*queue), b
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

func TestURLLimits(t *testing.T) {
	for _, limit := range []string{"max_messages=1", "max_bytes=8"} {
		q, _ := openURL(t, "memory://"+t.Name()+"/q?"+limit)
		errs := q.Schedule(t.Context(), []backend.Message{{ID: "a"}, {ID: "a"}, {ID: "b"}})
		if errs[0] != nil || !errors.Is(errs[1], backend.ErrDuplicate) || !errors.Is(errs[2], backend.ErrFull) {
			t.Errorf("%s: got %v", limit, errs)
		}
		mustAll(t, q.Cancel(t.Context(), []string{"a"}))
	}
}

// The same URL finds the same messages, though every backend was closed. Close ends the handles
// of its own backend and no others.
func TestURLNamesOneStore(t *testing.T) {
	url := "memory://" + t.Name() + "/q"
	first, b := openURL(t, url)
	second, stays := openURL(t, url)
	other, _ := openURL(t, "memory://"+t.Name()+"-other/q")
	got := receive(t.Context(), t, first)
	must(t, b.Close())
	must(t, b.Close())
	if r := mustReturn(t, got); !errors.Is(r.err, backend.ErrClosed) {
		t.Errorf("a waiting Receive returns %v", r.err)
	}
	if _, err := b.Open(t.Context(), "q", backend.Options{}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Open after Close: %v", err)
	}
	_, queues := b.(admin.Lister).Queues(t.Context())
	_, examined := b.(admin.Examiner).Examine(t.Context())
	_, remains := b.(admin.Remover).Remains(t.Context(), "q")
	for _, err := range []error{queues, examined, remains, b.(admin.Remover).Remove(t.Context(), "q")} {
		if !errors.Is(err, backend.ErrClosed) {
			t.Errorf("Queues, Examine, Remains or Remove after Close: %v", err)
		}
	}
	mustPush(t, second, "a", 0)
	if n, _ := other.usage(); n != 0 {
		t.Errorf("another store has %d messages", n)
	}
	must(t, second.Close())
	if n := len(stays.(*borrowed).handles); n != 0 {
		t.Errorf("%d closed handles are kept", n)
	}
	must(t, stays.Close()) // the last one
	third, _ := openURL(t, url)
	mustAll(t, third.Ack(t.Context(), leasesOf(mustTake(t, third, 1, time.Minute))))
}

// A URL names one queue in the whole process, also for a test that has a time of its own.
func TestURLInRealTimeThenInABubble(t *testing.T) {
	b, name, err := backend.DefaultMux().Open(t.Context(), "memory://bubble/q")
	must(t, err)
	wait := func(d time.Duration) {
		q, err := b.Open(context.Background(), name, backend.Options{})
		must(t, err)
		defer func() { _ = q.Close() }()
		must(t, push(q.(*queue), "a", d))
		ctx, cancel := context.WithTimeout(context.Background(), max(100*d, time.Minute))
		defer cancel()
		ds, err := q.Receive(ctx, 1, time.Hour)
		must(t, err)
		mustAll(t, q.Ack(ctx, leasesOf(ds)))
	}
	for range 2 {
		wait(time.Millisecond)
		synctest.Test(t, func(*testing.T) { wait(time.Hour) })
	}
}

// FuzzURL wants each URL rejected with a typed error, or a backend without anything set aside for
// messages to come.
func FuzzURL(f *testing.F) {
	for _, seed := range []string{
		"memory:///orders", "memory://store/orders?max_messages=10&max_bytes=1000", "memory:///o?max_messages=9223372036854775807",
		"memory:///o?max_bytes=1&max_bytes=2", "memory:///o?max_bytes=-1", "memory://u:p@h/o", "memory:o", "memory:///a/b", "memory:///o?%zz", "memory:///o#x",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.Parse(text)
		if err != nil {
			t.Skip("the parser of package url rejects it")
		}
		b, queue, err := new(shared).open(t.Context(), u)
		if err != nil {
			if !errors.Is(err, backend.ErrInvalid) {
				t.Fatalf("%q is rejected with %v", text, err)
			}
			return
		}
		opened := b.(*borrowed).Backend
		if messages, bytes := opened.Usage(); messages != 0 || bytes != 0 || strings.HasPrefix(queue, "/") && !strings.HasPrefix(u.Path, "//") {
			t.Fatalf("%q is queue %q of a backend with %d messages in %d bytes", text, queue, messages, bytes)
		}
	})
}

// A limit is a promise to the caller, not a request for memory.
func TestLimitsAllocateNothing(t *testing.T) {
	allocated := testing.AllocsPerRun(10, func() { New(MaxMessages(math.MaxInt), MaxBytes(math.MaxInt64)) })
	if allocated > 100 {
		t.Errorf("%v allocations for an empty backend", allocated)
	}
}
