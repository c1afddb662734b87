package lease

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq/backend"
)

var epoch = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// take returns a lease of a minute that began at epoch, by a store whose clock is ahead.
func take(id string, ahead time.Duration) *Lease {
	l := new(Lease)
	l.Take(backend.Lease{ID: id}, time.Minute, epoch, epoch.Add(ahead+time.Minute))
	return l
}

func TestLeaseByBothClocks(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour} {
		l := take("a", ahead)
		if want := epoch.Add(ahead + time.Minute); !l.Until().Equal(want) {
			t.Errorf("the lease ends at %v, want %v", l.Until(), want)
		}
		for now, want := range map[time.Duration]bool{time.Minute - 1: false, time.Minute: true} {
			if got := l.Expired(epoch.Add(now)); got != want {
				t.Errorf("expired after %v: %v", now, got)
			}
		}
		due := epoch.Add(ahead - time.Second)
		if late := l.Late(due, epoch.Add(time.Millisecond)); late != 1001*time.Millisecond {
			t.Errorf("late by %v, want 1.001s", late)
		}
		if late := l.Late(due, epoch.Add(-time.Hour)); late != 0 {
			t.Errorf("late by %v after the clock was set back, want 0", late)
		}
		if age := l.Age(epoch.Add(-time.Second)); age != -time.Second {
			t.Errorf("age %v", age)
		}
	}
}

// A store is a store whose calls return the test's results.
type store struct {
	extend func(ls []backend.Lease, lease time.Duration) []error
	asked  time.Duration
}

func (s *store) Extend(_ context.Context, ls []backend.Lease, lease time.Duration) ([]time.Time, []error) {
	s.asked = lease
	ends := make([]time.Time, len(ls))
	for i := range ends {
		ends[i] = epoch.Add(time.Hour)
	}
	if s.extend == nil {
		return ends, nil
	}
	return ends, s.extend(ls, lease)
}

func TestExtendMovesTheEnd(t *testing.T) {
	t.Parallel()
	s := new(store)
	a, b := take("a", 0), take("b", 0)
	for _, err := range Extend(t.Context(), s, []*Lease{a, b}, 2*time.Second, epoch) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.asked != 2*time.Second || !a.Until().Equal(epoch.Add(time.Hour)) || !a.Expired(epoch.Add(2*time.Second)) || a.Expired(epoch.Add(2*time.Second-1)) {
		t.Errorf("asked for %v, ends %v", s.asked, b.Until())
	}
}

func TestExtendIsNoShorterThanARenewal(t *testing.T) {
	t.Parallel()
	s := new(store)
	a, b := take("a", 0), take("b", 0)
	b.Renewing()
	Extend(t.Context(), s, []*Lease{a, b}, time.Second, epoch)
	if s.asked != time.Minute {
		t.Errorf("asked for %v beside a lease that is renewed, want its minute", s.asked)
	}
	Extend(t.Context(), s, []*Lease{a, b}, time.Hour, epoch)
	if s.asked != time.Hour {
		t.Errorf("asked for %v, want an hour", s.asked)
	}
}

func TestRenewalsLeaveALongerExtensionAlone(t *testing.T) {
	t.Parallel()
	l := take("a", 0)
	kept := epoch.Add(time.Minute)
	if !l.Renewable(kept) {
		t.Fatal("a new lease is not renewable")
	}
	Extend(t.Context(), new(store), []*Lease{l}, time.Hour, epoch)
	if l.Renewable(epoch.Add(time.Hour)) || !l.Renewable(epoch.Add(time.Hour+1)) {
		t.Error("renewals do not begin where the extension ends")
	}
	if asked, ok := l.Overtaken(kept); !ok || !asked.Equal(epoch.Add(time.Hour)) {
		t.Errorf("a renewal to %v is overtaken: %v, by %v", kept, ok, asked)
	}
	if _, ok := l.Overtaken(epoch.Add(time.Hour)); ok {
		t.Error("a renewal as long is overtaken")
	}
}

func TestFailedExtensionIsForgotten(t *testing.T) {
	t.Parallel()
	down := &store{extend: func(ls []backend.Lease, _ time.Duration) []error {
		return backend.FailAll(len(ls), backend.ErrUnavailable)
	}}
	l := take("a", 0)
	errs := Extend(t.Context(), down, []*Lease{l}, time.Hour, epoch)
	if !errors.Is(errs[0], backend.ErrUnavailable) || !l.Until().Equal(epoch.Add(time.Minute)) || !l.Renewable(epoch.Add(time.Minute)) {
		t.Errorf("%v, the lease ends %v", errs, l.Until())
	}
}

// An extension that fails leaves what an earlier one asked for, unless it may have made the lease
// shorter.
func TestFailedExtensionLeavesTheOneBefore(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		length time.Duration
		err    error
		holds  bool
	}{
		"not executed":          {time.Hour, backend.ErrUnavailable, true},
		"shorter, not executed": {2 * time.Minute, backend.ErrUnavailable, true},
		"unknown":               {2 * time.Hour, backend.ErrOutcomeUnknown, true},
		"shorter, unknown":      {2 * time.Minute, backend.ErrOutcomeUnknown, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := take("a", 0)
			Extend(t.Context(), new(store), []*Lease{l}, time.Hour, epoch)
			fails := &store{extend: func(ls []backend.Lease, _ time.Duration) []error {
				return backend.FailAll(len(ls), tt.err)
			}}
			if errs := Extend(t.Context(), fails, []*Lease{l}, tt.length, epoch); !errors.Is(errs[0], tt.err) {
				t.Errorf("outcome %v, want %v", errs[0], tt.err)
			}
			if renewed := l.Renewable(epoch.Add(time.Minute)); renewed == tt.holds {
				t.Errorf("the lease is renewed: %v, want %v", renewed, !tt.holds)
			}
		})
	}
}

func TestExtendOfASettledLease(t *testing.T) {
	t.Parallel()
	gone := &store{extend: func(ls []backend.Lease, _ time.Duration) []error {
		return backend.FailAll(len(ls), backend.ErrLeaseLost)
	}}
	lost, settled := take("a", 0), take("b", 0)
	if err := settled.Settle(t.Context(), succeed); err != nil {
		t.Fatal(err)
	}
	errs := Extend(t.Context(), gone, []*Lease{lost, settled}, time.Hour, epoch)
	if !errors.Is(errs[0], backend.ErrLeaseLost) || !errors.Is(errs[1], ErrSettled) {
		t.Errorf("outcomes %v, want ErrLeaseLost and ErrSettled", errs)
	}
}

func succeed() error { return nil }
func lose() error    { return backend.ErrLeaseLost }

func TestSettleOnce(t *testing.T) {
	t.Parallel()
	l := take("a", 0)
	for _, failed := range []error{backend.ErrUnavailable, context.Canceled} {
		if err := l.Settle(t.Context(), func() error { return failed }); !errors.Is(err, failed) || l.Ended() {
			t.Fatalf("%v; ended: %v", err, l.Ended())
		}
	}
	if err := l.Settle(t.Context(), func() error {
		if !l.Ended() || l.Renewable(epoch.Add(time.Hour)) {
			t.Error("a lease that is being settled is renewed")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	err := l.Settle(t.Context(), func() error {
		t.Error("a settled lease is settled again")
		return nil
	})
	if !errors.Is(err, ErrSettled) {
		t.Errorf("error %v, want ErrSettled", err)
	}
}

func TestLostLease(t *testing.T) {
	t.Parallel()
	l := take("a", 0)
	for range 2 {
		if err := l.Settle(t.Context(), lose); !errors.Is(err, backend.ErrLeaseLost) || !l.Ended() {
			t.Errorf("%v; ended: %v", err, l.Ended())
		}
	}
}

// The store tells the second call that the lease is lost before the first call returns.
func TestSecondCallWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first error
		want  error
	}{
		"which settles the lease": {nil, ErrSettled},
		"which fails":             {backend.ErrUnavailable, backend.ErrLeaseLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := take("a", 0)
				reply := make(chan error)
				go func() { _ = l.Settle(t.Context(), func() error { return <-reply }) }()
				synctest.Wait()
				second := make(chan error)
				go func() { second <- l.Settle(t.Context(), lose) }()
				synctest.Wait()
				select {
				case err := <-second:
					t.Fatalf("returned %v before the first call", err)
				default:
				}
				reply <- tt.first
				if err := <-second; !errors.Is(err, tt.want) {
					t.Errorf("error %v, want %v", err, tt.want)
				}
			})
		})
	}
}

func TestSecondCallDoesNotOutlastItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := take("a", 0)
		reply := make(chan error)
		go func() { _ = l.Settle(t.Context(), func() error { return <-reply }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Settle(ctx, lose); !errors.Is(err, backend.ErrLeaseLost) {
			t.Errorf("error %v, want ErrLeaseLost", err)
		}
		reply <- nil
	})
}

func TestSettleBatchLeavesOutWhatIsSettled(t *testing.T) {
	t.Parallel()
	ls := []*Lease{take("a", 0), take("b", 0), take("c", 0)}
	if err := ls[1].Settle(t.Context(), succeed); err != nil {
		t.Fatal(err)
	}
	var called []string
	errs := Settle(t.Context(), ls, func(tokens []backend.Lease) []error {
		for _, token := range tokens {
			called = append(called, token.ID)
		}
		return []error{nil, backend.ErrUnavailable}
	})
	if !slices.Equal(called, []string{"a", "c"}) {
		t.Errorf("called with %q, want a and c", called)
	}
	if errs[0] != nil || !errors.Is(errs[1], ErrSettled) || !errors.Is(errs[2], backend.ErrUnavailable) {
		t.Errorf("outcomes %v", errs)
	}
	errs = Settle(t.Context(), ls, func([]backend.Lease) []error { return nil })
	if !errors.Is(errs[0], ErrSettled) || errs[2] != nil {
		t.Errorf("outcomes %v of the second call", errs)
	}
	Settle(t.Context(), ls, func([]backend.Lease) []error {
		t.Error("called for leases that are all settled")
		return nil
	})
}

// A lease that was settled in a transaction is not renewed, and a later call asks the store, since
// the transaction may have been rolled back.
func TestSettleInTransaction(t *testing.T) {
	t.Parallel()
	committed, rolledBack, lost := take("a", 0), take("b", 0), take("c", 0)
	for _, l := range []*Lease{committed, rolledBack} {
		if err := l.SettleInTx(succeed); err != nil || !l.Ended() || !l.InTransaction() || l.Renewable(epoch.Add(time.Hour)) {
			t.Errorf("%v; ended: %v, in a transaction: %v", err, l.Ended(), l.InTransaction())
		}
	}
	if err := committed.Settle(t.Context(), lose); !errors.Is(err, ErrSettled) || errors.Is(err, backend.ErrLeaseLost) {
		t.Errorf("a settle of what a transaction has settled: %v, want ErrSettled", err)
	}
	if err := committed.SettleInTx(lose); !errors.Is(err, backend.ErrLeaseLost) {
		t.Errorf("a settle in a second transaction: %v, want what the store says", err)
	}
	if err := rolledBack.Settle(t.Context(), succeed); err != nil || rolledBack.InTransaction() {
		t.Errorf("a settle after a rollback: %v", err)
	}
	if err := rolledBack.SettleInTx(succeed); !errors.Is(err, ErrSettled) {
		t.Errorf("one more settle: %v, want ErrSettled", err)
	}
	if err := lost.SettleInTx(lose); !errors.Is(err, backend.ErrLeaseLost) || lost.InTransaction() {
		t.Errorf("a settle under a lost lease: %v, in a transaction: %v", err, lost.InTransaction())
	}
}

// Two extensions overlap, and the one that fails last began last.
func TestOverlappingExtensionsFail(t *testing.T) {
	t.Parallel()
	l := take("a", 0)
	fail := &store{extend: func(ls []backend.Lease, _ time.Duration) []error {
		return backend.FailAll(len(ls), backend.ErrUnavailable)
	}}
	began, reply, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := &store{extend: func(ls []backend.Lease, _ time.Duration) []error {
		close(began)
		<-reply
		return backend.FailAll(len(ls), backend.ErrUnavailable)
	}}
	go func() {
		defer close(ended)
		Extend(t.Context(), first, []*Lease{l}, time.Hour, epoch)
	}()
	<-began
	second := &store{extend: func(ls []backend.Lease, d time.Duration) []error {
		close(reply)
		<-ended
		return fail.extend(ls, d)
	}}
	Extend(t.Context(), second, []*Lease{l}, 2*time.Hour, epoch)
	if asked, ok := l.Overtaken(epoch.Add(time.Minute)); ok {
		t.Errorf("a renewal is overtaken by %v, which nobody got", asked)
	}
}
