package redis_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// one is a queue with one message.
type one struct {
	ctx context.Context //nolint:containedctx // the test's: every call takes it
	b   backend.Backend
	q   backend.Queue
	ids []string // of the message
	d   backend.Delivery
}

func (o *one) push() error {
	ms := []backend.Message{{ID: "a", Body: []byte("body of a")}}
	err := errors.Join(o.q.Schedule(o.ctx, ms)...)
	o.ids = []string{ms[0].ID}
	return err
}

func (o *one) receive(lease time.Duration) error {
	ds, err := o.q.Receive(o.ctx, 1, lease)
	if err != nil || len(ds) != 1 || string(ds[0].Body) != "body of a" {
		return fmt.Errorf("got %+v, %w", ds, err)
	}
	o.d = ds[0]
	return nil
}

func (o *one) dead() error {
	return errors.Join(o.q.Dead(o.ctx, []backend.DeadLetterRequest{{Lease: o.d.Lease(), Reason: "r"}})...)
}

// verbs run every script, each with its effect on one message.
var verbs = []struct {
	name string
	do   func(*one) error
}{
	{"push", (*one).push},
	{"reschedule", func(o *one) error { return errors.Join(o.q.Reschedule(o.ctx, []backend.Move{{ID: o.ids[0]}})...) }},
	{"receive", func(o *one) error { return o.receive(time.Minute) }},
	{"extend", func(o *one) error {
		_, errs := o.q.Extend(o.ctx, []backend.Lease{o.d.Lease()}, time.Minute)
		return errors.Join(errs...)
	}},
	{"nack", func(o *one) error { return errors.Join(o.q.Nack(o.ctx, []backend.Return{{Lease: o.d.Lease()}})...) }},
	{"receive again", func(o *one) error { return o.receive(time.Minute) }},
	{"dead", (*one).dead},
	{"list", func(o *one) error {
		ls, _, err := o.q.ListDead(o.ctx, "", 10)
		if err == nil && (len(ls) != 1 || ls[0].ID != o.ids[0] || ls[0].Reason != "r" || string(ls[0].Body) != "body of a") {
			err = fmt.Errorf("dead letters %+v", ls)
		}
		return err
	}},
	{"redrive", func(o *one) error { return errors.Join(o.q.Redrive(o.ctx, o.ids)...) }},
	{"stats", func(o *one) error {
		st, err := o.q.Stats(o.ctx)
		if err == nil && st.Ready != 1 {
			err = fmt.Errorf("stats %+v", st)
		}
		return err
	}},
	{"get", func(o *one) error {
		ms, errs := o.q.Get(o.ctx, o.ids)
		if errs == nil && ms[0].State != backend.StateReady {
			return fmt.Errorf("message %+v", ms[0])
		}
		return errors.Join(errs...)
	}},
	{"peek", func(o *one) error {
		page, _, err := o.q.Peek(o.ctx, "", 10)
		if err == nil && len(page) != 1 {
			err = fmt.Errorf("%d messages wait", len(page))
		}
		return err
	}},
	// a lease that is over when the reply comes goes to no Receive
	{"a lease ends", func(o *one) error { return errors.Join(o.receive(300*time.Millisecond), o.receive(time.Minute)) }},
	{"dead again", (*one).dead},
	{"delete", func(o *one) error { return errors.Join(o.q.DeleteDead(o.ctx, o.ids)...) }},
	{"push to cancel", (*one).push},
	{"cancel", func(o *one) error { return errors.Join(o.q.Cancel(o.ctx, o.ids)...) }},
	{"push to purge", (*one).push},
	{"purge", func(o *one) error { _, err := o.q.Purge(o.ctx); return err }},
	{"push once more", (*one).push},
	{"pending", func(o *one) error {
		if b, ok := o.b.(*redisson.Backend); ok {
			_, _, err := b.Pending(o.ctx, "orders", "", 10)
			return err
		}
		return nil
	}},
	{"receive to ack", func(o *one) error { return o.receive(time.Minute) }},
	{"ack", func(o *one) error { return errors.Join(o.q.Ack(o.ctx, []backend.Lease{o.d.Lease()})...) }},
}

// TestScriptsFlushed has the server forget all scripts before each call, and then all the time.
func TestScriptsFlushed(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		client := testenv.Redis(t, testenv.Private()).Client(t)
		b := s.open(client)
		o := &one{ctx: redistest.Deadline(t), b: b, q: openQueue(t, b)}
		run := func(before func()) {
			for _, v := range verbs {
				before()
				if err := v.do(o); err != nil {
					t.Fatalf("%s: %v", v.name, err)
				}
			}
		}
		run(func() { must(t, client.ScriptFlush(o.ctx).Err()) })
		empty(t, client)
		ctx, cancel := context.WithCancel(o.ctx)
		var flushes sync.WaitGroup
		flushes.Go(func() {
			for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
				_ = client.ScriptFlush(ctx).Err() // it fails at the end
			}
		})
		for range 10 {
			run(func() {})
		}
		cancel()
		flushes.Wait()
		empty(t, client)
	})
}
