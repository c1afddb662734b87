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
	"github.com/delayq/delayq/memory"
)

// Stopping is all that follows the end of Consume's context, or Close.
var stops = map[string]func(*testing.T, delayq.Queue, *running){
	"context": func(t *testing.T, _ delayq.Queue, r *running) { r.stop() },
	"Close": func(t *testing.T, q delayq.Queue, _ *running) {
		go func() { _ = q.Close() }()
	},
}

func TestStopWaitsForHandlers(t *testing.T) {
	cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		b := memory.New()
		q, witness := newQueue(t, delayq.WithBackend(b)), newQueue(t, delayq.WithBackend(b))
		for range 3 {
			push(t, q)
		}
		r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
			time.Sleep(20 * time.Second)
			return ctx.Err()
		}, delayq.Workers(2))
		time.Sleep(time.Second)
		began := time.Now()
		stop(t, q, r)
		must(t, <-r.done)
		if waited := time.Since(began); waited != 19*time.Second {
			t.Errorf("stopped within %v, want when the handlers were done", waited)
		}
		wantCounts(t, witness, delayq.Stats{Ready: 1})
	})
}

func TestDrainEndsHandlers(t *testing.T) {
	t.Parallel()
	for name, stop := range stops {
		for _, drain := range []time.Duration{0, 10 * time.Second} {
			t.Run(name+" "+drain.String(), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := memory.New()
					q, witness := newQueue(t, delayq.WithBackend(b)), newQueue(t, delayq.WithBackend(b))
					push(t, q, delayq.ID("gives up"))
					push(t, q, delayq.ID("finishes"))
					r := start(t, q, func(ctx context.Context, d *delayq.Delivery) error {
						<-ctx.Done()
						if errors.Is(context.Cause(ctx), delayq.ErrLeaseLost) {
							t.Errorf("cause %v although the lease is held", context.Cause(ctx))
						}
						if d.ID == "finishes" {
							time.Sleep(time.Second)
							return nil
						}
						return ctx.Err()
					}, delayq.Workers(2), delayq.Drain(drain), delayq.MaxAttempts(1))
					synctest.Wait()
					began := time.Now()
					stop(t, q, r)
					must(t, <-r.done)
					if waited := time.Since(began); waited != drain+time.Second {
						t.Errorf("stopped within %v, want the drain and a second", waited)
					}
					d := receive(t, witness)
					if d.ID != "gives up" || d.Attempt != 1 {
						t.Errorf("%v came back, want it untouched", d)
					}
					wantCounts(t, witness, delayq.Stats{InFlight: 1})
				})
			})
		}
	}
}

func TestHandlerThatIgnoresTheStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		q := newQueue(t, log.logger(), delayq.WithLease(time.Minute))
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
		d := receive(t, q)
		if d.Attempt != 2 {
			t.Errorf("attempt %d, want 2", d.Attempt)
		}
		close(finish)
		synctest.Wait()
		wantCounts(t, q, delayq.Stats{InFlight: 1})
		if !strings.Contains(log.String(), "settling failed") {
			t.Errorf("log does not tell that the late Ack failed: %s", log.String())
		}
	})
}

func TestStopWhileNobodyWorks(t *testing.T) {
	cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		q := newQueue(t)
		push(t, q, delayq.After(time.Hour))
		r := start(t, q, func(context.Context, *delayq.Delivery) error { return nil }, delayq.Workers(5))
		synctest.Wait()
		began := time.Now()
		stop(t, q, r)
		must(t, <-r.done)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("stopped within %v, want at once", waited)
		}
	})
}

func TestConsumeWithAnEndedContext(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	q := newQueue(t)
	push(t, q)
	must(t, q.Consume(ctx, func(context.Context, *delayq.Delivery) error { panic("called") }))
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
			start(t, q, func(context.Context, *delayq.Delivery) error { return errHandler }, delayq.Workers(3))
			go func() { _, _ = q.ReceiveBatch(t.Context(), 2) }()
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
				err := q.Consume(t.Context(), func(context.Context, *delayq.Delivery) error { return nil })
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
		r := start(t, q, func(context.Context, *delayq.Delivery) error { return nil })
		synctest.Wait()
		must(t, b.Close())
		must(t, <-r.done)
	})
}

// Messages that were taken when the stop came, and that no handler has seen.
func TestStopHandsBackTheUnseen(t *testing.T) {
	cases(t, stops, func(t *testing.T, stop func(*testing.T, delayq.Queue, *running)) {
		s := newSeam()
		taken, goOn := make(chan struct{}), make(chan struct{})
		s.after = func(op string) {
			if op == "receive" {
				close(taken)
				<-goOn
			}
		}
		q, witness := newQueue(t, s.option()), newQueue(t, delayq.WithBackend(s.Backend))
		for range 5 {
			push(t, q)
		}
		r := start(t, q, func(context.Context, *delayq.Delivery) error { panic("called") }, delayq.Workers(5))
		<-taken
		wantCounts(t, witness, delayq.Stats{InFlight: 5})
		stop(t, q, r)
		synctest.Wait()
		close(goOn)
		must(t, <-r.done)
		for range 5 {
			if d := receive(t, witness); d.Attempt != 1 {
				t.Errorf("%v came back, want it untouched", d)
			}
		}
	})
}

// With a store that does not reply, a stop takes its time, but ends.
func TestStopWhenTheStoreHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log journal
		s := newSeam()
		s.before = func(ctx context.Context, op string) error {
			if op == "nack" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		q := newQueue(t, s.option(), log.logger())
		for range 5 {
			push(t, q)
		}
		ctx, stop := context.WithCancel(t.Context())
		s.after = func(op string) {
			if op == "receive" {
				stop()
			}
		}
		must(t, q.Consume(ctx, func(context.Context, *delayq.Delivery) error { panic("called") }, delayq.Workers(5)))
		if !strings.Contains(log.String(), "settling failed") {
			t.Errorf("log does not tell of the messages: %s", log.String())
		}
	})
}
