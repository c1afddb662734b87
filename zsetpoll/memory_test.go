package zsetpoll_test

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
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// TestServerFull fills a server that evicts nothing. Pushes are refused; all else goes on, although
// the server stays over its limit all the while.
func TestServerFull(t *testing.T) {
	eachMode(t, func(t *testing.T, mode zsetpoll.Mode) {
		ctx := deadline(t, 60*time.Second)
		client := testenv.Redis(t, testenv.Private(), testenv.MaxMemory("12mb", "noeviction")).Client(t)
		q := open(t, client, zsetpoll.Claims(mode))
		f := &full{t: t, ctx: ctx, q: q, client: client}
		f.fill()
		f.setLimit(f.used() / 2)
		f.refuses()
		f.cancelAndMove()
		f.takeAndSettle()
		f.deadLetterAndRedrive()
		f.leaseEnds()
		f.refuses()
		f.drain()
		f.setLimit(12 << 20)
		must(t, q.Schedule(ctx, message("after", 0))...)
		must(t, q.Ack(ctx, leases([]backend.Delivery{receiveOne(ctx, t, q, time.Minute, "after")}))...)
		drained(ctx, t, q, client)
	})
}

type full struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // the test's: every call takes it
	q      backend.Queue
	client *redis.Client
	stored map[string]bool
}

// fill pushes until the server rejects, in batches, and checks that rejected messages leave
// nothing.
func (f *full) fill() {
	f.t.Helper()
	f.stored = make(map[string]bool)
	body := []byte(strings.Repeat("x", 2000))
	for n, refused := 0, 0; refused == 0; {
		ms := make([]backend.Message, 50)
		for i := range ms {
			n++
			ms[i] = backend.Message{ID: fmt.Sprint(n), Body: body}
		}
		for i, err := range padded(f.q.Schedule(f.ctx, ms), len(ms)) {
			switch {
			case err == nil:
				f.stored[ms[i].ID] = true
			case errors.Is(err, backend.ErrFull):
				refused++
			default:
				f.t.Fatalf("a push on a full server: %v", err)
			}
		}
		if n > 50_000 {
			f.t.Fatal("the server takes everything")
		}
	}
	f.whole()
}

func padded(errs []error, n int) []error {
	if errs == nil {
		return make([]error, n)
	}
	return errs
}

// whole checks that each stored message is there, and nothing of any other.
func (f *full) whole() {
	f.t.Helper()
	p := "delayq:{" + f.t.Name() + "}:"
	bodies, due := f.client.HLen(f.ctx, p+"messages").Val(), f.client.ZCard(f.ctx, p+"due").Val()
	if want := int64(len(f.stored)); bodies != want || due != want {
		f.t.Fatalf("%d bodies and %d due times of %d messages", bodies, due, want)
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

func (f *full) refuses() {
	f.t.Helper()
	errs := f.q.Schedule(f.ctx, message("one too many", 0))
	if len(errs) != 1 || !errors.Is(errs[0], backend.ErrFull) {
		f.t.Fatalf("a push on a full server: %v", errs)
	}
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
		if !f.stored[d.ID] {
			f.t.Fatalf("got %s, which is not stored", d.ID)
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
	letters := make([]backend.Burial, len(ds))
	ids := make([]string, len(ds))
	for i := range ds {
		letters[i] = backend.Burial{Lease: ds[i].Lease(), Reason: strings.Repeat("why", 100)}
		ids[i] = ds[i].ID
	}
	must(f.t, f.q.Dead(f.ctx, letters)...)
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

// leaseEnds lets leases end, and waits for one of their messages.
func (f *full) leaseEnds() {
	f.t.Helper()
	held := f.receive(20, 30*time.Millisecond)
	for came := false; !came; {
		ds := f.receive(500, time.Minute)
		back := make([]backend.Return, len(ds))
		for i, d := range ds {
			came = came || d.ID == held[0].ID && d.Attempt > held[0].Attempt
			back[i] = backend.Return{Lease: d.Lease(), Untouched: true}
		}
		must(f.t, f.q.Nack(f.ctx, back)...)
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
