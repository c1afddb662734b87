package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
)

// TestExchange has Go and Java push into one queue and take from it at once, both moving due
// messages. Each message arrives once, whole, in one of the two, and not before it is due. Each
// body ends with @ and its due time in ms.
func TestExchange(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		n := unlessShort(10_000, 1000)
		b := f.both(String)
		q := b.workers(ctx)
		arrivals := newArrivals(2 * n)
		consumer := got(b.java.Consume(ctx, 16))(f.T)
		stop := consume(ctx, q, arrivals.handle, delayq.Workers(16))
		offered := make(chan error, 1)
		go func() {
			_, err := b.java.OfferMany(ctx, Load{Count: n, Size: 60, MaxDelay: 3 * time.Second, Threads: 8, Prefix: "java", Stamped: true})
			offered <- err
		}()
		must(f.T, pushStamped(ctx, q, n))
		must(f.T, <-offered)
		arrivals.awaitAll(ctx, f.T, consumer)
		b.empty(ctx)
		must(f.T, stop())
		must(f.T, consumer.Stop(ctx))
		arrivals.addFrom(consumer)
		arrivals.check(f.T, map[string]int{"go": n, "java": n})
		arrivals.checkShares(f.T)
	})
}

func unlessShort[T any](full, short T) T {
	if testing.Short() {
		return short
	}
	return full
}

// pushStamped pushes go-0@due, go-1@due and so on, with delays of up to 3 s, from several
// goroutines.
func pushStamped(ctx context.Context, q delayq.Queue, n int) error {
	const pushers = 8
	errs := make(chan error, pushers)
	for from := range pushers {
		go func() {
			for i := from; i < n; i += pushers {
				due := time.Now().Add(rand.N(3 * time.Second)).Truncate(time.Millisecond)
				if _, err := q.Push(ctx, []byte(stamped("go", i, due)), delayq.At(due)); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range pushers {
		if err := <-errs; err != nil {
			return err
		}
	}
	return nil
}

func stamped(prefix string, i int, due time.Time) string {
	text := fmt.Sprintf("%s-%d@%d", prefix, i, due.UnixMilli())
	return text + strings.Repeat(".", max(60-len(text), 0))
}

// consume starts workers, and returns a function that stops them.
func consume(ctx context.Context, q delayq.Queue, h delayq.Handler, opts ...delayq.ConsumeOption) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- q.Consume(ctx, h, opts...) }()
	return func() error {
		cancel()
		return <-ended
	}
}

// arrivals are the bodies that arrived in Go and in Java.
type arrivals struct {
	mu     sync.Mutex
	inGo   map[string][]time.Time
	inJava map[string][]time.Time
	failed []error
	total  int
	want   int
	read   int // of the consumer's
}

func newArrivals(want int) *arrivals {
	return &arrivals{inGo: map[string][]time.Time{}, inJava: map[string][]time.Time{}, want: want}
}

// handle takes about a millisecond, which leaves Java a share.
func (a *arrivals) handle(_ context.Context, d *delayq.Delivery) error {
	at := time.Now()
	time.Sleep(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.inGo[string(d.Body)] = append(a.inGo[string(d.Body)], at)
	a.total++
	return nil
}

// addFrom adds the values that Java received since the last call.
func (a *arrivals) addFrom(consumers ...*Consumer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := 0
	for _, c := range consumers {
		all += len(c.Received())
	}
	a.total += all - a.read
	a.read = all
	a.inJava, a.failed = map[string][]time.Time{}, nil
	for _, c := range consumers {
		for _, r := range c.Received() {
			s, ok := r.Value.(string)
			if r.Err != nil || !ok {
				a.failed = append(a.failed, fmt.Errorf("received %v, %w", r.Value, r.Err))
				continue
			}
			a.inJava[s] = append(a.inJava[s], r.At)
		}
	}
}

func (a *arrivals) awaitAll(ctx context.Context, t *testing.T, consumers ...*Consumer) {
	t.Helper()
	for !a.complete(consumers) {
		select {
		case <-ctx.Done():
			a.addFrom(consumers...)
			t.Fatalf("%d arrivals of %d: %d distinct ones in Go, %d in Java", a.total, a.want, len(a.inGo), len(a.inJava))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (a *arrivals) complete(consumers []*Consumer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.total - a.read
	for _, c := range consumers {
		n += c.count()
	}
	return n >= a.want
}

// check wants that many whole messages of each prefix, each of them once.
func (a *arrivals) check(t *testing.T, counts map[string]int) {
	t.Helper()
	for _, err := range a.failed {
		t.Errorf("Java: %v", err)
	}
	seen := map[string]int{}
	for _, side := range []map[string][]time.Time{a.inGo, a.inJava} {
		for body, at := range side {
			name := checkStamp(t, body, at)
			seen[name] += len(at)
		}
	}
	for prefix, n := range counts {
		for i := range n {
			name := fmt.Sprintf("%s-%d", prefix, i)
			if seen[name] != 1 {
				t.Errorf("%s came %d times", name, seen[name])
			}
			delete(seen, name)
		}
	}
	if len(seen) > 0 {
		t.Errorf("%v was not pushed", seen)
	}
}

// checkStamp checks that a body did not arrive before its due time, and returns the rest of it.
func checkStamp(t *testing.T, body string, at []time.Time) (name string) {
	t.Helper()
	name, stamp, found := strings.Cut(strings.TrimRight(body, "."), "@")
	ms, err := strconv.ParseInt(stamp, 10, 64)
	if !found || err != nil {
		t.Errorf("received %q: %v", body, err)
	}
	for _, arrived := range at {
		if early := time.UnixMilli(ms).Sub(arrived.Round(0)); early > 0 {
			t.Errorf("%s came %v early", name, early)
		}
	}
	return name
}

// checkShares wants each side to have taken some of each side's.
func (a *arrivals) checkShares(t *testing.T) {
	t.Helper()
	for taker, side := range map[string]map[string][]time.Time{"Go": a.inGo, "Java": a.inJava} {
		from := map[string]int{}
		for body := range side {
			pusher, _, _ := strings.Cut(body, "-")
			from[pusher]++
		}
		t.Logf("%s took %v", taker, from)
		if len(side) == 0 {
			t.Errorf("%s took nothing", taker)
		}
	}
}
