package redisson_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// TestServerFull fills a server that evicts nothing. Pushes are rejected; all else goes on, although
// the server stays over its limit all the while.
func TestServerFull(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]redisson.Option{
		"shared":   nil,
		"no index": {redisson.NoIndex()},
		"envelope": {redisson.WithCodec(redisson.Envelope)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &full{place: on(t, testenv.Redis(t, testenv.Private(), testenv.MaxMemory("8mb", "noeviction"))), stored: make(map[string]string)}
			f.q = f.open(opts...)
			f.fill()
			must(t, f.raw.ConfigSet(f.ctx, "maxmemory", "1mb").Err())
			f.refuses()
			f.cancelAndMove()
			f.takeAndSettle()
			f.deadLetterAndRedrive()
			if name != "envelope" {
				f.javaTakes()
			}
			f.leaseEnds()
			f.refuses()
			f.takeAll()
			must(t, f.raw.ConfigSet(f.ctx, "maxmemory", "8mb").Err())
			f.push(f.q, 0, "after")
			f.takes(f.q, "after")
			f.empty()
		})
	}
}

type full struct {
	*place
	q      backend.Queue
	stored map[string]string // bodies by ids
}

// fill pushes until the server rejects, in batches.
func (f *full) fill() {
	f.t.Helper()
	for n, refused := 0, 0; refused == 0; {
		ms := make([]backend.Message, 20)
		for i := range ms {
			n++
			ms[i] = backend.Message{ID: fmt.Sprint(n), Body: fmt.Appendf(nil, "%d %s", n, strings.Repeat("x", 2000))}
		}
		for i, err := range padded(f.q.Schedule(f.ctx, ms), len(ms)) {
			switch {
			case err == nil:
				f.stored[ms[i].ID] = string(ms[i].Body)
			case errors.Is(err, backend.ErrFull):
				refused++
			default:
				f.t.Fatalf("a push on a full server: %v", err)
			}
		}
		if n > 20_000 {
			f.t.Fatal("the server takes everything")
		}
	}
	f.whole()
}

// whole checks that the queue has as many messages as are stored.
func (f *full) whole() {
	f.t.Helper()
	if s := f.stats(f.q); s.Scheduled+s.Ready+s.InFlight+s.Dead != int64(len(f.stored)) || s.Quarantined > 0 {
		f.t.Fatalf("stats %+v of %d messages", s, len(f.stored))
	}
}

func (f *full) refuses() {
	f.t.Helper()
	wants(f.t, f.q.Schedule(f.ctx, []backend.Message{{ID: "one too many", Body: []byte("x")}}), backend.ErrFull)
	f.whole()
}

// any returns the id of a stored message.
func (f *full) any() string {
	for id := range f.stored {
		return id
	}
	return ""
}

func (f *full) cancelAndMove() {
	f.t.Helper()
	gone := f.any()
	must(f.t, f.q.Cancel(f.ctx, []string{gone})...)
	delete(f.stored, gone)
	must(f.t, f.q.Reschedule(f.ctx, []backend.Move{{ID: f.any(), Delay: time.Millisecond}})...)
	f.whole()
}

func (f *full) receive(limit int, lease time.Duration) []backend.Delivery {
	f.t.Helper()
	ds := f.take(f.q, limit, lease)
	for _, d := range ds {
		if f.stored[d.ID] != string(d.Body) {
			f.t.Fatalf("got %s, which is not stored: %.20q", d.ID, d.Body)
		}
	}
	return ds
}

func (f *full) takeAndSettle() {
	f.t.Helper()
	ds := f.receive(30, time.Minute)
	ends, errs := f.q.Extend(f.ctx, leases(ds), time.Hour)
	must(f.t, errs...)
	for i, end := range ends {
		if !end.After(ds[i].Until) {
			f.t.Errorf("a lease until %v was extended to %v", ds[i].Until, end)
		}
	}
	back := make([]backend.Return, len(ds))
	for i := range ds {
		back[i] = backend.Return{Lease: ds[i].Lease(), Delay: time.Duration(i%2) * time.Millisecond, Untouched: i%2 == 0}
	}
	must(f.t, f.q.Nack(f.ctx, back)...)
	f.whole()
}

func (f *full) deadLetterAndRedrive() {
	f.t.Helper()
	ds := f.receive(10, time.Minute)
	letters := make([]backend.DeadLetterRequest, len(ds))
	ids := make([]string, len(ds))
	for i := range ds {
		letters[i] = backend.DeadLetterRequest{Lease: ds[i].Lease(), Reason: strings.Repeat("why", 100)}
		ids[i] = ds[i].ID
	}
	must(f.t, f.q.Dead(f.ctx, letters)...)
	must(f.t, f.q.DeleteDead(f.ctx, ids[:1])...)
	delete(f.stored, ids[0])
	must(f.t, f.q.Redrive(f.ctx, ids[1:])...)
	f.whole()
}

// javaTakes has some messages handed over and taken by Java.
func (f *full) javaTakes() {
	f.t.Helper()
	taken := make(map[string]bool)
	for range 20 {
		taken[f.blpop()] = true
	}
	for id, body := range f.stored {
		if taken[body] {
			delete(f.stored, id)
		}
	}
	f.whole()
}

// leaseEnds lets leases end, and waits for one of their messages.
func (f *full) leaseEnds() {
	f.t.Helper()
	held := f.receive(20, 30*time.Millisecond)
	for came := false; !came; {
		ds := f.receive(50, time.Minute)
		back := make([]backend.Return, len(ds))
		for i, d := range ds {
			came = came || d.ID == held[0].ID && d.Attempt > held[0].Attempt
			back[i] = backend.Return{Lease: d.Lease(), Untouched: true}
		}
		must(f.t, f.q.Nack(f.ctx, back)...)
	}
}

// takeAll acks all that is stored.
func (f *full) takeAll() {
	f.t.Helper()
	for len(f.stored) > 0 {
		ds := f.receive(min(100, len(f.stored)), time.Minute)
		must(f.t, f.q.Ack(f.ctx, leases(ds))...)
		for _, d := range ds {
			delete(f.stored, d.ID)
		}
	}
}
