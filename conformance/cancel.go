package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delayq/delayq/backend"
)

// Invariant 6: cancel is linearizable.
var cancelChecks = []Check{
	{
		Name: "cancel", Invariant: 6, needs: []backend.Feature{backend.Cancelling},
		Rule: "A cancelled message is never handed out, whether it was scheduled, due, or waiting for a retry; a second cancel returns ErrNotFound.",
		run:  cancelWaiting,
	},
	{
		Name: "cancel-in-flight", Invariant: 6, needs: []backend.Feature{backend.Cancelling},
		Rule: "Cancelling a message in flight returns ErrInFlight, and its worker keeps it.",
		run:  cancelInFlight,
	},
	{
		Name: "cancel-settled", Invariant: 6, needs: []backend.Feature{backend.Cancelling},
		Rule: "Cancelling a message that is done, dead or unknown returns ErrNotFound and changes nothing; where a store cannot see waiting messages, cancelling an unknown id returns nil, and the id can still be pushed.",
		run:  cancelSettled,
	},
	{
		Name: "cancel-race", Invariant: 6, needs: []backend.Feature{backend.Cancelling},
		Rule: "When Cancel and Receive race for a message, exactly one of them succeeds.",
		run:  cancelRace,
	},
}

func cancelWaiting(t *testRun) {
	scheduled, due := t.pushAfter(t.Tick), t.pushAfter(0)
	t.must(t.cancelID(scheduled), "cancelling a scheduled message")
	t.must(t.cancelID(due), "cancelling a message that is due")
	t.want(t.cancelID(due), backend.ErrNotFound, "cancelling a second time")
	t.nothing("it was cancelled")
	retried := t.pushAfter(0)
	t.nack(t.takeID(retried), t.Tick)
	t.must(t.cancelID(retried), "cancelling a message that waits for a retry")
	t.pass(2*t.Tick + t.lag())
	t.nothing("all were cancelled")
	t.push(backend.Message{ID: due, Body: []byte("again")})
	t.ack(t.takeID(due))
}

func cancelInFlight(t *testRun) {
	id := t.pushAfter(0)
	d := t.takeID(id)
	t.want(t.cancelID(id), backend.ErrInFlight, "cancelling a message in flight")
	t.nothing("it is in flight")
	t.nack(d, 0)
	d = t.takeID(id)
	t.want(t.cancelID(id), backend.ErrInFlight, "cancelling a message in flight again")
	t.ack(d)
}

func cancelSettled(t *testRun) {
	id := t.pushAfter(0)
	t.ack(t.takeID(id))
	t.want(t.cancelID(id), backend.ErrNotFound, "cancelling a message that is done")
	t.cancelUnknown()
	dead := t.pushAfter(0)
	t.must(t.deadLetter(t.takeID(dead), "of the check"), "Dead")
	t.want(t.cancelID(dead), backend.ErrNotFound, "cancelling a dead letter")
	if t.has(backend.Redriving) {
		t.must(outcome(t.q.DeleteDead(t.ctx, []string{dead})), "deleting the dead letter that could not be cancelled")
	}
}

func (t *testRun) cancelUnknown() {
	if t.has(backend.CancelNotFound) {
		t.want(t.cancelID("unknown"), backend.ErrNotFound, "cancelling an unknown id")
		return
	}
	t.must(t.cancelID("unknown"), "cancelling an unknown id where none can be seen")
	t.push(backend.Message{ID: "unknown", Body: []byte("pushed after the cancel")})
	t.ack(t.takeID("unknown"))
	t.want(t.cancelID("unknown"), backend.ErrNotFound, "cancelling a message that is done")
}

func cancelRace(t *testRun) {
	const n = 300
	t.record()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = t.pushAfter(0)
	}
	var ended atomic.Int64
	begun := make(chan struct{}) // else the workers may be done before the first cancel
	begin := sync.OnceFunc(func() { close(begun) })
	t.all(append(spread(2, func(i int) error {
		defer begin()
		for i := len(ids) - 1 - i; i >= 0; i -= 2 { // from the end: workers take from the start
			switch err := outcome(t.q.Cancel(t.ctx, ids[i:i+1])); {
			case err == nil:
				ended.Add(1)
				begin()
			case !errors.Is(err, backend.ErrInFlight) && !errors.Is(err, backend.ErrNotFound):
				return fmt.Errorf("cancelling: %w", err)
			}
		}
		return nil
	}), spread(2, func(int) error {
		<-begun
		return t.takeAllUntil(&ended, n)
	})...)...)
	t.judged("lost", "duplicated", "linearizable")
}

// takeAllUntil receives and acknowledges messages until n have ended and no more is handed out.
func (t *testRun) takeAllUntil(ended *atomic.Int64, n int64) error {
	for until := time.Now().Add(t.Patience); ; {
		wasOver := ended.Load() >= n || time.Now().After(until)
		ctx, cancel := context.WithTimeout(t.ctx, 4*t.Quiet)
		ds, err := t.q.Receive(ctx, 1, t.lease())
		cancel()
		switch {
		case errors.Is(err, context.DeadlineExceeded) && wasOver:
			return nil
		case errors.Is(err, context.DeadlineExceeded):
			continue
		case err != nil:
			return fmt.Errorf("receiving: %w", err)
		}
		ended.Add(1)
		if err := outcome(t.q.Ack(t.ctx, []backend.Lease{ds[0].Lease()})); err != nil {
			return fmt.Errorf("acknowledging: %w", err)
		}
	}
}
