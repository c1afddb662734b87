package memory

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
)

func moveTo(t tb, q *queue, id string, delay time.Duration) {
	t.Helper()
	mustAll(t, q.Reschedule(context.Background(), []backend.Move{{ID: id, Delay: delay}}))
}

func idsOf(ds []backend.Delivery) (ids string) {
	for _, d := range ds {
		ids += d.ID
	}
	return ids
}

func TestOrderIsDueThenPush(t *testing.T) {
	q, clock := open(t)
	for _, m := range []struct {
		id    string
		delay time.Duration
	}{{"d", 2}, {"a", 1}, {"b", 1}, {"e", 2}, {"c", 1}, {"f", 3}} {
		mustPush(t, q, m.id, m.delay)
	}
	clock.Advance(2)
	if got := idsOf(mustTake(t, q, 2, time.Minute)) + "|" + idsOf(mustTake(t, q, 10, time.Minute)); got != "ab|cde" {
		t.Errorf("got %s", got)
	}
}

func TestGivenBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		back    func(*queue, backend.Lease) []error
		order   string
		attempt int
	}{
		{"untouched, to its old place", func(q *queue, l backend.Lease) []error {
			return q.Nack(context.Background(), []backend.Return{{Lease: l, Untouched: true}})
		}, "abc", 1},
		{"now, behind what was due before", func(q *queue, l backend.Lease) []error {
			return q.Nack(context.Background(), []backend.Return{{Lease: l}})
		}, "bca", 2},
		{"by the end of its lease, to its old place", func(*queue, backend.Lease) []error { return nil }, "abc", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, clock := open(t)
			for _, id := range []string{"a", "b", "c"} {
				mustPush(t, q, id, 0)
			}
			first := mustTake(t, q, 1, time.Second)[0]
			clock.Advance(time.Millisecond)
			mustAll(t, c.back(q, first.Lease()))
			clock.Advance(time.Second)
			ds := mustTake(t, q, 10, time.Second)
			if got := idsOf(ds); got != c.order {
				t.Fatalf("order %s, want %s", got, c.order)
			}
			for _, d := range ds {
				if d.ID == "a" && d.Attempt != c.attempt {
					t.Errorf("attempt %d, want %d", d.Attempt, c.attempt)
				}
			}
		})
	}
}

func TestNackWithDelay(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "a", 0)
	d := mustTake(t, q, 1, time.Minute)[0]
	mustAll(t, q.Nack(context.Background(), []backend.Return{{Lease: d.Lease(), Delay: time.Hour}}))
	got := receive(context.Background(), t, q)
	clock.Advance(time.Hour)
	if d := mustGet(t, got, "a"); !d.Due.Equal(epoch.Add(time.Hour)) {
		t.Errorf("due %v", d.Due)
	}
}

func TestExtendMovesTheEnd(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "a", 0)
	d := mustTake(t, q, 1, time.Second)
	for _, lease := range []time.Duration{time.Hour, time.Minute} { // later, then sooner
		ends, errs := q.Extend(context.Background(), leasesOf(d), lease)
		if errs != nil || !ends[0].Equal(epoch.Add(lease)) {
			t.Fatalf("extended by %v: %v, %v", lease, ends, errs)
		}
	}
	got := receive(context.Background(), t, q)
	clock.Advance(time.Minute)
	mustGet(t, got, "a")
}

// A lease that ended, was settled, or is another's settles nothing.
func TestLostLeases(t *testing.T) {
	q, clock := open(t)
	ctx := context.Background()
	mustPush(t, q, "a", 0)
	old := mustTake(t, q, 1, time.Second)[0].Lease()
	clock.Advance(time.Second)
	d := mustTake(t, q, 1, time.Minute)[0]
	other := backend.Lease{ID: "nobody", Token: d.Token}
	for _, l := range []backend.Lease{old, other, {ID: "a"}} {
		ends, extendErrs := q.Extend(ctx, []backend.Lease{l}, time.Hour)
		for op, err := range map[string]error{
			"Ack":    one(q.Ack(ctx, []backend.Lease{l})),
			"Nack":   one(q.Nack(ctx, []backend.Return{{Lease: l}})),
			"Extend": one(extendErrs),
			"Dead":   one(q.Dead(ctx, []backend.Burial{{Lease: l}})),
		} {
			if !errors.Is(err, backend.ErrLeaseLost) {
				t.Errorf("%s with %v: %v", op, l, err)
			}
		}
		if !ends[0].IsZero() {
			t.Errorf("a lost lease ends at %v", ends[0])
		}
	}
	mustAll(t, q.Ack(ctx, []backend.Lease{d.Lease()}))
	if err := one(q.Ack(ctx, []backend.Lease{d.Lease()})); !errors.Is(err, backend.ErrLeaseLost) {
		t.Errorf("second ack: %v", err)
	}
	mustBeEmpty(t, q.store)
}

// The results of Cancel, Reschedule and the methods of dead letters in each state of a message.
func TestStates(t *testing.T) {
	q, _ := open(t)
	ctx := context.Background()
	calls := map[string]func() error{
		"cancel":     func() error { return one(q.Cancel(ctx, []string{"a"})) },
		"reschedule": func() error { return one(q.Reschedule(ctx, []backend.Move{{ID: "a"}})) },
		"redrive":    func() error { return one(q.Redrive(ctx, []string{"a"})) },
		"delete":     func() error { return one(q.DeleteDead(ctx, []string{"a"})) },
		"push":       func() error { return push(q, "a", 0) },
	}
	want := func(state string, answers map[string]error) {
		t.Helper()
		for op, want := range answers {
			if err := calls[op](); !errors.Is(err, want) {
				t.Errorf("%s when %s: %v, want %v", op, state, err, want)
			}
		}
	}
	unknown := map[string]error{
		"cancel": backend.ErrNotFound, "reschedule": backend.ErrNotFound,
		"redrive": backend.ErrNotFound, "delete": backend.ErrNotFound,
	}
	want("unknown", unknown)
	mustPush(t, q, "a", 0)
	want("scheduled", map[string]error{
		"reschedule": nil, "redrive": backend.ErrNotFound, "delete": backend.ErrNotFound, "push": backend.ErrDuplicate,
	})
	d := mustTake(t, q, 1, time.Minute)[0]
	want("in flight", map[string]error{
		"cancel": backend.ErrInFlight, "reschedule": backend.ErrInFlight,
		"redrive": backend.ErrNotFound, "delete": backend.ErrNotFound, "push": backend.ErrDuplicate,
	})
	mustAll(t, q.Dead(ctx, []backend.Burial{{Lease: d.Lease()}}))
	want("dead", map[string]error{
		"cancel": backend.ErrNotFound, "reschedule": backend.ErrNotFound, "push": backend.ErrDuplicate,
	})
	want("dead", map[string]error{"delete": nil})
	want("deleted", unknown)
	want("deleted", map[string]error{"push": nil})
}

func TestRescheduleKeepsPushOrder(t *testing.T) {
	q, clock := open(t)
	mustPush(t, q, "a", time.Hour)
	mustPush(t, q, "b", time.Minute)
	mustAll(t, q.Reschedule(context.Background(), []backend.Move{{ID: "a", Due: epoch.Add(time.Minute)}}))
	clock.Advance(time.Minute)
	if got := idsOf(mustTake(t, q, 2, time.Minute)); got != "ab" {
		t.Errorf("got %s", got)
	}
}

func TestStats(t *testing.T) {
	q, clock := open(t)
	ctx := context.Background()
	want := func(want backend.Stats) {
		t.Helper()
		got, err := q.Stats(ctx)
		must(t, err)
		if got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	want(backend.Stats{})
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		mustPush(t, q, id, time.Duration(i)*time.Second)
	}
	clock.Advance(2 * time.Second)
	want(backend.Stats{Scheduled: 2, Ready: 3, HeadDue: epoch})
	ds := mustTake(t, q, 2, time.Minute)
	mustAll(t, q.Dead(ctx, []backend.Burial{{Lease: ds[0].Lease()}}))
	want(backend.Stats{Scheduled: 2, Ready: 1, InFlight: 1, Dead: 1, HeadDue: epoch.Add(2 * time.Second)})
	clock.Advance(time.Minute)
	want(backend.Stats{Ready: 4, Dead: 1, HeadDue: epoch.Add(time.Second)})
}

// No caller shares memory with the store, nor with another delivery.
func TestStoreKeepsCopies(t *testing.T) {
	q, _ := open(t)
	ctx := context.Background()
	body, headers := []byte("body"), map[string]string{"k": "v"}
	mustAll(t, q.Schedule(ctx, []backend.Message{{ID: "a", Body: body, Headers: headers}}))
	for range 2 {
		body[0], headers["k"] = 'X', "X"
		d := mustTake(t, q, 1, time.Minute)[0]
		if string(d.Body) != "body" || !maps.Equal(d.Headers, map[string]string{"k": "v"}) {
			t.Fatalf("got %s %v", d.Body, d.Headers)
		}
		body, headers = d.Body, d.Headers
		mustAll(t, q.Nack(ctx, []backend.Return{{Lease: d.Lease()}}))
	}
}

// Receive takes no more than there is, though the limit is high.
func TestReceiveAllocatesForWhatIsDue(t *testing.T) {
	q, _ := open(t)
	for i := range 2000 {
		mustPush(t, q, string(rune('A'+i)), time.Hour)
	}
	mustPush(t, q, "due", 0)
	ds := mustTake(t, q, 10_000, time.Minute)
	if len(ds) != 1 || cap(ds) > 8 {
		t.Errorf("%d deliveries in room for %d", len(ds), cap(ds))
	}
}

// A handler that pushes its own message again is told why nothing came of it.
func TestDuplicateOfWhatIsInFlight(t *testing.T) {
	t.Parallel()
	q, _ := open(t)
	mustPush(t, q, "a", 0)
	waiting := push(q, "a", 0)
	mustTake(t, q, 1, time.Minute)
	held := push(q, "a", 0)
	if !errors.Is(waiting, backend.ErrDuplicate) || !errors.Is(held, backend.ErrDuplicate) || errors.Is(held, backend.ErrInFlight) {
		t.Errorf("errors %v and %v, want ErrDuplicate", waiting, held)
	}
	if strings.Contains(waiting.Error(), "in flight") || !strings.Contains(held.Error(), "in flight") {
		t.Errorf("errors %q and %q, want the second to tell", waiting, held)
	}
}
