package queue

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/call"
)

// returned records the messages that are given back. No other method is called.
type returned struct {
	Messages
	back []string
}

func (r *returned) Nack(_ context.Context, rs []backend.Return) []error {
	for _, b := range rs {
		r.back = append(r.back, fmt.Sprint(b.Lease.ID, " ", b.Untouched))
	}
	return nil
}

// Messages go to the Receives in the order of their calls, to those of the claim's lease alone.
func TestDeliverAll(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		messages int
		want     []int // messages of each Receive
		waiting  int   // Receives that still wait
		back     []string
	}{
		{0, []int{0, 0, 0}, 3, nil},
		{1, []int{1, 0, 0}, 2, nil},
		{2, []int{2, 0, 0}, 2, nil},
		{4, []int{2, 0, 2}, 1, nil},
		{7, []int{2, 0, 3}, 1, []string{"5 true", "6 true"}},
	} {
		m := new(returned)
		q := newQueue(Source{Messages: m}, NewHub(nil, time.Second), new(call.Group), slog.New(slog.DiscardHandler))
		waiters := []*waiter{{limit: 2, lease: time.Minute}, {limit: 9, lease: time.Hour}, {limit: 3, lease: time.Minute}}
		for _, w := range waiters {
			w.got = make(chan received, 1)
			if err := q.enter(w); err != nil {
				t.Fatal(err)
			}
		}
		if limit, lease := q.wanted(); limit != 5 || lease != time.Minute {
			t.Errorf("wanted %d for %v", limit, lease)
		}
		ds := make([]backend.Delivery, tt.messages)
		for i := range ds {
			ds[i].ID = fmt.Sprint(i)
		}
		q.deliverAll(ds, time.Minute)
		next := 0
		for i, w := range waiters {
			n := 0
			if len(w.got) > 0 {
				for _, d := range (<-w.got).ds {
					if d.ID != fmt.Sprint(next) {
						t.Errorf("%d messages: Receive %d got %s, want %d", tt.messages, i, d.ID, next)
					}
					n, next = n+1, next+1
				}
			}
			if n != tt.want[i] {
				t.Errorf("%d messages: Receive %d got %d, want %d", tt.messages, i, n, tt.want[i])
			}
		}
		if len(q.waiting) != tt.waiting || !reflect.DeepEqual(m.back, tt.back) {
			t.Errorf("%d messages: %d wait, %v given back", tt.messages, len(q.waiting), m.back)
		}
	}
}

// A wake-up keeps the first due time. One for at once is before all.
func TestWakeKeepsTheFirstDueTime(t *testing.T) {
	t.Parallel()
	q := newQueue(Source{}, NewHub(nil, time.Second), new(call.Group), nil)
	soon, late := time.Unix(1000, 0), time.Unix(2000, 0)
	for _, tt := range []struct{ due, want time.Time }{{late, late}, {soon, soon}, {late, soon}, {time.Time{}, lookNow}, {soon, lookNow}} {
		q.wake(tt.due)
		if got := q.wakeTime(); !got.Equal(tt.want) {
			t.Errorf("woken for %v: %v, want %v", tt.due, got, tt.want)
		}
	}
	if len(q.woken) != 1 {
		t.Error("no wake-up")
	}
}

// A thousand idle queues claim as often as a hundred.
func TestInterval(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, time.Second)
	for open, want := range map[int]time.Duration{0: time.Second, 100: time.Second, 1000: 10 * time.Second} {
		h.open = open
		if got := h.interval(); got != want {
			t.Errorf("%d queues: %v, want %v", open, got, want)
		}
	}
}

// With a trigger set for it, a due time is the trigger's to tell.
func TestWakeUpsBesideATrigger(t *testing.T) {
	t.Parallel()
	for _, triggered := range []bool{false, true} {
		for payload, wakes := range map[string]bool{"1700000000000": true, "1700000000000 trigger": !triggered, "x": false, "": false} {
			h := NewHub(nil, time.Second)
			h.triggered = triggered
			q := newQueue(Source{}, h, new(call.Group), nil)
			h.queues["wake"] = map[*Queue]struct{}{q: {}}
			h.handle(&redis.Message{Channel: "other", Payload: payload})
			h.handle(&redis.Message{Channel: "wake", Payload: payload})
			if woken := len(q.woken) == 1; woken != wakes || woken && !q.wakeTime().Equal(time.UnixMilli(1_700_000_000_000)) {
				t.Errorf("triggered %t, %q: woken %t", triggered, payload, woken)
			}
		}
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"orders": {"orders"}, "or": {"orders", "or", "organs"}, "": {"a", "b"}} {
		if got := common(names); got != want {
			t.Errorf("%v begin with %q, want %q", names, got, want)
		}
	}
	if got := literally(`a*b?[c]\`); got != `a\*b\?\[c\]\\` {
		t.Error(got)
	}
}

func TestPollOutOfRange(t *testing.T) {
	t.Parallel()
	for d, ok := range map[time.Duration]bool{10 * time.Millisecond: true, time.Minute: true, 10*time.Millisecond - 1: false, time.Minute + 1: false, -1: false} {
		var c Config
		if c.SetPoll("Poll", d); (c.Err == nil) != ok || c.Poll != d {
			t.Errorf("%v: %v", d, c.Err)
		}
	}
}
