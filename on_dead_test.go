package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/queuetest"
)

// A deadCall is a call of OnDead.
type deadCall struct {
	d      *delayq.Delivery
	reason string
	cause  error
}

// onDead notes the calls of OnDead, which come from one worker in these tests.
func onDead(all *[]deadCall) delayq.ConsumeOption {
	return delayq.OnDead(func(ctx context.Context, d *delayq.Delivery, reason string, cause error) {
		if ctx.Err() != nil {
			panic("the context of OnDead has ended")
		}
		*all = append(*all, deadCall{d, reason, cause})
	})
}

func TestOnDead(t *testing.T) {
	type test struct {
		handler delayq.Handler
		opts    []delayq.PushOption
		option  delayq.ConsumeOption
		cause   error // nil: OnDead is not called
		reason  string
	}
	long := errors.New(strings.Repeat("x", backend.MaxReason+10))
	queuetest.Cases(t, map[string]test{
		"last attempt":        {handler: returning(errHandler), option: delayq.MaxAttempts(3), cause: errHandler, reason: errHandler.Error()},
		"ErrDeadLetter":       {handler: returning(fmt.Errorf("%w: no order", delayq.ErrDeadLetter)), cause: delayq.ErrDeadLetter, reason: "message cannot be handled: no order"},
		"timeout":             {handler: obeying, opts: []delayq.PushOption{delayq.Attempts(1), delayq.HandlerTimeout(time.Second)}, cause: delayq.ErrTimeout, reason: "handler took too long (1s): context canceled"},
		"expired":             {handler: unwanted, opts: []delayq.PushOption{delayq.ExpiresAfter(time.Second), delayq.DeadLetterExpired()}, cause: delayq.ErrExpired, reason: delayq.ErrExpired.Error()},
		"long reason":         {handler: returning(long), option: delayq.MaxAttempts(1), cause: long, reason: long.Error()[:backend.MaxReason]},
		"success":             {handler: returning(nil)},
		"failure":             {handler: returning(errHandler), option: delayq.Retry(delayq.Delays{24 * time.Hour})},
		"drop":                {handler: returning(delayq.ErrDrop)},
		"expired, dropped":    {handler: unwanted, opts: []delayq.PushOption{delayq.ExpiresAfter(time.Second)}},
		"dead by its handler": {handler: func(ctx context.Context, d *delayq.Delivery) error { return d.DeadLetter(ctx, "my reason") }},
	}, func(t *testing.T, tt test) {
		q := newQueue(t)
		id := push(t, q, tt.opts...)
		time.Sleep(time.Minute)
		var all []deadCall
		opts := []delayq.ConsumeOption{onDead(&all)}
		if tt.option != nil {
			opts = append(opts, tt.option)
		}
		consume(t, q, time.Hour, tt.handler, opts...)
		if tt.cause == nil {
			if len(all) != 0 {
				t.Errorf("OnDead was called with %+v", all)
			}
			return
		}
		if len(all) != 1 || all[0].d.ID != id || string(all[0].d.Body) != "body" || all[0].reason != tt.reason || !errors.Is(all[0].cause, tt.cause) {
			t.Fatalf("OnDead was called with %+v, want one call with %q", all, tt.reason)
		}
		wantIs(t, all[0].d.Ack(t.Context()), delayq.ErrSettled)
		if letters := deadLetters(t, q); len(letters) != 1 || letters[0].Reason != tt.reason {
			t.Errorf("dead letters %+v", letters)
		}
	})
}

// A message that no worker settled is reported too.
func TestOnDeadOfAnAbandonedMessage(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t, delayq.WithLease(time.Minute))
		push(t, q)
		receive(t, q)
		time.Sleep(time.Minute)
		var all []deadCall
		consume(t, q, time.Hour, unwanted, onDead(&all), delayq.MaxAttempts(1))
		if len(all) != 1 || !strings.HasPrefix(all[0].reason, "1 attempts ended") || all[0].cause.Error() != all[0].reason {
			t.Errorf("OnDead was called with %+v", all)
		}
	})
}

// OnDead is called once the store has confirmed it, and not before.
func TestOnDeadWaitsForTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		s.before = once("dead")
		q := newQueue(t, s.option(), delayq.WithLease(time.Minute))
		push(t, q)
		var all []deadCall
		consume(t, q, 30*time.Second, returning(errHandler), onDead(&all), delayq.MaxAttempts(1))
		if len(all) != 0 {
			t.Errorf("OnDead was called with %+v, and the store has failed", all)
		}
		consume(t, q, time.Hour, unwanted, onDead(&all), delayq.MaxAttempts(1))
		if len(all) != 1 {
			t.Errorf("OnDead was called with %+v, want one call", all)
		}
	})
}

// The worker goes on when OnDead panics or ends its goroutine.
func TestBadOnDead(t *testing.T) {
	type test struct {
		end  func()
		logs string
	}
	queuetest.Cases(t, map[string]test{
		"panics": {func() { panic("a bad hook") }, "OnDead panicked"},
		"exits":  {runtime.Goexit, "message is dead"},
	}, func(t *testing.T, tt test) {
		var log journal
		q := newQueue(t, log.Logger())
		pushMany(t, q, 3)
		calls := 0
		consume(t, q, time.Hour, returning(errHandler), delayq.MaxAttempts(1),
			delayq.OnDead(func(context.Context, *delayq.Delivery, string, error) { calls++; tt.end() }))
		if calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
		log.Want(t, tt.logs)
		wantCounts(t, q, delayq.Stats{Dead: 3})
	})
}

// A stop waits for OnDead as for a handler. Its context ends after 30 seconds.
func TestStopWaitsForOnDead(t *testing.T) {
	type test struct {
		takes time.Duration
		want  error
	}
	queuetest.Cases(t, map[string]test{
		"in time":   {5 * time.Second, nil},
		"too long":  {time.Hour, delayq.ErrDrain},
		"by itself": {0, nil}, // when its context ends
	}, func(t *testing.T, tt test) {
		q := newQueue(t)
		push(t, q)
		var ended time.Duration
		r := start(t, q, returning(errHandler), delayq.MaxAttempts(1), delayq.Drain(time.Minute),
			delayq.OnDead(func(ctx context.Context, _ *delayq.Delivery, _ string, _ error) {
				began := time.Now()
				if tt.takes > 0 {
					time.Sleep(tt.takes)
				} else {
					<-ctx.Done()
				}
				ended = time.Since(began)
			}))
		time.Sleep(time.Second)
		if err := r.end(); !errors.Is(err, tt.want) || tt.want == nil && err != nil {
			t.Errorf("Consume returns %v, want %v", err, tt.want)
		}
		if tt.takes == 0 && ended != 30*time.Second {
			t.Errorf("the context ended after %v", ended)
		}
		time.Sleep(time.Hour)
	})
}
