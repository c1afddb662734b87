package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

const claimTrip = 500 * time.Microsecond

// crowd is a queue with n messages that are due, and one more handle on the same store. A Receive
// takes half a millisecond, so that there is a pace to measure in virtual time.
func crowd(t *testing.T, n int, opts ...delayq.Option) (s *seam, q, witness delayq.Queue) {
	t.Helper()
	s = newSeam()
	s.before = slowClaims
	q, witness = newPair(t, s, opts...)
	pushCrowd(t, witness, n, 0)
	return s, q, witness
}

func slowClaims(_ context.Context, op string) error {
	if op == "receive" {
		time.Sleep(claimTrip)
	}
	return nil
}

// mostClaimed returns how many messages the largest Receive asked for.
func (s *seam) mostClaimed() int {
	_, most := s.calls("receive")
	return most
}

// pushCrowd pushes messages that carry their number.
func pushCrowd(t *testing.T, q delayq.Queue, n, size int) {
	t.Helper()
	ms := make([]delayq.Message, n)
	for i := range ms {
		ms[i].Body = append(fmt.Appendf(nil, "%06d", i), make([]byte, size)...)
	}
	for some := range slices.Chunk(ms, delayq.MaxBatch) {
		_, err := q.PushBatch(t.Context(), some)
		must(t, err)
	}
}

// The claims grow with the load, unless handlers are slow. One worker takes one message at a time:
// a message pushed with an earlier due time comes first.
func TestSizesOfClaims(t *testing.T) {
	type test struct {
		takes, runs time.Duration
		workers     int
		opts        []delayq.ConsumeOption
		low, high   int
	}
	queuetest.Cases(t, map[string]test{
		"as it is":      {100 * time.Microsecond, time.Minute, 32, nil, 4 * 32, 32 + 1000},
		"bounded":       {100 * time.Microsecond, time.Minute, 32, []delayq.ConsumeOption{delayq.Prefetch(40)}, 32 + 1, 32 + 40},
		"off":           {100 * time.Microsecond, time.Minute, 32, []delayq.ConsumeOption{delayq.Prefetch(0)}, 32, 32},
		"slow handlers": {40 * time.Millisecond, time.Minute, 8, nil, 8, 8},
		"slower":        {time.Second, 100 * time.Second, 8, nil, 8, 8},
		"one worker":    {50 * time.Microsecond, time.Minute, 1, nil, 1, 1},
	}, func(t *testing.T, tt test) {
		c, q, _ := crowd(t, 4000)
		consume(t, q, tt.runs, func(context.Context, *delayq.Delivery) error {
			time.Sleep(tt.takes)
			return nil
		}, append(tt.opts, delayq.Workers(tt.workers))...)
		if most := c.mostClaimed(); most < tt.low || most > tt.high {
			t.Errorf("the largest claim asked for %d messages, want %d to %d", most, tt.low, tt.high)
		}
	})
}

// slowDown is a handler that is fast until it is told, and stuck from then on.
type slowDown struct {
	stuck    atomic.Bool
	handled  atomic.Int64
	released chan struct{}
}

func newSlowDown() *slowDown { return &slowDown{released: make(chan struct{})} }

func (s *slowDown) handle(context.Context, *delayq.Delivery) error {
	if s.stuck.Load() {
		<-s.released
	}
	time.Sleep(100 * time.Microsecond)
	s.handled.Add(1)
	return nil
}

// ahead lets the handlers run until messages are claimed ahead, and stops them then.
func (s *slowDown) ahead(t *testing.T, witness delayq.Queue, workers int64) {
	t.Helper()
	for range 1000 {
		time.Sleep(time.Millisecond)
		if stats(t, witness).InFlight >= 2*workers {
			s.stuck.Store(true)
			return
		}
	}
	t.Fatal("nothing was claimed ahead")
}

func TestStuckWorkersHoldNothingUp(t *testing.T) {
	const workers = 16
	type test struct{ lease, hold time.Duration }
	queuetest.Cases(t, map[string]test{
		"long lease":  {30 * time.Second, 100 * time.Millisecond},
		"short lease": {150 * time.Millisecond, 50 * time.Millisecond},
	}, func(t *testing.T, tt test) {
		_, q, witness := crowd(t, 4000, delayq.WithLease(tt.lease))
		s := newSlowDown()
		r := start(t, q, s.handle, delayq.Workers(workers))
		s.ahead(t, witness, workers)
		time.Sleep(tt.hold + 2*claimTrip)
		if held := stats(t, witness).InFlight; held != workers {
			t.Errorf("%d messages are held, want those of %d workers", held, workers)
		}
		ackUntouched(t, witness, int(stats(t, witness).Ready))
		close(s.released)
		time.Sleep(30 * time.Second)
		must(t, r.end())
		wantCounts(t, witness, delayq.Stats{})
	})
}

func TestStopGivesBackWhatIsClaimedAhead(t *testing.T) {
	const workers, n = 16, 4000
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		c, q, witness := crowd(t, n)
		s := newSlowDown()
		r := start(t, q, s.handle, delayq.Workers(workers))
		s.ahead(t, witness, workers)
		time.Sleep(2 * time.Millisecond) // until all are stuck
		stop(t, q, r)
		time.Sleep(claimTrip)
		synctest.Wait()
		wantCounts(t, witness, delayq.Stats{InFlight: workers, Ready: n - workers - s.handled.Load()})
		close(s.released)
		must(t, <-r.done)
		left := n - s.handled.Load()
		wantCounts(t, witness, delayq.Stats{Ready: left})
		if got, _ := c.calls("nack"); got != 1 {
			t.Errorf("%d calls to give back, want 1", got)
		}
		ackUntouched(t, witness, int(left))
	})
}

// A worker takes nothing any more that was claimed ahead, once Pause has returned.
func TestPauseKeepsWhatIsClaimedAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n, pauses = 20_000, 60
		_, q, witness := crowd(t, n)
		var paused atomic.Bool
		var handled, late atomic.Int64
		r := start(t, q, func(_ context.Context, d *delayq.Delivery) error {
			if paused.Load() {
				late.Add(1)
			}
			time.Sleep(10 * time.Microsecond) // virtual
			if handled.Add(1)%300 == 0 {
				q.Pause()
				paused.Store(true)
			}
			return nil
		}, delayq.Prefetch(1000))
		for range pauses {
			for !paused.Load() {
				time.Sleep(time.Millisecond) // virtual
			}
			synctest.Wait()
			wantCounts(t, witness, delayq.Stats{Ready: n - handled.Load()})
			paused.Store(false)
			q.Resume()
		}
		must(t, r.end())
		if late.Load() > 0 {
			t.Errorf("%d messages reached the handler during %d pauses", late.Load(), pauses)
		}
		ackUntouched(t, witness, int(n-handled.Load()))
	})
}

// ackUntouched acknowledges n messages, each in its first attempt.
func ackUntouched(t *testing.T, q delayq.Queue, n int) {
	t.Helper()
	for n > 0 {
		ds, err := q.ReceiveBatch(t.Context(), delayq.MaxBatch)
		must(t, err)
		for _, d := range ds {
			if d.Attempt != 1 {
				t.Fatalf("%v came back, want it untouched", d)
			}
		}
		must(t, q.AckBatch(t.Context(), ds))
		n -= len(ds)
	}
}

// With a store that does not take them back, a stop lasts no longer than the handlers may.
func TestStopWhenNothingCanBeGivenBack(t *testing.T) {
	const workers = 16
	each(t, []time.Duration{0, time.Second}, func(t *testing.T, drain time.Duration) {
		c, q, witness := crowd(t, 4000)
		c.before = func(ctx context.Context, op string) error {
			return errors.Join(slowClaims(ctx, op), hanging("nack")(ctx, op))
		}
		s := newSlowDown()
		r := start(t, q, s.handle, delayq.Workers(workers), delayq.Drain(drain))
		s.ahead(t, witness, workers)
		time.Sleep(2 * time.Millisecond)
		began := time.Now()
		wantIs(t, r.end(), delayq.ErrDrain)
		if took := time.Since(began).Truncate(time.Second); took != drain+5*time.Second {
			t.Errorf("stopped within %v, want the drain and five seconds", took)
		}
		close(s.released)
		time.Sleep(time.Second)
	})
}

// Messages claimed ahead that turn out large are given back where they are too much.
func TestPrefetchIsBoundInBytes(t *testing.T) {
	const workers, size = 8, 256 << 10
	bubble(t, func(t *testing.T) {
		_, q, witness := crowd(t, 2000)
		pushCrowd(t, witness, 300, size)
		var mu sync.Mutex
		var most int64
		consume(t, q, 5*time.Second, func(_ context.Context, d *delayq.Delivery) error {
			time.Sleep(73 * time.Microsecond) // never at the moment of a claim, of which too much goes back at once
			mu.Lock()
			defer mu.Unlock()
			if len(d.Body) > size {
				most = max(most, stats(t, witness).InFlight)
			}
			return nil
		}, delayq.Workers(workers))
		wantCounts(t, witness, delayq.Stats{})
		if limit := int64(workers + 8<<20/size + 1); most > limit || most <= workers {
			t.Errorf("%d large messages were held, want %d to %d", most, workers+1, limit)
		}
	})
}

// A handler that runs long keeps its own message in memory, and none that was claimed with it.
func TestOneHandlerKeepsOneBody(t *testing.T) {
	t.Parallel()
	const n = 20
	q := newQueue(t)
	pushCrowd(t, q, n, 64<<10)
	var freed, handled atomic.Int64
	var first atomic.Bool
	release := make(chan struct{})
	r := start(t, q, func(_ context.Context, d *delayq.Delivery) error {
		runtime.AddCleanup(&d.Body[0], func(struct{}) { freed.Add(1) }, struct{}{})
		handled.Add(1)
		if first.CompareAndSwap(false, true) {
			<-release
		}
		return nil
	}, delayq.Workers(n))
	eventually(t, "all are handled but one", func() bool { return handled.Load() == n && stats(t, q).InFlight == 1 })
	eventually(t, "the other bodies are freed", func() bool {
		runtime.GC()
		return freed.Load() == n-1
	})
	close(release)
	must(t, r.end())
}

func TestOrderWithPrefetch(t *testing.T) {
	each(t, []int{1, 16}, func(t *testing.T, workers int) {
		const n = 2000
		c, q, _ := crowd(t, n)
		var mu sync.Mutex
		last, seen := -1, 0
		consume(t, q, time.Minute, func(_ context.Context, d *delayq.Delivery) error {
			mu.Lock()
			var i int
			_, _ = fmt.Sscanf(string(d.Body[:6]), "%d", &i)
			if i < last-workers || i > seen+workers {
				t.Errorf("message %d is in place %d", i, seen)
			}
			last, seen = max(last, i), seen+1
			mu.Unlock()
			time.Sleep(100 * time.Microsecond)
			return nil
		}, delayq.Workers(workers), delayq.Prefetch(500))
		if seen != n || c.mostClaimed() <= workers {
			t.Errorf("%d handled in claims of up to %d", seen, c.mostClaimed())
		}
	})
}

// Two consumers in real time, with handlers that hang at times: each message is handled once.
func TestPrefetchLosesNothing(t *testing.T) {
	t.Parallel()
	const n = 4000
	b := memory.New()
	one, two := newQueue(t, delayq.WithBackend(b)), newQueue(t, delayq.WithBackend(b))
	pushCrowd(t, one, n, 0)
	seen := make([]atomic.Int64, n)
	var handled atomic.Int64
	handle := func(_ context.Context, d *delayq.Delivery) error {
		var i int
		_, _ = fmt.Sscanf(string(d.Body[:6]), "%d", &i)
		if i%1000 == 0 {
			time.Sleep(150 * time.Millisecond)
		}
		seen[i].Add(1)
		handled.Add(1)
		return nil
	}
	var rs []*running
	for _, q := range []delayq.Queue{one, one, two} {
		rs = append(rs, start(t, q, handle, delayq.Workers(4)))
	}
	eventually(t, "half are handled", func() bool { return handled.Load() > n/2 })
	must(t, rs[0].end())
	eventually(t, "all are handled", func() bool { return handled.Load() >= n })
	for _, r := range rs[1:] {
		must(t, r.end())
	}
	wantCounts(t, one, delayq.Stats{})
	for i := range seen {
		if times := seen[i].Load(); times != 1 {
			t.Errorf("message %d was handled %d times", i, times)
		}
	}
}

// Two workers have 8 acks under way, and each has handled one more message.
func TestWorkersGoOnWhileTheyAck(t *testing.T) {
	type test struct {
		opts      []delayq.ConsumeOption
		inProcess bool
		want      int64
	}
	queuetest.Cases(t, map[string]test{
		"ahead":      {nil, false, 10},
		"not ahead":  {[]delayq.ConsumeOption{delayq.Prefetch(0)}, false, 2},
		"one worker": {[]delayq.ConsumeOption{delayq.Workers(1)}, false, 1},
		"in process": {nil, true, 2},
	}, func(t *testing.T, tt test) {
		s := newFar(slowAcks)
		if tt.inProcess {
			s.traits = nil
		}
		q, witness := newPair(t, s)
		pushMany(t, q, 50)
		var handled atomic.Int64
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			handled.Add(1)
			return nil
		}, append([]delayq.ConsumeOption{delayq.Workers(2)}, tt.opts...)...)
		synctest.Wait()
		if n := handled.Load(); n != tt.want {
			t.Errorf("%d messages handled before the first ack is back, want %d", n, tt.want)
		}
		time.Sleep(time.Minute)
		must(t, r.end())
		wantCounts(t, witness, delayq.Stats{})
	})
}

// slowAcks are acks that take a second; nothing else takes any time.
func slowAcks(ctx context.Context, op string) error {
	if op == "ack" {
		return seconds(ctx, op)
	}
	return nil
}
