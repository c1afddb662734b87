package delayq

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	trip      = time.Second
	wireWidth = 3
)

// A road is a store that takes its time, in a bubble of virtual time.
type road struct {
	mu    sync.Mutex
	calls [][]int
	ctxs  []context.Context // of the calls
	does  func(ctx context.Context, items []int) []error
}

// travel takes a trip, unless ctx ends before.
func (r *road) travel(ctx context.Context, items []int) []error {
	r.mu.Lock()
	r.calls = append(r.calls, slices.Clone(items))
	r.ctxs = append(r.ctxs, ctx)
	r.mu.Unlock()
	select {
	case <-time.After(trip):
	case <-ctx.Done():
		return slices.Repeat([]error{ctx.Err()}, len(items))
	}
	if r.does == nil {
		return nil
	}
	return r.does(ctx, items)
}

// ctx returns the context of a call.
func (r *road) ctx(call int) context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ctxs[call]
}

func (r *road) combiner() *combiner[int] {
	return &combiner[int]{send: r.travel, width: wireWidth, weigh: weightless[int], own: itself[int]}
}

// want checks the calls so far, in order.
func (r *road) want(t *testing.T, want ...[]int) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.EqualFunc(r.calls, want, slices.Equal) {
		t.Errorf("the store was called with %v, want %v", r.calls, want)
	}
}

// sizes returns how many items the calls had, the first ones left out, the small before the large.
func (r *road) sizes(from int) (n []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, items := range r.calls[from:] {
		n = append(n, len(items))
	}
	slices.Sort(n)
	return n
}

// A traveler is one caller.
type traveler struct {
	err   error
	panic any
	item  int
	took  time.Duration
	over  bool
}

// send starts a call and returns when it is on its way or waits.
func send(ctx context.Context, c *combiner[int], item int) *traveler {
	p := &traveler{}
	start := time.Now()
	go func() {
		defer func() { p.panic, p.took, p.over = recover(), time.Since(start), true }()
		one := [1]int{item}
		p.err = c.do(ctx, &one)
		p.item = one[0]
	}()
	synctest.Wait()
	return p
}

// fill occupies the wire with negative items.
func fill(t *testing.T, c *combiner[int]) (calls [][]int) {
	for i := range wireWidth {
		send(t.Context(), c, -1-i)
		calls = append(calls, []int{-1 - i})
	}
	return calls
}

// pass lets virtual time pass, and a moment.
func pass(d time.Duration) {
	time.Sleep(d + time.Nanosecond)
	synctest.Wait()
}

func (p *traveler) want(t *testing.T, err error, took time.Duration) {
	t.Helper()
	if !p.over || !errors.Is(p.err, err) || p.took.Truncate(time.Millisecond) != took {
		t.Errorf("over %t with error %v after %v, want %v after %v", p.over, p.err, p.took, err, took)
	}
}

type key struct{}

func TestLoneCallGoesOutAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		ctx := context.WithValue(t.Context(), key{}, "mine")
		for i := range 3 {
			p := send(ctx, c, i)
			pass(trip)
			p.want(t, nil, trip)
			if r.ctx(i) != ctx {
				t.Error("a lone call does not run under its caller's context")
			}
		}
		r.want(t, []int{0}, []int{1}, []int{2})
	})
}

func TestLoneCallCostsNothing(t *testing.T) {
	var inside string
	c := &combiner[int]{width: wireWidth, weigh: weightless[int], own: itself[int], send: func(context.Context, []int) []error {
		inside = goroutine()
		return nil
	}}
	item := new([1]int)
	if err := c.do(t.Context(), item); err != nil || inside != goroutine() {
		t.Errorf("do: %v, in goroutine %s, want %s", err, inside, goroutine())
	}
	c.send = func(context.Context, []int) []error { return nil }
	if n := testing.AllocsPerRun(100, func() { _ = c.do(context.Background(), item) }); n > 0 {
		t.Errorf("a lone call makes %v allocations", n)
	}
}

// goroutine is the number of the caller's.
func goroutine() string {
	buf := make([]byte, 64)
	return strings.Fields(string(buf[:runtime.Stack(buf, false)]))[1]
}

func TestCallsGatherWhileOthersAreOnTheWire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		calls := fill(t, c)
		var ps []*traveler
		for i := range 100 {
			ps = append(ps, send(t.Context(), c, i))
		}
		pass(trip) // the first come back, and all that gathered go out
		late := send(t.Context(), c, 100)
		pass(trip)
		for _, p := range append(ps, late) {
			if !p.over || p.err != nil || p.took > 2*trip+time.Millisecond {
				t.Fatalf("over %t, error %v, took %v", p.over, p.err, p.took)
			}
		}
		all := make([]int, 100)
		for i := range all {
			all[i] = i
		}
		r.want(t, append(calls, all, []int{100})...)
	})
}

// Where the wire widens nobody waits for fewer than there are who wait.
func TestWireWidens(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		c.widens = true
		calls := fill(t, c)
		var ps []*traveler
		for i := range 3 * wireWidth {
			ps = append(ps, send(t.Context(), c, i))
		}
		calls = append(calls, count(0, wireWidth), count(wireWidth, 3*wireWidth))
		r.want(t, calls...)
		wantPlaces(t, c, wireWidth+2, 0)
		late := send(t.Context(), c, 3*wireWidth)
		wantPlaces(t, c, wireWidth+2, 1)
		pass(trip)
		r.want(t, append(calls, count(3*wireWidth, 3*wireWidth+1))...)
		pass(trip)
		for _, p := range append(ps, late) {
			if !p.over || p.err != nil {
				t.Errorf("over %t, error %v, took %v", p.over, p.err, p.took)
			}
		}
		wantPlaces(t, c, 0, 0)
		if c.items != 0 {
			t.Errorf("%d items on an empty wire", c.items)
		}
	})
}

func count(from, to int) (n []int) {
	for i := from; i < to; i++ {
		n = append(n, i)
	}
	return n
}

func TestOutcomesArePerCall(t *testing.T) {
	t.Parallel()
	errOdd := errors.New("odd")
	synctest.Test(t, func(t *testing.T) {
		r := &road{does: func(_ context.Context, items []int) []error {
			errs := make([]error, len(items))
			for i, it := range items {
				if items[i] = 10 * it; it%2 == 1 {
					errs[i] = fmt.Errorf("%w: %d", errOdd, it)
				}
			}
			return errs
		}}
		c := r.combiner()
		fill(t, c)
		var ps []*traveler
		for i := range 10 {
			ps = append(ps, send(t.Context(), c, i))
		}
		pass(2 * trip)
		for i, p := range ps {
			var want error
			if i%2 == 1 {
				want = errOdd
			}
			p.want(t, want, 2*trip)
			if p.item != 10*i || want != nil && !strings.HasSuffix(p.err.Error(), fmt.Sprint(i)) {
				t.Errorf("call %d: item %d, error %v", i, p.item, p.err)
			}
		}
	})
}

func TestLeaverIsTakenOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		calls := fill(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		stays, leaves := send(t.Context(), c, 1), send(ctx, c, 2)
		ended := send(canceled(t), c, 3)
		cancel()
		synctest.Wait()
		leaves.want(t, context.Canceled, 0)
		ended.want(t, context.Canceled, 0)
		if errors.Is(leaves.err, ErrOutcomeUnknown) {
			t.Errorf("what was not sent is unknown: %v", leaves.err)
		}
		wantPlaces(t, c, wireWidth, 1)
		pass(2 * trip)
		stays.want(t, nil, 2*trip)
		r.want(t, append(calls, []int{1})...)
	})
}

// An item whose caller has no use for it any more is not done, though the caller has not left yet.
func TestEndedCallIsTakenOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		calls := fill(t, c)
		slow, stays := send(unheard{canceled(t)}, c, 1), send(t.Context(), c, 2)
		pass(2 * trip)
		slow.want(t, context.Canceled, trip)
		stays.want(t, nil, 2*trip)
		r.want(t, append(calls, []int{2})...)
	})
}

// unheard is a context of whose end nobody is told, as if its caller had not run since.
type unheard struct{ context.Context } //nolint:containedctx // it is one

func (unheard) Done() <-chan struct{} { return nil }

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestLeaverLeavesABatchIntact(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		calls := fill(t, c)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "mine"))
		leaves, stays := send(ctx, c, 1), send(t.Context(), c, 2)
		pass(trip + trip/2)
		cancel()
		synctest.Wait()
		leaves.want(t, context.Canceled, trip+trip/2)
		leaves.want(t, ErrOutcomeUnknown, trip+trip/2)
		pass(trip)
		stays.want(t, nil, 2*trip)
		r.want(t, append(calls, []int{1, 2})...)
		if r.ctx(wireWidth).Value(key{}) != nil {
			t.Error("the call of several has the values of one")
		}
	})
}

func TestBatchEndsWhenAllHaveLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		fill(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		send(ctx, c, 1)
		send(ctx, c, 2)
		pass(trip + trip/2)
		shared := r.ctx(wireWidth)
		if shared.Err() != nil {
			t.Fatal("the call ended with its callers there")
		}
		cancel()
		synctest.Wait()
		if shared.Err() == nil {
			t.Error("the call goes on without its callers")
		}
		wantPlaces(t, c, 0, 0)
	})
}

func wantPlaces(t *testing.T, c *combiner[int], onWire, waiting int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.onWire != onWire || c.waiting.Len() != waiting {
		t.Errorf("%d calls are on the wire and %d wait, want %d and %d", c.onWire, c.waiting.Len(), onWire, waiting)
	}
}

func TestBatchHasTheLatestDeadline(t *testing.T) {
	t.Parallel()
	for _, unbounded := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := &road{}
			c := r.combiner()
			fill(t, c)
			soon, cancel := context.WithTimeout(t.Context(), trip+trip/4)
			defer cancel()
			late, cancelLate := context.WithTimeout(t.Context(), trip+trip/2)
			defer cancelLate()
			first, second := send(late, c, 1), send(soon, c, 2)
			var third *traveler
			if unbounded {
				third = send(t.Context(), c, 3)
			}
			pass(trip)
			deadline, bounded := r.ctx(wireWidth).Deadline()
			if want, _ := late.Deadline(); bounded == unbounded || bounded && !deadline.Equal(want) {
				t.Errorf("deadline %v, %t; want %v, %t", deadline, bounded, want, !unbounded)
			}
			pass(trip)
			first.want(t, context.DeadlineExceeded, trip+trip/2)
			second.want(t, context.DeadlineExceeded, trip+trip/4)
			if unbounded {
				third.want(t, nil, 2*trip)
			}
			wantPlaces(t, c, 0, 0)
		})
	}
}

func TestBatchesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		fill(t, c)
		var all sync.WaitGroup
		for range MaxBatch + 10 {
			all.Go(func() { _ = c.do(context.Background(), new([1]int)) })
		}
		synctest.Wait()
		all.Wait()
		if got, want := r.sizes(wireWidth), []int{10, MaxBatch}; !slices.Equal(got, want) {
			t.Errorf("calls of %d items, want %d", got, want)
		}
	})
}

func TestHeavyItems(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{}
		c := r.combiner()
		c.weigh = func(item int) int { return max(item, 0) }
		fill(t, c)
		heavy := send(t.Context(), c, heavyWeight+1) // at once, alone
		const fit = batchBytes / heavyWeight
		for range fit + 2 {
			send(t.Context(), c, heavyWeight)
		}
		pass(trip)
		heavy.want(t, nil, trip)
		pass(trip)
		if got, want := r.sizes(wireWidth), []int{1, 2, fit}; !slices.Equal(got, want) {
			t.Errorf("calls of %d items, want %d", got, want)
		}
	})
}

// A panic of the store is its callers', and nobody waits for ever.
func TestPanicsOfTheStore(t *testing.T) {
	t.Parallel()
	errBroken := errors.New("broken")
	synctest.Test(t, func(t *testing.T) {
		r := &road{does: func(context.Context, []int) []error { panic(errBroken) }}
		c := r.combiner()
		alone := send(t.Context(), c, 0)
		for range wireWidth - 1 {
			send(t.Context(), c, 0)
		}
		shared := []*traveler{send(t.Context(), c, 1), send(t.Context(), c, 2)}
		pass(2 * trip)
		if alone.panic != errBroken {
			t.Errorf("the lone caller got %v, want a panic", alone.panic)
		}
		for _, p := range shared {
			if err, _ := p.panic.(error); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "goroutine") {
				t.Errorf("a caller of the batch got %v, want a panic and its stack", p.panic)
			}
		}
		wantPlaces(t, c, 0, 0)
	})
}

func TestStoreThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &road{does: func(_ context.Context, items []int) []error {
			if len(items) > 1 {
				runtime.Goexit()
			}
			return nil
		}}
		c := r.combiner()
		fill(t, c)
		ps := []*traveler{send(t.Context(), c, 1), send(t.Context(), c, 2)}
		pass(2 * trip)
		for _, p := range ps {
			p.want(t, errStoreExit, 2*trip)
		}
		wantPlaces(t, c, 0, 0)
	})
}
