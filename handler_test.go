package delayq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// handlerErrors are the sentinels that pass between Consume and a handler, each with its effect on
// a message.
var handlerErrors = map[string]func(*testing.T, delayq.Queue, *journal){
	"ErrDrop": func(t *testing.T, q delayq.Queue, log *journal) {
		consume(t, q, time.Hour, returning(fmt.Errorf("no such order: %w", delayq.ErrDrop)))
		wantCounts(t, q, delayq.Stats{})
		log.Want(t, "handler dropped the message", "no such order")
	},
	"ErrExpired": func(t *testing.T, q delayq.Queue, _ *journal) {
		push(t, q, delayq.ExpiresAfter(time.Second), delayq.DeadLetterExpired())
		time.Sleep(time.Minute)
		var all []deadCall
		consume(t, q, time.Hour, returning(nil), onDead(&all))
		if len(all) != 1 || all[0].cause != delayq.ErrExpired {
			t.Errorf("OnDead was called with %+v", all)
		}
	},
	"ErrDeadLetter": func(t *testing.T, q delayq.Queue, log *journal) {
		consume(t, q, time.Hour, returning(fmt.Errorf("no such order: %w", delayq.ErrDeadLetter)))
		wantCounts(t, q, delayq.Stats{Dead: 1})
		if l := deadLetters(t, q)[0]; l.Attempts != 1 || !strings.Contains(l.Reason, "no such order") {
			t.Errorf("dead letter %+v, want it after the first attempt, with the reason", l)
		}
		log.Want(t, "message is dead")
	},
	"ErrTimeout": func(t *testing.T, q delayq.Queue, log *journal) {
		var cause error
		consume(t, q, time.Hour, func(ctx context.Context, d *delayq.Delivery) error {
			if d.Attempt > 1 {
				return nil
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}, delayq.Timeout(time.Minute))
		if !errors.Is(cause, delayq.ErrTimeout) {
			t.Errorf("the context ended with %v, want ErrTimeout", cause)
		}
		wantCounts(t, q, delayq.Stats{})
		log.Want(t, "handler failed", "handler took too long (1m0s)", "retry=")
	},
}

func TestHandlerErrors(t *testing.T) {
	queuetest.Cases(t, handlerErrors, func(t *testing.T, check func(*testing.T, delayq.Queue, *journal)) {
		var log journal
		q := newQueue(t, log.Logger())
		push(t, q)
		check(t, q, &log)
	})
}

func returning(err error) delayq.Handler {
	return func(context.Context, *delayq.Delivery) error { return err }
}

// unwanted is a handler that nothing may call.
func unwanted(context.Context, *delayq.Delivery) error { panic("called") }

// The error says when, wherever it is wrapped, and attempts are limited all the same.
func TestRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		var at []time.Time
		began := time.Now()
		consume(t, q, time.Hour, func(context.Context, *delayq.Delivery) error {
			at = append(at, time.Now())
			return fmt.Errorf("calling: %w", delayq.RetryAfter(errHandler, 7*time.Minute))
		}, delayq.MaxAttempts(3))
		for i, when := range at {
			if want := time.Duration(i) * 7 * time.Minute; when.Sub(began) != want {
				t.Errorf("attempt %d after %v, want %v", i+1, when.Sub(began), want)
			}
		}
		wantCounts(t, q, delayq.Stats{Dead: 1})
		if l := deadLetters(t, q)[0]; l.Attempts != 3 || l.Reason != "calling: "+errHandler.Error() {
			t.Errorf("dead letter %+v", l)
		}
	})
}

// An absurd delay costs the message no more than one from a policy does.
func TestRetryAfterAbsurd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		q := newQueue(t, log.Logger())
		push(t, q)
		consume(t, q, time.Second, func(_ context.Context, d *delayq.Delivery) error {
			if d.Attempt == 1 {
				return delayq.RetryAfter(nil, -time.Hour)
			}
			return nil
		})
		wantCounts(t, q, delayq.Stats{})
		log.Want(t, "invalid delay -1h0m0s", "retry after -1h0m0s")
	})
}

func TestDelays(t *testing.T) {
	t.Parallel()
	ds := delayq.Delays{time.Second, time.Minute, time.Hour}
	for attempt, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: time.Minute, 3: time.Hour, 4: time.Hour, 1 << 30: time.Hour} {
		if got := ds.Delay(attempt, nil); got != want {
			t.Errorf("attempt %d waits %v, want %v", attempt, got, want)
		}
	}
}
