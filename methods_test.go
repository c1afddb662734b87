package delayq_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/internal/queuetest"
)

// methods are all that take a context, each called so that it would succeed.
var methods = map[string]func(*scene, context.Context) error{
	"Queue.Push": pushing(),
	"Queue.PushBatch": func(s *scene, ctx context.Context) error {
		_, err := s.PushBatch(ctx, make([]delayq.Message, 2))
		return err
	},
	"Queue.Cancel": func(s *scene, ctx context.Context) error { return s.Cancel(ctx, "scheduled") },
	"Queue.Reschedule": func(s *scene, ctx context.Context) error {
		return s.Reschedule(ctx, "scheduled", time.Now())
	},
	"Queue.RescheduleAfter": func(s *scene, ctx context.Context) error {
		return s.RescheduleAfter(ctx, "scheduled", time.Minute)
	},
	"Queue.CancelBatch": func(s *scene, ctx context.Context) error { return s.CancelBatch(ctx, []string{"scheduled"}) },
	"Queue.RescheduleBatch": func(s *scene, ctx context.Context) error {
		return s.RescheduleBatch(ctx, []delayq.Move{{ID: "scheduled"}})
	},
	"Queue.Receive": func(s *scene, ctx context.Context) error {
		_, err := s.Receive(ctx)
		return err
	},
	"Queue.ReceiveBatch": receivingBatch(2),
	"Queue.AckBatch":     func(s *scene, ctx context.Context) error { return s.AckBatch(ctx, []*delayq.Delivery{s.held}) },
	"Queue.NackBatch": func(s *scene, ctx context.Context) error {
		return s.NackBatch(ctx, []*delayq.Delivery{s.held}, 0)
	},
	"Queue.ReleaseBatch": func(s *scene, ctx context.Context) error {
		return s.ReleaseBatch(ctx, []*delayq.Delivery{s.held})
	},
	"Queue.DeadLetterBatch": func(s *scene, ctx context.Context) error {
		return s.DeadLetterBatch(ctx, []*delayq.Delivery{s.held}, "a reason")
	},
	"Queue.ExtendBatch": func(s *scene, ctx context.Context) error {
		return s.ExtendBatch(ctx, []*delayq.Delivery{s.held}, time.Minute)
	},
	"Queue.Consume": consuming(),
	"Queue.Stats": func(s *scene, ctx context.Context) error {
		_, err := s.Stats(ctx)
		return err
	},
	"Queue.Get": func(s *scene, ctx context.Context) error {
		_, err := s.Get(ctx, "scheduled")
		return err
	},
	"Queue.GetBatch": getting("scheduled", "dead"),
	"Queue.Peek":     peeking("", 1),
	"Queue.Purge": func(s *scene, ctx context.Context) error {
		_, err := s.Purge(ctx)
		return err
	},
	"Queue.PauseAll":   pausing(),
	"Queue.ResumeAll":  func(s *scene, ctx context.Context) error { return s.ResumeAll(ctx) },
	"DeadLetters.List": listing("", 1),
	"DeadLetters.All": func(s *scene, ctx context.Context) error {
		for _, err := range s.Dead().All(ctx) {
			return err
		}
		return nil
	},
	"DeadLetters.Redrive": func(s *scene, ctx context.Context) error { return s.Dead().Redrive(ctx, "dead") },
	"DeadLetters.RedriveAll": func(s *scene, ctx context.Context) error {
		_, err := s.Dead().RedriveAll(ctx)
		return err
	},
	"DeadLetters.RedriveWhere": func(s *scene, ctx context.Context) error {
		_, err := s.Dead().RedriveWhere(ctx, delayq.DeadFilter{ReasonPrefix: "a"})
		return err
	},
	"DeadLetters.DeleteWhere": func(s *scene, ctx context.Context) error {
		_, err := s.Dead().DeleteWhere(ctx, delayq.DeadFilter{ReasonPrefix: "a"})
		return err
	},
	"DeadLetters.Trim": func(s *scene, ctx context.Context) error {
		_, err := s.Dead().Trim(ctx, time.Hour, 0)
		return err
	},
	"DeadLetters.Delete":  func(s *scene, ctx context.Context) error { return s.Dead().Delete(ctx, "dead") },
	"Delivery.Ack":        func(s *scene, ctx context.Context) error { return s.held.Ack(ctx) },
	"Delivery.Nack":       func(s *scene, ctx context.Context) error { return s.held.Nack(ctx, 0) },
	"Delivery.Release":    func(s *scene, ctx context.Context) error { return s.held.Release(ctx) },
	"Delivery.Extend":     func(s *scene, ctx context.Context) error { return s.held.Extend(ctx, time.Minute) },
	"Delivery.DeadLetter": func(s *scene, ctx context.Context) error { return s.held.DeadLetter(ctx, "a reason") },
}

// settles are the methods that settle a delivery.
var settles = map[string]bool{
	"Delivery.Ack": true, "Delivery.Nack": true, "Delivery.Release": true, "Delivery.DeadLetter": true,
	"Queue.AckBatch": true, "Queue.NackBatch": true, "Queue.ReleaseBatch": true, "Queue.DeadLetterBatch": true,
}

// A method that is added has to be added to the tests below.
func TestMethodsAreAll(t *testing.T) {
	t.Parallel()
	takesContext := func(f reflect.Type) bool {
		for i := range f.NumIn() {
			if f.In(i) == reflect.TypeFor[context.Context]() {
				return true
			}
		}
		return false
	}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[delayq.Queue](), reflect.TypeFor[*delayq.Delivery](), reflect.TypeFor[delayq.DeadLetters](),
	} {
		name := typ.Name()
		if name == "" {
			name = typ.Elem().Name()
		}
		for i := range typ.NumMethod() {
			m := typ.Method(i)
			if key := name + "." + m.Name; takesContext(m.Type) && methods[key] == nil && !slices.Contains(deprecated, key) {
				t.Errorf("%s is not tested", key)
			}
		}
	}
}

func TestNilContextIsRefused(t *testing.T) {
	var none context.Context
	queuetest.Cases(t, methods, func(t *testing.T, call func(*scene, context.Context) error) {
		s := newScene(t)
		s.wantUnchanged(t, func() { wantInvalid(t, call(s, none), "context", "nil") })
	})
	_, err := delayq.New(none, "orders")
	wantInvalid(t, err, "context", "nil")
	_, err = delayq.Open(none, "memory:///orders")
	wantInvalid(t, err, "context", "nil")
	q := newQueue(t)
	_, err = q.PushBatch(none, nil)
	wantInvalid(t, err, "context", "nil")
	wantInvalid(t, q.AckBatch(none, nil), "context", "nil")
}

func TestClosedQueueReturnsErrClosed(t *testing.T) {
	queuetest.Cases(t, methods, func(t *testing.T, call func(*scene, context.Context) error) {
		s := newScene(t)
		must(t, s.Close())
		wantIs(t, call(s, t.Context()), delayq.ErrClosed)
	})
}

func TestEndedContextChangesNothing(t *testing.T) {
	t.Parallel()
	for name, call := range methods {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended, end := context.WithCancel(t.Context())
			end()
			s := newScene(t)
			s.wantUnchanged(t, func() {
				err := call(s, ended)
				if name == "Queue.Consume" { // which the end of its context stops, without an error
					must(t, err)
					return
				}
				wantIs(t, err, context.Canceled)
			})
		})
	}
}
