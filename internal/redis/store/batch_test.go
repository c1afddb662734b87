package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/store"
)

// numbered are ids in their order.
func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("message %05d", i)
	}
	return ids
}

// claimMany claims until there is nothing due, and checks that all of these came, in their order.
func (b *bench) claimMany(way claimer, lease time.Duration, ids []string) (ls []backend.Lease) {
	b.t.Helper()
	var got []string
	for deadline := time.Now().Add(patience); len(got) < len(ids) && time.Now().Before(deadline); {
		c, err := way(b.ctx, 500, lease, redistest.Name())
		must(b.t, err)
		for _, d := range c.Deliveries {
			got, ls = append(got, d.ID), append(ls, d.Lease())
		}
	}
	if !slices.Equal(got, ids) {
		b.t.Fatalf("got %d messages, want %d, or they are in another order", len(got), len(ids))
	}
	return ls
}

// wantEach checks the outcome of a call for each of its items.
func (b *bench) wantEach(errs []error, n int, want func(i int) error) {
	b.t.Helper()
	if errs == nil {
		errs = make([]error, n)
	}
	if len(errs) != n {
		b.t.Fatalf("%d outcomes, want %d", len(errs), n)
	}
	for i, err := range errs {
		if !errors.Is(err, want(i)) {
			b.t.Fatalf("item %d: got %v, want %v", i, err, want(i))
		}
	}
}

var newHeaders = map[string]string{"new": "header"}

// settlers settle leases in each way that there is.
var settlers = map[string]func(context.Context, redistest.Store, []backend.Lease) []error{
	"ack": func(ctx context.Context, s redistest.Store, ls []backend.Lease) []error { return s.Ack(ctx, ls) },
	"nack": func(ctx context.Context, s redistest.Store, ls []backend.Lease) []error {
		return s.Nack(ctx, redistest.Returns(ls, backend.Return{Delay: time.Hour}))
	},
	"nack with headers": func(ctx context.Context, s redistest.Store, ls []backend.Lease) []error {
		return s.Nack(ctx, redistest.Returns(ls, backend.Return{Delay: time.Hour, NewHeaders: true, Headers: newHeaders}))
	},
	"dead": func(ctx context.Context, s redistest.Store, ls []backend.Lease) []error {
		return s.Dead(ctx, redistest.DeadLetters(ls, "why"))
	},
}

// TestSettleMany settles 1,500 leases of which every third is lost, and each is there twice.
func TestSettleMany(t *testing.T) {
	t.Parallel()
	for name, settle := range settlers {
		for how := range ways(nil) {
			t.Run(name+" by "+how, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				ids := numbered(750)
				b.push(ids...)
				var ls []backend.Lease
				for _, l := range b.claimMany(ways(b.Store)[how], time.Minute, ids) {
					ls = append(ls, l, l)
				}
				lost := func(i int) bool { return i/2%3 == 0 }
				for i := 0; i < len(ls); i += 6 {
					b.all(b.Nack(b.ctx, []backend.Return{{Lease: ls[i], Delay: time.Hour}}))
				}
				b.wantEach(settle(b.ctx, b.Store, ls), len(ls), func(i int) error {
					if lost(i) || i%2 == 1 {
						return backend.ErrLeaseLost
					}
					return nil
				})
				b.holdsInAll(name, 250, 500)
			})
		}
	}
}

// holdsInAll checks the counts after that many leases were lost, and that many were acked.
func (b *bench) holdsInAll(settled string, lost, done int64) {
	b.t.Helper()
	want := backend.Stats{Scheduled: lost}
	switch settled {
	case "nack", "nack with headers":
		want.Scheduled += done
	case "dead":
		want.Dead = done
	}
	stats, err := b.Stats(b.ctx)
	stats.HeadDue, stats.OldestReady, stats.Due = time.Time{}, 0, backend.DueHistogram{}
	if err != nil || stats != want {
		b.t.Errorf("stats %+v, %v; want %+v", stats, err, want)
	}
	if n := b.raw.HLen(b.ctx, b.key("held")).Val() + b.raw.ZCard(b.ctx, b.key("leases")).Val(); n != 0 {
		b.t.Errorf("%d entries of leases are left", n)
	}
}

// A lease that has ended is lost among others that are in force, though no script has given it
// back.
func TestSettleSomeEnded(t *testing.T) {
	t.Parallel()
	for name, settle := range settlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			clock := clockwork.NewFakeClockAt(time.Now().Truncate(time.Second))
			b.Store = store.New(store.Config{Client: b.raw, Prefix: "test"}, t.Name(), clock)
			ids := numbered(20)
			b.push(ids[:10]...)
			ls := b.claimMany(b.Claim, time.Second, ids[:10])
			b.push(ids[10:]...)
			ls = append(ls, b.claimMany(b.Claim, time.Minute, ids[10:])...)
			clock.Advance(time.Second)
			b.wantEach(settle(b.ctx, b.Store, ls), len(ls), func(i int) error {
				if i < 10 {
					return backend.ErrLeaseLost
				}
				return nil
			})
			if n := b.raw.ZCard(b.ctx, b.key("leases")).Val(); n != 10 {
				t.Errorf("%d leases are left, want those that ended", n)
			}
		})
	}
}

func TestExtendTwiceInOneCall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	d := b.next(b.Claim, time.Minute, "a")
	l := d.Lease()
	ends, errs := b.Extend(b.ctx, []backend.Lease{l, l}, time.Hour)
	b.all(errs)
	if left := time.Until(ends[1]); left < 59*time.Minute || ends[0] != ends[1] {
		t.Errorf("the lease ends at %v", ends)
	}
}

// TestSettleManyLosesItsReply repeats a batch: the effects of its first try count.
func TestSettleManyLosesItsReply(t *testing.T) {
	t.Parallel()
	for name, settle := range settlers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ids := numbered(300)
			b.push(ids...)
			ls := b.claimMany(b.Claim, time.Minute, ids)
			b.wantEach(settle(b.ctx, b.losing(b.nothingMeanwhile), ls), len(ls), func(int) error { return nil })
			if name == "ack" {
				b.empty()
			}
		})
	}
}

// TestClaimManyLosesItsReply repeats a claim of many, in any mode: it returns each message of its
// first try once, in order.
func TestClaimManyLosesItsReply(t *testing.T) {
	t.Parallel()
	for how, at := range map[string]string{"script": "evalsha", "arbitrate": "multi", "mover": "evalsha"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			ids := numbered(700)
			b.push(ids...)
			// with so many Redis itself keeps no order among leases
			others, err := b.Claim(b.ctx, 400, time.Minute, "another's")
			must(b.t, err)
			c, err := ways(b.faulty(&redistest.Fault{At: at, After: func() {}}))[how](b.ctx, 150, time.Minute, "mine")
			must(b.t, err)
			var got []string
			var ls []backend.Lease
			for _, d := range c.Deliveries {
				got, ls = append(got, d.ID), append(ls, d.Lease())
				if left := d.Until.Sub(c.Now); left < 50*time.Second || left > time.Minute+time.Millisecond {
					t.Fatalf("the lease of %s ends in %v", d.ID, left)
				}
			}
			if !slices.Equal(got, ids[400:550]) {
				t.Fatalf("got %d messages, want %d, or they are in another order", len(got), 150)
			}
			for _, d := range others.Deliveries {
				ls = append(ls, d.Lease())
			}
			b.all(b.Ack(b.ctx, ls))
			b.all(b.Ack(b.ctx, b.claimMany(b.Claim, time.Minute, ids[550:])))
			b.empty()
		})
	}
}

// TestScheduleTwiceInOneCall pushes an id twice in one call, an id that exists, and an id of a push
// whose reply was lost.
func TestScheduleTwiceInOneCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		store  func(*bench) *store.Store
		unique time.Duration
		second error // outcome of the same message again
	}{
		"once":         {func(b *bench) *store.Store { return b.Store }, 0, backend.ErrDuplicate},
		"once, unique": {func(b *bench) *store.Store { return b.Store }, time.Hour, backend.ErrDuplicate},
		"repeated":     {func(b *bench) *store.Store { return b.losing(b.nothingMeanwhile) }, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.pushAfter(time.Hour, "there")
			message := func(id string) backend.Message {
				return backend.Message{ID: id, Body: []byte("a body"), Delay: time.Hour, UniqueFor: tt.unique}
			}
			errs := tt.store(b).Schedule(b.ctx, []backend.Message{message("a"), message("there"), message("a"), message("b")})
			b.wantEach(errs, 4, func(i int) error { return []error{nil, backend.ErrDuplicate, tt.second, nil}[i] })
			if n := b.raw.ZCard(b.ctx, b.key("due")).Val(); n != 3 {
				t.Errorf("%d messages wait, want 3", n)
			}
			b.all(b.Cancel(b.ctx, []string{"a", "b", "there"}))
			must(b.t, b.raw.Del(b.ctx, b.key("unique")).Err())
			b.empty()
		})
	}
}

// TestClaimOfHeavyMessages has small messages among large ones. A claim ends behind the one that
// fills it.
func TestClaimOfHeavyMessages(t *testing.T) {
	t.Parallel()
	const fills = 8 << 20 // bytes
	eachWay(t, func(t *testing.T, b *bench, how string, way claimer) {
		ids := numbered(60)
		for i, id := range ids {
			size := 100
			if i%5 > 2 {
				size = 1 << 20
			}
			b.all(b.Schedule(b.ctx, []backend.Message{{ID: id, Body: make([]byte, size), Due: time.Unix(1, 0)}}))
		}
		var got []string
		for range ids {
			c := b.claim(way, time.Minute)
			total := 0
			for i, d := range c.Deliveries {
				if got = append(got, d.ID); how != "arbitrate" && total >= fills {
					t.Fatalf("a claim of %d messages goes on behind %d bytes, at %d", len(c.Deliveries), total, i)
				}
				total += len(d.Body)
				b.ack(d)
			}
		}
		if !slices.Equal(got, ids) {
			t.Errorf("got %q", got)
		}
		b.empty()
	})
}

// TestReadyHasStaleEntries has a mover's list begin with more of them than a claim may take.
func TestReadyHasStaleEntries(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"script", "mover"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := pushedAndMoved(t)
			for i := range 20 {
				must(b.t, b.raw.LPush(b.ctx, b.key("ready"), fmt.Sprintf("1234567\x00\x00\x00\x00\x05gone%d", i%10)).Err())
			}
			c, err := ways(b.Store)[how](b.ctx, 3, time.Minute, "mine")
			if err != nil || len(c.Deliveries) != 1 || c.Deliveries[0].ID != "a" {
				t.Fatalf("got %+v, %v", c, err)
			}
			b.ack(c.Deliveries[0])
			b.empty()
		})
	}
}

// The entry of a loser that died has the member of a lease that ended. It is no lease.
func TestAckAfterStaleEntry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.push("a")
	var was backend.Delivery
	f := &redistest.Fault{At: "multi", Dies: true, Before: func() {
		was = b.next(b.Claim, time.Minute, "a")
		b.all(b.Nack(b.ctx, []backend.Return{{Lease: was.Lease(), Delay: time.Hour}}))
	}}
	_, _ = b.faulty(f).Arbitrate(b.ctx, 10, time.Hour, "loser")
	if n := b.raw.HLen(b.ctx, b.key("held")).Val(); n != 1 {
		t.Fatalf("%d entries of leases, want the loser's", n)
	}
	redistest.Stale(b.ctx, t, b.Store, was.Lease())
	b.cancel("a")
	redistest.Stale(b.ctx, t, b.Store, was.Lease())
}
