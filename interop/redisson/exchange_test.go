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
		arrivals := &arrivals{want: 2 * n}
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
		inGo, inJava := arrivals.check(f.T, map[string]int{"go": n, "java": n}, consumer)
		if inGo == 0 || inJava == 0 {
			f.Error("one side took nothing")
		}
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

// arrivals are the messages that arrived in Go. Java's consumers have the others.
type arrivals struct {
	want int

	mu  sync.Mutex
	all []Received
}

// handle takes about a millisecond, which leaves Java a share.
func (a *arrivals) handle(_ context.Context, d *delayq.Delivery) error {
	at := time.Now()
	time.Sleep(time.Millisecond)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, Received{Value: string(d.Body), At: at})
	return nil
}

func (a *arrivals) awaitAll(ctx context.Context, t *testing.T, consumers ...*Consumer) {
	t.Helper()
	eventually(ctx, t, fmt.Sprintf("%d arrivals", a.want), func() bool {
		a.mu.Lock()
		n := len(a.all)
		a.mu.Unlock()
		for _, c := range consumers {
			n += c.count()
		}
		return n >= a.want
	})
}

// check wants that many whole messages of each prefix, each of them once, and returns how many each
// side took. Consumers and workers have stopped.
func (a *arrivals) check(t *testing.T, counts map[string]int, consumers ...*Consumer) (inGo, inJava int) {
	t.Helper()
	all := a.all
	for _, c := range consumers {
		all = append(all, c.Received()...)
	}
	seen := map[string]int{}
	for _, r := range all {
		body, ok := r.Value.(string)
		if !ok || r.Err != nil {
			t.Errorf("received %v, %v", r.Value, r.Err)
		}
		seen[checkStamp(t, body, r.At)]++
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
	inGo, inJava = len(a.all), len(all)-len(a.all)
	t.Logf("%d in Go, %d in Java", inGo, inJava)
	return inGo, inJava
}

// checkStamp checks that a body did not arrive before its due time, and returns the rest of it.
func checkStamp(t *testing.T, body string, at time.Time) (name string) {
	t.Helper()
	name, stamp, found := strings.Cut(strings.TrimRight(body, "."), "@")
	ms, err := strconv.ParseInt(stamp, 10, 64)
	if !found || err != nil {
		t.Errorf("received %q: %v", body, err)
	}
	if early := time.UnixMilli(ms).Sub(at.Round(0)); early > 0 {
		t.Errorf("%s came %v early", name, early)
	}
	return name
}
