package batcher

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

	"github.com/delayq/delayq/backend"
)

const (
	trip     = time.Second
	inFlight = 3 // calls
	maxItems = 10_000
)

// A slowStore is a store whose calls take a second of virtual time.
type slowStore struct {
	mu    sync.Mutex
	calls [][]int
	ctxs  []context.Context // of the calls
	does  func(ctx context.Context, items []int) []error
}

// send takes a trip, unless ctx ends before.
func (s *slowStore) send(ctx context.Context, items []int) []error {
	s.mu.Lock()
	s.calls = append(s.calls, slices.Clone(items))
	s.ctxs = append(s.ctxs, ctx)
	s.mu.Unlock()
	select {
	case <-time.After(trip):
	case <-ctx.Done():
		return slices.Repeat([]error{ctx.Err()}, len(items))
	}
	if s.does == nil {
		return nil
	}
	return s.does(ctx, items)
}

// ctx returns the context of a call.
func (s *slowStore) ctx(call int) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctxs[call]
}

// bubble runs a test in virtual time, with a store and its batcher.
func bubble(t *testing.T, run func(t *testing.T, s *slowStore, b *Batcher[int])) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slowStore{}
		run(t, s, New(Config[int]{Send: s.send, Calls: inFlight, MaxItems: maxItems}))
	})
}

// sendEach starts a call for each item from one to another.
func sendEach(t *testing.T, b *Batcher[int], from, to int) (cs []*caller) {
	for i := from; i < to; i++ {
		cs = append(cs, send(t.Context(), b, i))
	}
	return cs
}

// wantDone checks that calls succeeded within two trips.
func wantDone(t *testing.T, cs ...*caller) {
	t.Helper()
	for _, c := range cs {
		if !c.over || c.err != nil || c.took > 2*trip+time.Millisecond {
			t.Fatalf("over %t, error %v, took %v", c.over, c.err, c.took)
		}
	}
}

// want checks the calls so far, in order.
func (s *slowStore) want(t *testing.T, want ...[]int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.EqualFunc(s.calls, want, slices.Equal) {
		t.Errorf("the store was called with %v, want %v", s.calls, want)
	}
}

// sizes returns how many items the calls had, the first ones left out, the small before the large.
func (s *slowStore) sizes(from int) (n []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, items := range s.calls[from:] {
		n = append(n, len(items))
	}
	slices.Sort(n)
	return n
}

type caller struct {
	err   error
	panic any
	item  int
	took  time.Duration
	over  bool
}

// send starts a call and returns when its item is sent or waits.
func send(ctx context.Context, b *Batcher[int], item int) *caller {
	c := &caller{}
	start := time.Now()
	go func() {
		defer func() { c.panic, c.took, c.over = recover(), time.Since(start), true }()
		one := [1]int{item}
		c.err = b.Do(ctx, &one)
		c.item = one[0]
	}()
	synctest.Wait()
	return c
}

// fill sends negative items until no more calls may be in flight.
func fill(t *testing.T, b *Batcher[int]) (calls [][]int) {
	for i := range inFlight {
		send(t.Context(), b, -1-i)
		calls = append(calls, []int{-1 - i})
	}
	return calls
}

// pass lets virtual time pass, of a synctest bubble: it does not wait for the clock of the machine.
// The nanosecond lets timers of that very instant go first.
func pass(d time.Duration) {
	time.Sleep(d + time.Nanosecond)
	synctest.Wait()
}

func (c *caller) want(t *testing.T, err error, took time.Duration) {
	t.Helper()
	if !c.over || !errors.Is(c.err, err) || c.took.Truncate(time.Millisecond) != took {
		t.Errorf("over %t with error %v after %v, want %v after %v", c.over, c.err, c.took, err, took)
	}
}

type key struct{}

func TestLoneCallIsSentAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		ctx := context.WithValue(t.Context(), key{}, "mine")
		for i := range 3 {
			p := send(ctx, b, i)
			pass(trip)
			p.want(t, nil, trip)
			if s.ctx(i) != ctx {
				t.Error("a lone call does not run under its caller's context")
			}
		}
		s.want(t, []int{0}, []int{1}, []int{2})
	})
}

func TestLoneCallCostsNothing(t *testing.T) {
	var inside string
	b := New(Config[int]{Calls: inFlight, MaxItems: maxItems, Send: func(context.Context, []int) []error {
		inside = goroutine()
		return nil
	}})
	item := new([1]int)
	if err := b.Do(t.Context(), item); err != nil || inside != goroutine() {
		t.Errorf("do: %v, in goroutine %s, want %s", err, inside, goroutine())
	}
	b.Send = func(context.Context, []int) []error { return nil }
	if n := testing.AllocsPerRun(100, func() { _ = b.Do(context.Background(), item) }); n > 0 {
		t.Errorf("a lone call makes %v allocations", n)
	}
}

// goroutine is the number of the caller's.
func goroutine() string {
	buf := make([]byte, 64)
	return strings.Fields(string(buf[:runtime.Stack(buf, false)]))[1]
}

func TestCallsBatchWhileOthersAreInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		calls := fill(t, b)
		cs := sendEach(t, b, 0, 100)
		pass(trip) // the first calls return, and all that wait are sent
		late := send(t.Context(), b, 100)
		pass(trip)
		wantDone(t, append(cs, late)...)
		s.want(t, append(calls, count(0, 100), []int{100})...)
	})
}

func TestAnotherCallOnceHalfOfAllItemsWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		b.Widen = true
		calls := fill(t, b)
		cs := sendEach(t, b, 0, 3*inFlight)
		calls = append(calls, count(0, inFlight), count(inFlight, 3*inFlight))
		s.want(t, calls...)
		wantState(t, b, inFlight+2, 0)
		late := send(t.Context(), b, 3*inFlight)
		wantState(t, b, inFlight+2, 1)
		pass(trip)
		s.want(t, append(calls, count(3*inFlight, 3*inFlight+1))...)
		pass(trip)
		wantDone(t, append(cs, late)...)
		wantState(t, b, 0, 0)
		if b.items != 0 {
			t.Errorf("%d items in flight, want none", b.items)
		}
	})
}

func TestThirdCallWaitsWhileManyItemsAreInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		b.Gather = true
		calls := fill(t, b) // with few items, all at once
		cs := sendEach(t, b, 0, fewItems)
		pass(trip)
		cs = append(cs, sendEach(t, b, fewItems, fewItems+3)...)
		wantState(t, b, 2, 2)
		calls = append(calls, count(0, fewItems), []int{fewItems})
		s.want(t, calls...)
		pass(trip)
		wantState(t, b, 1, 0)
		pass(trip)
		wantDone(t, cs...)
		s.want(t, append(calls, []int{fewItems + 1, fewItems + 2})...)
		wantState(t, b, 0, 0)
	})
}

func count(from, to int) (n []int) {
	for i := from; i < to; i++ {
		n = append(n, i)
	}
	return n
}

func TestEachCallerGetsItsOwnOutcome(t *testing.T) {
	errOdd := errors.New("odd")
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		s.does = func(_ context.Context, items []int) []error {
			errs := make([]error, len(items))
			for i, it := range items {
				if items[i] = 10 * it; it%2 == 1 {
					errs[i] = fmt.Errorf("%w: %d", errOdd, it)
				}
			}
			return errs
		}
		fill(t, b)
		ps := sendEach(t, b, 0, 10)
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

func TestCallerGivesUpBeforeItsItemIsSent(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		calls := fill(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		stays, leaves := send(t.Context(), b, 1), send(ctx, b, 2)
		ended := send(canceled(t), b, 3)
		cancel()
		synctest.Wait()
		leaves.want(t, context.Canceled, 0)
		ended.want(t, context.Canceled, 0)
		if errors.Is(leaves.err, backend.ErrOutcomeUnknown) {
			t.Errorf("what was not sent is unknown: %v", leaves.err)
		}
		wantState(t, b, inFlight, 1)
		pass(2 * trip)
		stays.want(t, nil, 2*trip)
		s.want(t, append(calls, []int{1})...)
	})
}

// The caller's context has ended, but the caller has not noticed yet.
func TestItemOfAnEndedContextIsNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		calls := fill(t, b)
		slow, stays := send(silentContext{canceled(t)}, b, 1), send(t.Context(), b, 2)
		pass(2 * trip)
		slow.want(t, context.Canceled, trip)
		stays.want(t, nil, 2*trip)
		s.want(t, append(calls, []int{2})...)
	})
}

// silentContext has ended, but its Done is not closed, as for a caller that has not run since.
type silentContext struct{ context.Context } //nolint:containedctx // it is a context, and overrides one method

func (silentContext) Done() <-chan struct{} { return nil }

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestCallerGivesUpAfterItsItemIsSent(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		calls := fill(t, b)
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "mine"))
		leaves, stays := send(ctx, b, 1), send(t.Context(), b, 2)
		pass(trip + trip/2)
		cancel()
		synctest.Wait()
		leaves.want(t, context.Canceled, trip+trip/2)
		leaves.want(t, backend.ErrOutcomeUnknown, trip+trip/2)
		pass(trip)
		stays.want(t, nil, 2*trip)
		s.want(t, append(calls, []int{1, 2})...)
		if s.ctx(inFlight).Value(key{}) != nil {
			t.Error("the call of several has the values of one")
		}
	})
}

func TestBatchEndsWhenAllCallersGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		fill(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		send(ctx, b, 1)
		send(ctx, b, 2)
		pass(trip + trip/2)
		shared := s.ctx(inFlight)
		if shared.Err() != nil {
			t.Fatal("the call ended before its callers gave up")
		}
		cancel()
		synctest.Wait()
		if shared.Err() == nil {
			t.Error("the call goes on though all callers gave up")
		}
		wantState(t, b, 0, 0)
	})
}

func wantState(t *testing.T, b *Batcher[int], calls, waiting int) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.inFlight != calls || b.waiting.Len() != waiting {
		t.Errorf("%d calls are in flight and %d wait, want %d and %d", b.inFlight, b.waiting.Len(), calls, waiting)
	}
}

func TestBatchHasTheLatestDeadline(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		for _, unbounded := range []bool{false, true} {
			fill(t, b)
			call := len(s.calls)
			soon, cancel := context.WithTimeout(t.Context(), trip+trip/4)
			defer cancel()
			late, cancelLate := context.WithTimeout(t.Context(), trip+trip/2)
			defer cancelLate()
			first, second := send(late, b, 1), send(soon, b, 2)
			var third *caller
			if unbounded {
				third = send(t.Context(), b, 3)
			}
			pass(trip)
			deadline, bounded := s.ctx(call).Deadline()
			if want, _ := late.Deadline(); bounded == unbounded || bounded && !deadline.Equal(want) {
				t.Errorf("deadline %v, %t; want %v, %t", deadline, bounded, want, !unbounded)
			}
			pass(trip)
			first.want(t, context.DeadlineExceeded, trip+trip/2)
			second.want(t, context.DeadlineExceeded, trip+trip/4)
			if unbounded {
				third.want(t, nil, 2*trip)
			}
			wantState(t, b, 0, 0)
		}
	})
}

func TestBatchHasAtMostMaxItems(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		fill(t, b)
		var all sync.WaitGroup
		for range maxItems + 10 {
			all.Go(func() { _ = b.Do(context.Background(), new([1]int)) })
		}
		synctest.Wait()
		all.Wait()
		if got, want := s.sizes(inFlight), []int{10, maxItems}; !slices.Equal(got, want) {
			t.Errorf("calls of %d items, want %d", got, want)
		}
	})
}

func TestLargeItemsAreSentAlone(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		b.Size = func(item int) int { return max(item, 0) }
		fill(t, b)
		large := send(t.Context(), b, aloneBytes+1) // at once, alone
		const fit = maxBytes / aloneBytes
		for range fit + 2 {
			send(t.Context(), b, aloneBytes)
		}
		pass(trip)
		large.want(t, nil, trip)
		pass(trip)
		if got, want := s.sizes(inFlight), []int{1, 2, fit}; !slices.Equal(got, want) {
			t.Errorf("calls of %d items, want %d", got, want)
		}
	})
}

func TestStorePanicReachesEveryCaller(t *testing.T) {
	errBroken := errors.New("broken")
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		s.does = func(context.Context, []int) []error { panic(errBroken) }
		alone := send(t.Context(), b, 0)
		for range inFlight - 1 {
			send(t.Context(), b, 0)
		}
		shared := []*caller{send(t.Context(), b, 1), send(t.Context(), b, 2)}
		pass(2 * trip)
		if alone.panic != errBroken {
			t.Errorf("the lone caller got %v, want a panic", alone.panic)
		}
		for _, p := range shared {
			if err, _ := p.panic.(error); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "goroutine") {
				t.Errorf("a caller of the batch got %v, want a panic and its stack", p.panic)
			}
		}
		wantState(t, b, 0, 0)
	})
}

func TestStoreThatCallsGoexit(t *testing.T) {
	bubble(t, func(t *testing.T, s *slowStore, b *Batcher[int]) {
		s.does = func(_ context.Context, items []int) []error {
			if len(items) > 1 {
				runtime.Goexit()
			}
			return nil
		}
		fill(t, b)
		ps := []*caller{send(t.Context(), b, 1), send(t.Context(), b, 2)}
		pass(2 * trip)
		for _, p := range ps {
			p.want(t, errStoreExit, 2*trip)
		}
		wantState(t, b, 0, 0)
	})
}
