package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
)

// calls are every script, each with its effect on one message.
var calls = []struct {
	name string
	do   func(*bench, *backend.Delivery) error
}{
	{"schedule", func(b *bench, _ *backend.Delivery) error {
		return errors.Join(b.Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("body of a")}})...)
	}},
	{"reschedule", func(b *bench, _ *backend.Delivery) error {
		return errors.Join(b.Reschedule(b.ctx, []backend.Move{{ID: "a"}})...)
	}},
	{"claim", func(b *bench, d *backend.Delivery) error { *d = b.next(b.Claim, time.Minute, "a"); return nil }},
	{"extend", func(b *bench, d *backend.Delivery) error {
		_, errs := b.Extend(b.ctx, []backend.Lease{d.Lease()}, time.Minute)
		return errors.Join(errs...)
	}},
	{"nack", func(b *bench, d *backend.Delivery) error {
		return errors.Join(b.Nack(b.ctx, []backend.Return{{Lease: d.Lease()}})...)
	}},
	{"move and take", func(b *bench, d *backend.Delivery) error { *d = b.next(b.MoveAndTake, time.Minute, "a"); return nil }},
	{"dead", func(b *bench, d *backend.Delivery) error {
		return errors.Join(b.Dead(b.ctx, []backend.Burial{{Lease: d.Lease()}})...)
	}},
	{"list", func(b *bench, _ *backend.Delivery) error {
		ls, _, err := b.ListDead(b.ctx, "", 10)
		if err == nil && len(ls) != 1 {
			err = fmt.Errorf("%d dead letters", len(ls))
		}
		return err
	}},
	{"redrive", func(b *bench, _ *backend.Delivery) error { return errors.Join(b.Redrive(b.ctx, []string{"a"})...) }},
	{"stats", func(b *bench, _ *backend.Delivery) error {
		st, err := b.Stats(b.ctx)
		if err == nil && st.Ready != 1 {
			err = fmt.Errorf("stats %+v", st)
		}
		return err
	}},
	{"arbitrate, lease ends", func(b *bench, d *backend.Delivery) error {
		*d = b.next(b.Arbitrate, time.Millisecond, "a")
		*d = b.next(b.Arbitrate, time.Minute, "a")
		return nil
	}},
	{"dead again", func(b *bench, d *backend.Delivery) error {
		return errors.Join(b.Dead(b.ctx, []backend.Burial{{Lease: d.Lease()}})...)
	}},
	{"delete", func(b *bench, _ *backend.Delivery) error { return errors.Join(b.DeleteDead(b.ctx, []string{"a"})...) }},
	{"schedule again", func(b *bench, _ *backend.Delivery) error {
		return errors.Join(b.Schedule(b.ctx, []backend.Message{{ID: "a"}})...)
	}},
	{"cancel", func(b *bench, _ *backend.Delivery) error { return errors.Join(b.Cancel(b.ctx, []string{"a"})...) }},
	{"schedule once more", func(b *bench, _ *backend.Delivery) error {
		return errors.Join(b.Schedule(b.ctx, []backend.Message{{ID: "a", Body: []byte("body of a")}})...)
	}},
	{"ack", func(b *bench, _ *backend.Delivery) error { b.ack(b.next(b.Claim, time.Minute, "a")); return nil }},
}

// TestScriptFlush forgets all scripts before each call.
func TestScriptFlush(t *testing.T) {
	t.Parallel()
	b := on(t, testenv.Redis(t, testenv.Private()))
	var d backend.Delivery
	for _, c := range calls {
		if err := b.raw.ScriptFlush(b.ctx).Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.do(b, &d); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
	}
	b.empty()
}

// TestScriptsFlushedAllTheTime forgets them while calls are under way, too.
func TestScriptsFlushedAllTheTime(t *testing.T) {
	t.Parallel()
	b := on(t, testenv.Redis(t, testenv.Private()))
	ctx, cancel := context.WithCancel(b.ctx)
	var flushes sync.WaitGroup
	flushes.Go(func() { flush(ctx, b.raw) })
	for range 10 {
		var d backend.Delivery
		for _, c := range calls {
			if err := c.do(b, &d); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	cancel()
	flushes.Wait()
	b.empty()
}

func flush(ctx context.Context, client *redis.Client) {
	for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
		_ = client.ScriptFlush(ctx).Err() // it fails at the end
	}
}
