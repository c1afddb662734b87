package queue

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/internal/handle"
	"github.com/delayq/delayq/internal/redis/script"
)

// channel is the messages of a channel. No other method is called.
type channel struct{ Messages }

func (channel) Channel() string { return "wake" }

// With a trigger set for it, a due time is the trigger's to tell.
func TestWakeUpsBesideATrigger(t *testing.T) {
	t.Parallel()
	for _, triggered := range []bool{false, true} {
		for payload, wakes := range map[string]bool{"1700000000000": true, "1700000000000 trigger": !triggered, "x": false, "": false} {
			h := NewHub(nil, time.Second)
			h.triggered = triggered
			if due, ok := h.dueTime(payload); ok != wakes || ok && !due.Equal(time.UnixMilli(1_700_000_000_000)) {
				t.Errorf("triggered %t, %q: %v, %t", triggered, payload, due, ok)
			}
		}
	}
}

// A wake-up of a channel reaches the handle that waits there, and so does a subscription to it.
func TestEventsWake(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, time.Minute)
	h.running = true // no server
	claims := make(chan string)
	s := Source{Messages: channel{}, Claim: func(_ context.Context, _ int, _ time.Duration, name string) (script.Claim, error) {
		claims <- name
		return script.Claim{Now: time.Now()}, nil
	}}
	q := handle.New(s.named(), &h.Hub, nil, nil)
	defer func() { _ = q.Close() }()
	go func() { _, _ = q.Receive(t.Context(), 1, time.Minute) }()
	names := map[string]bool{<-claims: true}
	past := &redis.Message{Channel: "wake", Payload: "1700000000000"}
	for _, event := range []any{past, &redis.Subscription{Channel: "wake"}, past} {
		h.handle(event)
		names[<-claims] = true
	}
	if len(names) != 4 {
		t.Errorf("4 claims have %d names", len(names))
	}
	for _, event := range []any{&redis.Message{Channel: "other", Payload: "1700000000000"}, &redis.Subscription{Channel: "other"}, &redis.Pong{}} {
		h.handle(event)
	}
	select {
	case <-claims:
		t.Error("another channel's event wakes")
	case <-time.After(20 * time.Millisecond): // of another channel nothing comes, however long one waits
	}
}

// Where a trigger will wake the handle, a claim's next event does not. One that is over does.
func TestNextEventBesideATrigger(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	for _, tt := range []struct {
		triggered bool
		next      time.Time
		keeps     bool
	}{{false, now.Add(time.Second), true}, {true, now.Add(time.Second), false}, {true, now, true}, {true, now.Add(-time.Second), true}} {
		s := Source{Messages: channel{}, Triggered: tt.triggered, Claim: func(context.Context, int, time.Duration, string) (script.Claim, error) {
			return script.Claim{Now: now, Next: tt.next}, nil
		}}
		c, err := s.named().Claim(t.Context(), 1, time.Minute)
		if err != nil || !c.Now.Equal(now) || c.Next.Equal(tt.next) != tt.keeps || !tt.keeps && !c.Next.IsZero() {
			t.Errorf("%+v: got %+v, %v", tt, c, err)
		}
	}
}
