package tombstone_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/rabbitmq"
	"github.com/delayq/delayq/rabbitmq/tombstone"
	"github.com/delayq/delayq/rabbitmq/tombstone/redistomb"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience bounds waits for required events. It matters only if the code is broken.
const patience = 30 * time.Second

// stores are all implementations, which behave alike.
var stores = map[string]func(*testing.T) rabbitmq.Tombstones{
	"memory": func(*testing.T) rabbitmq.Tombstones { return tombstone.NewMemory() },
	"redis": func(t *testing.T) rabbitmq.Tombstones {
		return redistomb.New(testenv.SharedRedis(t).Client(t), prefix())
	},
	"redis-cluster": func(t *testing.T) rabbitmq.Tombstones {
		client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testenv.SharedRedisCluster(t).Addrs()})
		t.Cleanup(func() { _ = client.Close() })
		return redistomb.New(client, prefix())
	},
}

var prefixes atomic.Int64

func prefix() redistomb.Option {
	return redistomb.Prefix(fmt.Sprintf("test-%d-%d", time.Now().UnixNano(), prefixes.Add(1)))
}

func TestStores(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			for name, behave := range behaviours {
				t.Run(name, func(t *testing.T) {
					behave(&storeTest{t, open(t), "orders"})
				})
			}
		})
	}
}

// A storeTest calls a store for one queue, and ends the test at a wrong result.
type storeTest struct {
	*testing.T
	store rabbitmq.Tombstones
	queue string
}

func (d *storeTest) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *storeTest) enroll(id string) rabbitmq.Hold {
	d.Helper()
	stamps, err := d.store.Enroll(d.Context(), d.queue, []string{id})
	d.must(err)
	if len(stamps) != 1 || stamps[0] <= 0 {
		d.Fatalf("stamps %v for one message", stamps)
	}
	return rabbitmq.Hold{ID: id, Stamp: stamps[0], Token: "of " + id}
}

func (d *storeTest) cancelFor(id string, keep time.Duration) error {
	d.Helper()
	errs := d.store.Cancel(d.Context(), d.queue, []string{id}, keep)
	if len(errs) == 0 {
		return nil
	}
	return errs[0]
}

func (d *storeTest) cancel(id string, want error) {
	d.Helper()
	if err := d.cancelFor(id, time.Hour); !errors.Is(err, want) {
		d.Fatalf("Cancel(%q) = %v, want %v", id, err, want)
	}
}

func (d *storeTest) takeFor(h rabbitmq.Hold, lasts time.Duration) bool {
	d.Helper()
	cancelled, err := d.store.Take(d.Context(), d.queue, []rabbitmq.Hold{h}, lasts)
	d.must(err)
	if len(cancelled) != 1 {
		d.Fatalf("%v for one message", cancelled)
	}
	return cancelled[0]
}

func (d *storeTest) take(h rabbitmq.Hold, cancelled bool) {
	d.Helper()
	if got := d.takeFor(h, time.Hour); got != cancelled {
		d.Fatalf("Take(%+v): cancelled is %t", h, got)
	}
}

func (d *storeTest) release(h rabbitmq.Hold) {
	d.Helper()
	d.must(d.store.Release(d.Context(), d.queue, []rabbitmq.Hold{h}))
}

func (d *storeTest) settle(h rabbitmq.Hold) {
	d.Helper()
	d.must(d.store.Settle(d.Context(), d.queue, []rabbitmq.Hold{h}, time.Hour))
}

// until polls until over returns true, and returns the time since began.
func (d *storeTest) until(began time.Time, over func() bool) time.Duration {
	d.Helper()
	for !over() {
		if time.Since(began) > patience {
			d.Fatalf("no end after %v", patience)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// untilCancelled cancels an id until that succeeds, and returns the time since began. Until then
// the error must be meanwhile.
func (d *storeTest) untilCancelled(id string, began time.Time, meanwhile error) time.Duration {
	d.Helper()
	return d.until(began, func() bool {
		err := d.cancelFor(id, time.Hour)
		if err != nil && !errors.Is(err, meanwhile) {
			d.Fatal(err)
		}
		return err == nil
	})
}

// brief is the duration of holds and records that a test waits for to end.
const brief = 200 * time.Millisecond

var behaviours = map[string]func(*storeTest){
	"a cancelled message stays so": func(d *storeTest) {
		a := d.enroll("a")
		d.cancel("a", nil)
		for range 3 {
			d.take(a, true)
		}
		d.cancel("a", backend.ErrNotFound)
	},
	"an unknown id": func(d *storeTest) {
		d.cancel("a", nil)
		d.cancel("a", backend.ErrNotFound)
		d.take(d.enroll("a"), false)
	},
	"cancelled and pushed again": func(d *storeTest) {
		first := d.enroll("a")
		d.cancel("a", nil)
		second := d.enroll("a")
		d.take(first, true)
		d.take(second, false)
		d.release(second)
		d.cancel("a", nil)
		d.take(first, true)
		d.take(second, true)
		d.cancel("a", backend.ErrNotFound)
	},
	"held": func(d *storeTest) {
		a := d.enroll("a")
		d.take(a, false)
		d.cancel("a", backend.ErrInFlight)
		d.release(a)
		d.cancel("a", nil)
		d.take(a, true)
	},
	"released twice, and by a token that holds nothing": func(d *storeTest) {
		a := d.enroll("a")
		d.take(a, false)
		d.release(rabbitmq.Hold{ID: "a", Stamp: a.Stamp, Token: "another"})
		d.cancel("a", backend.ErrInFlight)
		d.release(a)
		d.release(a)
		d.cancel("a", nil)
	},
	"settled": func(d *storeTest) {
		a := d.enroll("a")
		d.take(a, false)
		d.settle(a)
		d.settle(a)
		d.cancel("a", backend.ErrNotFound)
		again := d.enroll("a")
		d.cancel("a", nil)
		d.take(again, true)
	},
	"settled after a cancel and a push": func(d *storeTest) {
		d.enroll("a")
		d.cancel("a", nil)
		second := d.enroll("a")
		d.take(second, false)
		d.settle(second)
		d.cancel("a", backend.ErrNotFound)
	},
	"pushed again while held": func(d *storeTest) {
		first := d.enroll("a")
		d.take(first, false)
		second := d.enroll("a")
		second.Token = "of the second"
		d.settle(first)
		d.cancel("a", nil)
		d.take(second, true)
	},
	"two messages of one id are cancelled together": func(d *storeTest) {
		first, second := d.enroll("a"), d.enroll("a")
		d.cancel("a", nil)
		d.take(first, true)
		d.take(second, true)
	},
	"two messages of one id, one of them held": func(d *storeTest) {
		first, second := d.enroll("a"), d.enroll("a")
		second.Token = "of the second"
		d.take(first, false)
		d.cancel("a", backend.ErrInFlight)
		d.take(second, false)
		d.settle(first)
		d.cancel("a", backend.ErrInFlight)
		d.release(second)
		d.cancel("a", nil)
		d.take(second, true)
	},
	// This is a limit. Both messages were pushed while the id had no record, so the store does not
	// know the second one.
	"two messages of one id, one of them settled": func(d *storeTest) {
		first, second := d.enroll("a"), d.enroll("a")
		d.take(first, false)
		d.settle(first)
		d.cancel("a", backend.ErrNotFound)
		d.take(second, false)
	},
	"never enrolled": func(d *storeTest) {
		a := rabbitmq.Hold{ID: "a", Token: "of a"}
		d.take(a, false)
		d.cancel("a", backend.ErrInFlight)
		d.settle(a)
		d.cancel("a", backend.ErrNotFound)
		b := rabbitmq.Hold{ID: "b", Token: "of b"}
		d.cancel("b", nil)
		d.take(b, true)
	},
	"a hold expires": func(d *storeTest) {
		a := d.enroll("a")
		began := time.Now()
		d.takeFor(a, brief)
		if took := d.untilCancelled("a", began, backend.ErrInFlight); took < brief-brief/100 { // Redis goes by the wall clock, which may be set meanwhile
			d.Errorf("the hold lasted %v, want %v", took, brief)
		}
		d.take(a, true)
	},
	"a second Take prolongs, and never shortens": func(d *storeTest) {
		a, b := d.enroll("a"), d.enroll("b")
		d.takeFor(a, brief)
		d.takeFor(a, time.Hour)
		d.takeFor(b, time.Hour)
		d.takeFor(b, time.Millisecond)
		time.Sleep(brief) // the short hold would have expired
		d.cancel("a", backend.ErrInFlight)
		d.cancel("b", backend.ErrInFlight)
		d.release(a)
		d.cancel("a", nil)
	},
	"a settlement expires": func(d *storeTest) {
		a := d.enroll("a")
		d.take(a, false)
		began := time.Now()
		d.must(d.store.Settle(d.Context(), d.queue, []rabbitmq.Hold{a}, brief))
		d.untilCancelled("a", began, backend.ErrNotFound)
	},
	"a cancellation expires": func(d *storeTest) {
		a := d.enroll("a")
		began := time.Now()
		d.must(d.cancelFor("a", brief))
		if took := d.until(began, func() bool { return !d.takeFor(a, time.Hour) }); took < brief-brief/100 { // Redis goes by the wall clock, which may be set meanwhile
			d.Errorf("the cancellation lasted %v, want %v", took, brief)
		}
		d.cancel("a", backend.ErrInFlight)
	},
	"a cancel outlives a settlement": func(d *storeTest) {
		first := d.enroll("a")
		d.cancel("a", nil)
		second := d.enroll("a")
		d.take(second, false)
		d.must(d.store.Settle(d.Context(), d.queue, []rabbitmq.Hold{second}, time.Millisecond))
		time.Sleep(brief) // the settlement has expired
		d.take(first, true)
	},
	"queues are apart, and ids are any bytes": func(d *storeTest) {
		queues := []string{"a", "b", "a:b", "{a}", "a}:b", "a}", "a%7D", "", "/:delayq.v1.q.a"}
		ids := []string{"b", ":", "}:b", "{x}", "\x00\xff", "a b\n", "c", "t:c", strings.Repeat("x", backend.MaxID)}
		for i, queue := range queues {
			for j, id := range ids {
				d.queue = queue
				if (i+j)%2 == 0 {
					d.cancel(id, nil)
				}
			}
		}
		for i, queue := range queues {
			for j, id := range ids {
				d.queue = queue
				want := error(nil)
				if (i+j)%2 == 0 {
					want = backend.ErrNotFound
				}
				d.cancel(id, want)
			}
		}
	},
	"many at once": many,
	"no ids": func(d *storeTest) {
		stamps, err := d.store.Enroll(d.Context(), d.queue, nil)
		d.must(err)
		cancelled, err := d.store.Take(d.Context(), d.queue, nil, time.Hour)
		d.must(errors.Join(err, d.store.Release(d.Context(), d.queue, nil), d.store.Settle(d.Context(), d.queue, nil, time.Hour)))
		if errs := d.store.Cancel(d.Context(), d.queue, nil, time.Hour); len(stamps)+len(cancelled)+len(errs) > 0 {
			d.Errorf("results for no ids: %v, %v, %v", stamps, cancelled, errs)
		}
	},
	"a context that has ended": func(d *storeTest) {
		a := d.enroll("a")
		ended, cancel := context.WithCancel(d.Context())
		cancel()
		_, enroll := d.store.Enroll(ended, d.queue, []string{"a"})
		_, take := d.store.Take(ended, d.queue, []rabbitmq.Hold{a}, time.Hour)
		cancelled := d.store.Cancel(ended, d.queue, []string{"a"}, time.Hour)[0]
		release, settle := d.store.Release(ended, d.queue, []rabbitmq.Hold{a}), d.store.Settle(ended, d.queue, []rabbitmq.Hold{a}, time.Hour)
		for _, err := range []error{enroll, take, cancelled, release, settle} {
			if !errors.Is(err, context.Canceled) {
				d.Errorf("%v, want %v", err, context.Canceled)
			}
		}
		d.cancel("a", nil)
	},
	"stamps rise":       risingStamps,
	"Cancel races Take": cancelRacesTake,
}

// many has more ids than one script takes.
func many(d *storeTest) {
	const n = 1300
	ids, hs := make([]string, n), make([]rabbitmq.Hold, n)
	for i := range n {
		ids[i] = fmt.Sprint(i)
	}
	stamps, err := d.store.Enroll(d.Context(), d.queue, ids)
	d.must(err)
	for i := range n {
		hs[i] = rabbitmq.Hold{ID: ids[i], Stamp: stamps[i], Token: "of " + ids[i]}
	}
	for i := 0; i < n; i += 3 {
		d.cancel(ids[i], nil)
	}
	cancelled, err := d.store.Take(d.Context(), d.queue, hs, time.Hour)
	d.must(err)
	for i := range n {
		if cancelled[i] != (i%3 == 0) {
			d.Fatalf("message %d: cancelled is %t", i, cancelled[i])
		}
	}
	d.must(d.store.Settle(d.Context(), d.queue, hs[:n/2], time.Hour))
	d.must(d.store.Release(d.Context(), d.queue, hs[n/2:]))
	errs := d.store.Cancel(d.Context(), d.queue, ids, time.Hour)
	for i := range n {
		want := error(nil)
		if i%3 == 0 || i < n/2 {
			want = backend.ErrNotFound
		}
		if got := at(errs, i); !errors.Is(got, want) {
			d.Fatalf("Cancel of message %d: %v, want %v", i, got, want)
		}
	}
}

func at(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

func risingStamps(d *storeTest) {
	var last atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				before := last.Load()
				stamps, err := d.store.Enroll(d.Context(), d.queue, []string{"a", "b"})
				if err != nil || stamps[0] <= before || stamps[1] <= before {
					d.Errorf("stamps %v after %d (%v)", stamps, before, err)
					return
				}
				for _, s := range stamps {
					raise(&last, s)
				}
			}
		})
	}
	all.Wait()
}

func raise(last *atomic.Int64, to int64) {
	for now := last.Load(); now < to && !last.CompareAndSwap(now, to); now = last.Load() {
	}
}

// cancelRacesTake has concurrent calls of Cancel and Take for each id. Either Take or Cancel gets
// the message.
func cancelRacesTake(d *storeTest) {
	const n = 300
	var all sync.WaitGroup
	for i := range n {
		id := fmt.Sprint(i)
		h := d.enroll(id)
		var taken, refused, cancels atomic.Int64
		for j := range 2 {
			all.Go(func() {
				mine := h
				mine.Token = fmt.Sprint(j)
				if d.takeFor(mine, time.Hour) {
					refused.Add(1)
				} else {
					taken.Add(1)
				}
			})
			all.Go(func() {
				if d.cancelFor(id, time.Hour) == nil {
					cancels.Add(1)
				}
			})
		}
		if i%10 == 9 {
			all.Wait()
		}
		d.Cleanup(func() {
			if won := taken.Load() == 2 && cancels.Load() == 0; !won && (refused.Load() != 2 || cancels.Load() != 1) {
				d.Errorf("message %s: taken %d times, refused %d times, cancelled %d times", id, taken.Load(), refused.Load(), cancels.Load())
			}
		})
	}
	all.Wait()
}
