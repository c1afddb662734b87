package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// TestServerFull fills a server that evicts nothing. Pushes are rejected; all else goes on, although
// the server stays over its limit all the while.
func TestServerFull(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		testenv.In(t, s.tier)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		client := testenv.Redis(t, testenv.Private(), testenv.MaxMemory("12mb", "noeviction")).Client(t)
		f := &full{t: t, ctx: ctx, q: openQueue(t, s.open(client)), client: client, stored: make(map[string]string), hash: !s.redisson()}
		f.fill()
		f.setLimit(f.used() / 2)
		f.rejects()
		f.cancelAndMove()
		f.receiveAndSettle()
		f.deadLetterAndRedrive()
		if s.java {
			f.javaReceives()
		}
		f.leaseEnds()
		f.rejects()
		f.drain()
		f.setLimit(12 << 20)
		if f.push(1) > 0 {
			t.Error("a server with room rejects a message")
		}
		f.drain()
		empty(t, client)
	})
}

// full is a queue on a full server.
type full struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // the test's: every call takes it
	q      backend.Queue
	client *redis.Client
	hash   bool // bodies are in a hash of the queue's
	pushed int
	stored map[string]string // bodies by ids
}

// push pushes messages, and returns how many of them a full server rejects.
func (f *full) push(n int) (rejected int) {
	f.t.Helper()
	ms := make([]backend.Message, n)
	for i := range ms {
		f.pushed++
		ms[i] = backend.Message{ID: fmt.Sprint(f.pushed), Body: fmt.Appendf(nil, "%d %s", f.pushed, strings.Repeat("x", 2000))}
	}
	errs := f.q.Schedule(f.ctx, ms)
	for i, m := range ms {
		switch {
		case errs == nil || errs[i] == nil:
			f.stored[m.ID] = string(m.Body)
		case errors.Is(errs[i], backend.ErrFull):
			rejected++
		default:
			f.t.Fatalf("a push on a full server: %v", errs[i])
		}
	}
	return rejected
}

// fill pushes in batches until the server rejects a message, and checks that rejected messages leave
// nothing.
func (f *full) fill() {
	f.t.Helper()
	for f.push(50) == 0 {
		if f.pushed > 50_000 {
			f.t.Fatal("the server takes everything")
		}
	}
	f.whole()
}

// whole checks that each stored message is there, and nothing of any other.
func (f *full) whole() {
	f.t.Helper()
	s, err := f.q.Stats(f.ctx)
	must(f.t, err)
	want := int64(len(f.stored))
	if s.Scheduled+s.Ready+s.InFlight+s.Dead != want || s.Quarantined > 0 {
		f.t.Fatalf("stats %+v of %d messages", s, want)
	}
	if n := f.client.HLen(f.ctx, "delayq:{orders}:messages").Val(); f.hash && n != want {
		f.t.Fatalf("%d bodies of %d messages", n, want)
	}
}

func (f *full) used() int64 {
	f.t.Helper()
	info, err := f.client.Info(f.ctx, "memory").Result()
	must(f.t, err)
	_, rest, _ := strings.Cut(info, "used_memory:")
	text, _, _ := strings.Cut(rest, "\r\n")
	used, err := strconv.ParseInt(text, 10, 64)
	must(f.t, err)
	return used
}

func (f *full) setLimit(bytes int64) {
	f.t.Helper()
	must(f.t, f.client.ConfigSet(f.ctx, "maxmemory", fmt.Sprint(bytes)).Err())
}

func (f *full) rejects() {
	f.t.Helper()
	if f.push(1) != 1 {
		f.t.Fatal("a full server takes a message")
	}
	if f.hash { // the store can replace
		errs := f.q.Schedule(f.ctx, []backend.Message{{ID: "new", Body: []byte("x"), Replace: true}})
		if err := errors.Join(errs...); !errors.Is(err, backend.ErrFull) {
			f.t.Fatalf("a push that may replace: %v on a full server", err)
		}
	}
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
	moved := f.any()
	must(f.t, f.q.Reschedule(f.ctx, []backend.Move{{ID: moved, Delay: time.Millisecond}})...)
	f.whole()
}

func (f *full) receive(limit int, lease time.Duration) []backend.Delivery {
	f.t.Helper()
	ds, err := f.q.Receive(f.ctx, limit, lease)
	must(f.t, err)
	for _, d := range ds {
		if f.stored[d.ID] != string(d.Body) {
			f.t.Fatalf("got %s, which is not stored: %.20q", d.ID, d.Body)
		}
	}
	return ds
}

func (f *full) receiveAndSettle() {
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
	ids := make([]string, len(ds))
	for i := range ds {
		ids[i] = ds[i].ID
	}
	must(f.t, f.q.Dead(f.ctx, redistest.DeadLetters(leases(ds), strings.Repeat("why", 100)))...)
	ls, _, err := f.q.ListDead(f.ctx, "", 100)
	must(f.t, err)
	if len(ls) != len(ds) {
		f.t.Fatalf("%d dead letters, want %d", len(ls), len(ds))
	}
	must(f.t, f.q.DeleteDead(f.ctx, ids[:1])...)
	delete(f.stored, ids[0])
	must(f.t, f.q.Redrive(f.ctx, ids[1:])...)
	f.whole()
}

// javaReceives has a program in Java take some messages from the list.
func (f *full) javaReceives() {
	f.t.Helper()
	taken := make(map[string]bool)
	for range 20 {
		item, err := f.client.BLPop(f.ctx, 0, "orders").Result()
		must(f.t, err)
		taken[item[1]] = true
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
	held := f.receive(20, time.Second)
	for came := false; !came; {
		ds := f.receive(500, time.Minute)
		for _, d := range ds {
			came = came || d.ID == held[0].ID && d.Attempt > held[0].Attempt
		}
		must(f.t, f.q.Nack(f.ctx, redistest.Returns(leases(ds), backend.Return{Untouched: true}))...)
	}
}

// drain acks all that is stored.
func (f *full) drain() {
	f.t.Helper()
	for len(f.stored) > 0 {
		ds := f.receive(100, time.Minute)
		must(f.t, f.q.Ack(f.ctx, leases(ds))...)
		for _, d := range ds {
			delete(f.stored, d.ID)
		}
	}
}
