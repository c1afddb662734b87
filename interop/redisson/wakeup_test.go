package interop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// sweep is the default one, which bounds how late a lost wake-up makes a message.
const sweep = time.Second

const raceLanes = 8

// near is the delay of the items of a race. They are offered while one is pending that is due
// after far.
const near, far = 60 * time.Millisecond, time.Hour

func raceRounds() int { return unlessShort(50, 10) } // in each lane

// TestLostWakeUpsAreMadeGood provokes the wake-ups that Redisson loses, with a handle of this side
// open that has no worker.
func TestLostWakeUpsAreMadeGood(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		b := f.both(String)
		for lane := range raceLanes {
			name := fmt.Sprint(b.java.Name(), "-", lane)
			q := got(b.ours.Open(ctx, name, backend.Options{Logger: silent}))(f.T)
			defer func() { must(f.T, q.Close()) }()
		}
		r := got(b.java.Race(ctx, Race{Lanes: raceLanes, Rounds: raceRounds(), Near: near, Far: far, Wait: 30 * time.Second}))(f.T)
		for lane := range raceLanes {
			must(f.T, f.jvm.Queue(fmt.Sprint(b.java.Name(), "-", lane), WithCodec(String)).Destroy(ctx))
		}
		f.lateness(r.Late, r.Lost)
	})
}

func (f fixture) lateness(late []time.Duration, lost int) {
	f.Helper()
	slices.Sort(late)
	if lost > 0 || len(late) != raceLanes*raceRounds() {
		f.Fatalf("%d items were lost, and %d came; want %d", lost, len(late), raceLanes*raceRounds())
	}
	f.Logf("late by %v at p50, %v at most", late[len(late)/2], late[len(late)-1])
	if late[0] < 0 || late[len(late)-1] > sweep+slack {
		f.Errorf("late by %v to %v; want at most %v and some slack", late[0], late[len(late)-1], sweep)
	}
}

// TestLostWakeUpsAreMadeGoodByWorkers provokes lost wake-ups beside a Go worker, which gets Java's
// items.
func TestLostWakeUpsAreMadeGoodByWorkers(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		var mu sync.Mutex
		var late []time.Duration
		var lanes sync.WaitGroup
		for range raceLanes {
			b := f.both(String)
			q := b.workers(ctx)
			lanes.Go(func() {
				all := b.lane(ctx, q)
				mu.Lock()
				defer mu.Unlock()
				late = append(late, all...)
			})
		}
		lanes.Wait()
		f.lateness(late, raceLanes*raceRounds()-len(late))
	})
}

// lane offers near items, each when the one before has arrived, and returns by how much they were
// late at most. It stops at the first that does not come.
func (b both) lane(ctx context.Context, q delayq.Queue) (late []time.Duration) {
	arrived := make(chan string, raceRounds())
	stop := consume(ctx, q, func(_ context.Context, d *delayq.Delivery) error {
		arrived <- string(d.Body)
		return nil
	})
	if err := b.java.Offer(ctx, "far", far); err != nil {
		b.Error(err)
	}
	for i := range raceRounds() {
		due := time.Now().Truncate(time.Millisecond).Add(near) // as Java cuts it
		if err := b.java.Offer(ctx, fmt.Sprint("near-", i), near); err != nil {
			b.Error(err)
		}
		select {
		case body := <-arrived:
			if late = append(late, time.Since(due)); body != fmt.Sprint("near-", i) {
				b.Errorf("received %q instead of near-%d", body, i)
			}
		case <-time.After(sweep + 2*slack):
			b.Errorf("near-%d did not come", i)
			return late
		}
	}
	if err := stop(); err != nil {
		b.Error(err)
	}
	return late
}
