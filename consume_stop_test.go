package delayq_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
	"github.com/delayq/delayq/memory"
)

// Stopping is all that follows the end of Consume's context, or Close.
var stops = map[string]func(*testing.T, delayq.Queue, *running){
	"context": func(t *testing.T, _ delayq.Queue, r *running) { r.stop() },
	"Close": func(t *testing.T, q delayq.Queue, _ *running) {
		go func() { _ = q.Close() }()
	},
}

// wantStop stops a consumer and checks how long that takes.
func wantStop(t *testing.T, q delayq.Queue, r *running, stop func(*testing.T, delayq.Queue, *running), want time.Duration) {
	t.Helper()
	began := time.Now()
	stop(t, q, r)
	must(t, <-r.done)
	if took := time.Since(began); took != want {
		t.Errorf("stopped within %v, want %v", took, want)
	}
}

func TestStopWaitsForHandlers(t *testing.T) {
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		q, witness := newPair(t, newSeam())
		pushMany(t, q, 3)
		r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
			time.Sleep(20 * time.Second)
			return ctx.Err()
		}, delayq.Workers(2))
		time.Sleep(time.Second)
		wantStop(t, q, r, stop, 19*time.Second)
		wantCounts(t, witness, delayq.Stats{Ready: 1})
	})
}

func TestDrainEndsHandlers(t *testing.T) {
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		for _, drain := range []time.Duration{0, 10 * time.Second} {
			var log journal
			q, witness := newPair(t, newSeam(), log.Logger())
			push(t, q, delayq.ID("gives up"))
			push(t, q, delayq.ID("finishes"))
			r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
				<-ctx.Done()
				if cause := context.Cause(ctx); !errors.Is(cause, delayq.ErrDrain) {
					t.Errorf("cause %v, want ErrDrain", cause)
				}
				if d.ID == "finishes" {
					time.Sleep(time.Second)
					return nil
				}
				return ctx.Err()
			}, delayq.Workers(2), delayq.Drain(drain), delayq.MaxAttempts(1))
			synctest.Wait()
			wantStop(t, q, r, stop, drain+time.Second)
			d := receive(t, witness)
			if d.ID != "gives up" || d.Attempt != 1 {
				t.Errorf("%v came back, want it untouched", d)
			}
			must(t, d.Ack(t.Context()))
			wantCounts(t, witness, delayq.Stats{})
			if warned := log.String() != ""; warned != (drain > 0) { // no time to drain needs no warning
				t.Errorf("with a drain of %v the log has %q", drain, log.String())
			}
		}
	})
}

func TestHandlerThatIgnoresTheStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		q := newQueue(t, log.Logger(), delayq.WithLease(time.Minute))
		push(t, q)
		finish := make(chan struct{})
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			<-finish
			return nil
		}, delayq.Drain(10*time.Second))
		synctest.Wait()
		began := time.Now()
		wantIs(t, r.end(), delayq.ErrDrain)
		if waited := time.Since(began); waited != 15*time.Second {
			t.Errorf("stopped within %v, want the drain and five seconds", waited)
		}
		wantCounts(t, q, delayq.Stats{InFlight: 1})
		time.Sleep(time.Minute) // until the lease ends, which is no longer renewed
		if d := receive(t, q); d.Attempt != 2 {
			t.Errorf("attempt %d, want 2", d.Attempt)
		}
		close(finish)
		synctest.Wait()
		wantCounts(t, q, delayq.Stats{InFlight: 1})
		log.Want(t, "settling failed")
	})
}

// The message of a handler that returns after Consume, within its lease, is settled.
func TestHandlerThatOutlivesConsume(t *testing.T) {
	type test struct {
		result error
		want   delayq.Stats
	}
	queuetest.Cases(t, map[string]test{
		"success": {nil, delayq.Stats{}},
		"failure": {errHandler, delayq.Stats{Ready: 1}},
	}, func(t *testing.T, tt test) {
		q := newQueue(t)
		push(t, q)
		finish := make(chan struct{})
		r := start(t, q, func(context.Context, *delayq.Delivery) error {
			<-finish
			return tt.result
		}, delayq.Drain(0))
		synctest.Wait()
		wantIs(t, r.end(), delayq.ErrDrain)
		close(finish)
		synctest.Wait()
		wantCounts(t, q, tt.want)
	})
}

func TestStopWhileNobodyWorks(t *testing.T) {
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		q := newQueue(t)
		push(t, q, delayq.After(time.Hour))
		r := start(t, q, returning(nil), delayq.Workers(5))
		synctest.Wait()
		wantStop(t, q, r, stop, 0)
	})
}

func TestConsumeWithAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	q := newQueue(t)
	push(t, q)
	must(t, q.Consume(ctx, unwanted))
	if d := receive(t, q); d.Attempt != 1 {
		t.Errorf("attempt %d, want 1", d.Attempt)
	}
}

func TestCloseFromManyGoroutines(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	push(t, q)
	var handled, consumed atomic.Bool
	began, finish := make(chan struct{}), make(chan struct{})
	go func() {
		err := q.Consume(context.WithoutCancel(t.Context()), func(context.Context, *delayq.Delivery) error {
			close(began)
			<-finish
			handled.Store(true)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		consumed.Store(true)
	}()
	<-began
	var closing sync.WaitGroup
	for range 10 {
		closing.Go(func() {
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			if !handled.Load() {
				t.Error("Close returned while the handler ran")
			}
		})
	}
	close(finish)
	closing.Wait()
	eventually(t, "Consume returns", consumed.Load)
}

// The bubble fails when a goroutine is left in it.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		q := newQueue(t)
		push(t, q)
		push(t, q, delayq.After(time.Hour))
		for range 3 {
			start(t, q, returning(errHandler), delayq.Workers(3))
			go func() {
				if _, err := q.ReceiveBatch(t.Context(), 2); err != nil && !errors.Is(err, delayq.ErrClosed) {
					t.Errorf("a Receive that waits ends with %v", err)
				}
			}()
		}
		time.Sleep(time.Minute)
		must(t, q.Close())
	})
}

// Consumers start while the queue closes: each runs until it is stopped, or is refused.
func TestConsumeRacesClose(t *testing.T) {
	t.Parallel()
	for range 50 {
		q := newQueue(t)
		push(t, q)
		var consuming sync.WaitGroup
		for range 4 {
			consuming.Go(func() {
				err := q.Consume(t.Context(), returning(nil))
				if err != nil && !errors.Is(err, delayq.ErrClosed) {
					t.Errorf("Consume: %v", err)
				}
			})
		}
		must(t, q.Close())
		consuming.Wait()
	}
}

// The backend is closed under the queue.
func TestConsumeEndsWithItsBackend(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := memory.New()
		q := newQueue(t, delayq.WithBackend(b))
		r := start(t, q, returning(nil))
		synctest.Wait()
		must(t, b.Close())
		must(t, <-r.done)
	})
}

// Messages that were taken when the stop came, and that no handler has seen.
func TestStopGivesBackTheUnseen(t *testing.T) {
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		s := newSeam()
		q, witness := newPair(t, s)
		pushMany(t, q, 5)
		s.slowReply("receive", time.Second)
		r := start(t, q, unwanted, delayq.Workers(5))
		synctest.Wait()
		wantCounts(t, witness, delayq.Stats{InFlight: 5})
		stop(t, q, r)
		must(t, <-r.done)
		ackUntouched(t, witness, 5)
	})
}

// With a store that does not reply, a stop takes its time, but ends.
func TestStopWhenTheStoreHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		s := newSeam()
		s.before = hanging("nack")
		q := newQueue(t, s.option(), log.Logger())
		pushMany(t, q, 5)
		ctx, stop := context.WithCancel(t.Context())
		s.after = func(op string) {
			if op == "receive" {
				stop()
			}
		}
		must(t, q.Consume(ctx, unwanted, delayq.Workers(5)))
		log.Want(t, "settling failed")
	})
}

func TestStopWaitsForAcks(t *testing.T) {
	queuetest.Cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		q, witness := newPair(t, newFar(slowAcks))
		pushMany(t, q, 6)
		r := start(t, q, returning(nil), delayq.Workers(2))
		synctest.Wait()
		wantCounts(t, witness, delayq.Stats{InFlight: 6})
		stop(t, q, r)
		must(t, <-r.done)
		wantCounts(t, witness, delayq.Stats{})
	})
}

// Messages came when the stop had begun, and the store does not take them back.
func TestCloseWhenNothingCanBeGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := newSeam()
		q := newQueue(t, s.option())
		s.before = hanging("nack")
		s.slowReply("receive", time.Second)
		pushMany(t, q, 5)
		r := start(t, q, unwanted, delayq.Workers(5), delayq.Drain(0))
		synctest.Wait()
		wantStop(t, q, r, stops["Close"], 5*time.Second)
	})
}

// A handler that has returned is none that ignores its context, though its message is not settled.
func TestStopWhileAnAckHangs(t *testing.T) {
	each(t, []int{0, 1000}, func(t *testing.T, prefetch int) {
		var log journal
		q := newQueue(t, newFar(hanging("ack")).option(), log.Logger())
		push(t, q)
		r := start(t, q, returning(nil), delayq.Prefetch(prefetch), delayq.Drain(time.Second))
		synctest.Wait()
		wantStop(t, q, r, stops["context"], 6*time.Second)
		if strings.Contains(log.String(), "handlers") {
			t.Errorf("no handler runs, and the log has %s", log.String())
		}
		log.Want(t, "stopped while messages are being settled", "messages=1")
		time.Sleep(time.Minute) // virtual: until the ack is given up
	})
}
