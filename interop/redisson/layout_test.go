package interop

import (
	"context"
	"strconv"
	"testing"
	"time"
)

// defaults are the codecs that the releases have where none is set.
var defaults = map[string]Codec{"3.16.8": Marshalling, "3.20.1": Kryo5, "3.52.0": Kryo5, "4.7.0": Kryo5}

func TestKeys(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		plain := f.name()
		for _, c := range []struct{ name, prefix string }{
			{plain, ""}, {"{" + plain + "}:tagged", ""}, {plain, "pre:"}, {plain, "{pre}:"},
		} {
			f.keysAre(ctx, f.jvm.Queue(c.name, WithCodec(String), WithNamePrefix(c.prefix)), keysOf(c.prefix+c.name))
		}
	})
}

func (f fixture) keysAre(ctx context.Context, q *Queue, k keys) {
	f.Helper()
	must(f.T, q.Offer(ctx, "far", time.Hour))
	must(f.T, q.Offer(ctx, "near", time.Millisecond))
	eventually(ctx, f.T, "the near value in "+k.ready, func() bool {
		return f.redis.LLen(ctx, k.ready).Val() == 1
	})
	f.is(f.redis.LRange(ctx, k.ready, 0, -1).Result())([]string{"near"})
	f.is(f.redis.ZCard(ctx, k.due).Result())(int64(1))
	f.is(f.redis.LLen(ctx, k.index).Result())(int64(1))
	f.is(q.PollReady(ctx))("near")
	f.is(q.Poll(ctx))("far")
	must(f.T, q.Destroy(ctx))
	f.is(f.redis.Exists(ctx, k.all()...).Result())(int64(0))
}

// TestChannel shows that a new head is published as its due time, its score.
func TestChannel(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue()
		k := keysOf(q.Name())
		sub := f.redis.Subscribe(ctx, k.channel)
		defer func() { must(f.T, sub.Close()) }()
		_, err := sub.Receive(ctx)
		must(f.T, err)
		before := got(f.jvm.Clock(ctx))(f.T)
		must(f.T, q.Offer(ctx, "hello", time.Hour))
		after := got(f.jvm.Clock(ctx))(f.T)
		message := got(sub.ReceiveMessage(ctx))(f.T)
		due := got(strconv.ParseInt(message.Payload, 10, 64))(f.T)
		if at := time.UnixMilli(due).Add(-time.Hour); at.Before(before.Truncate(time.Millisecond)) || at.After(after) {
			f.Errorf("due at %v, offered between %v and %v", at, before, after)
		}
		head := got(f.redis.ZRangeWithScores(ctx, k.due, 0, 0).Result())(f.T)
		if len(head) != 1 || head[0].Score != float64(due) {
			f.Errorf("published %d; the head is %v", due, head)
		}
	})
}
