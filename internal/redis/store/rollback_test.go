package store_test

import (
	"testing"
	"time"
)

// remember saves the queue's keys and returns a function that restores them. A server rolls back
// like that when it lost writes that were not on its disk, or when a replica took over.
func (b *bench) remember() (setBack func()) {
	b.t.Helper()
	kept := make(map[string]string)
	for _, key := range b.left() {
		value, err := b.raw.Dump(b.ctx, key).Result()
		must(b.t, err)
		kept[key] = value
	}
	return func() {
		b.t.Helper()
		must(b.t, b.raw.Del(b.ctx, b.left()...).Err())
		for key, value := range kept {
			must(b.t, b.raw.Restore(b.ctx, key, 0, value).Err())
		}
	}
}

func TestTokenOfAForgottenLease(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, way := range ways(b.Store) {
		b.push(name)
		setBack := b.remember()
		forgotten := b.next(way, time.Minute, name)
		setBack()
		second := b.next(way, 2*time.Minute, name)
		if second.Attempt != 1 {
			t.Errorf("%s: attempt %d", name, second.Attempt)
		}
		b.stale(forgotten.Lease())
		b.ack(second)
		b.empty()
	}
}
