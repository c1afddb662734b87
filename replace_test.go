package delayq_test

import (
	"testing"
	"time"

	"github.com/jonboulle/clockwork"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
)

// TestReplaceKeepsFirstPushThroughNackHeaders also wants the header to be hidden wherever a message is
// shown.
func TestReplaceKeepsFirstPushThroughNackHeaders(t *testing.T) {
	t.Parallel()
	clock := clockwork.NewFakeClock()
	q := newQueue(t, delayq.WithClock(clock))
	debounced := []delayq.PushOption{delayq.ID("a"), delayq.After(time.Minute), delayq.Replace(), delayq.MaxWait(3 * time.Minute)}
	push(t, q, append(debounced, delayq.Attempts(7))...)
	first := clock.Now()
	if m, err := q.Get(t.Context(), "a"); err != nil || m.Headers != nil || m.Limits == nil {
		t.Errorf("got %+v, %v", m, err)
	}
	clock.Advance(time.Minute)
	d := receive(t, q)
	if d.Headers != nil || d.Limits().Attempts != 7 {
		t.Errorf("the headers are %v, the limits %+v", d.Headers, d.Limits())
	}
	must(t, d.Nack(t.Context(), time.Minute, delayq.NackHeaders(map[string]string{"k": "v"})))
	clock.Advance(time.Second)
	push(t, q, delayq.ID("a"), delayq.After(time.Hour), delayq.Replace(), delayq.MaxWait(3*time.Minute))
	m, err := q.Get(t.Context(), "a")
	if err != nil || !m.Due.Equal(first.Add(3*time.Minute)) || m.Headers != nil || m.Limits != nil || m.Attempts != 0 {
		t.Errorf("got %+v, %v; want one that is due three minutes after the first push, %v", m, err, first)
	}
}

func TestReplaceHasNewLimits(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	push(t, q, delayq.ID("a"), delayq.Attempts(7), delayq.Header("k", "old"))
	push(t, q, delayq.ID("a"), delayq.HandlerTimeout(time.Hour), delayq.Replace())
	if d := receive(t, q); d.Limits() != (delayq.Limits{HandlerTimeout: time.Hour}) || d.Headers != nil {
		t.Errorf("got the limits %+v and headers %v", d.Limits(), d.Headers)
	}
}

// TestReplaceInFlightOrDead wants the errors of the root, which name the message.
func TestReplaceInFlightOrDead(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	push(t, q, delayq.ID("a"))
	d := receive(t, q)
	_, err := q.Push(t.Context(), nil, delayq.ID("a"), delayq.Replace())
	wantIs(t, err, delayq.ErrInFlight)
	must(t, d.DeadLetter(t.Context(), "of the test"))
	_, err = q.PushBatch(t.Context(), []delayq.Message{{ID: "a", Replace: true}})
	wantIs(t, err, delayq.ErrDuplicate)
	wantIs(t, err, backend.ErrDuplicate)
}

// TestReplaceAfterInFlight has a handler fail, and wants the message that was pushed meanwhile, with
// limits and headers of its own, instead of a retry or a dead letter.
func TestReplaceAfterInFlight(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]func(d *delayq.Delivery) error{
		"ack":  func(d *delayq.Delivery) error { return d.Ack(t.Context()) },
		"nack": func(d *delayq.Delivery) error { return d.Nack(t.Context(), time.Hour) },
		"dead": func(d *delayq.Delivery) error { return d.DeadLetter(t.Context(), "of the test") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := clockwork.NewFakeClock()
			q := newQueue(t, delayq.WithClock(clock))
			push(t, q, delayq.ID("a"), delayq.Attempts(7), delayq.Header("k", "old"))
			d := receive(t, q)
			push(t, q, delayq.ID("a"), delayq.After(time.Minute), delayq.HandlerTimeout(time.Hour), delayq.ReplaceAfterInFlight())
			if m, err := q.Get(t.Context(), "a"); err != nil || m.State != delayq.StateInFlight || m.Attempts != 0 || m.Headers != nil {
				t.Errorf("got %+v, %v", m, err)
			}
			must(t, settle(d))
			clock.Advance(time.Minute)
			next := receive(t, q)
			if next.Attempt != 1 || next.Headers != nil || next.Limits() != (delayq.Limits{HandlerTimeout: time.Hour}) {
				t.Errorf("got attempt %d, headers %v, limits %+v", next.Attempt, next.Headers, next.Limits())
			}
			must(t, next.Ack(t.Context()))
			if s, err := q.Stats(t.Context()); err != nil || s.Scheduled+s.Ready+s.InFlight+s.Dead != 0 {
				t.Errorf("left: %+v, %v", s, err)
			}
		})
	}
}
