package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// TestTiesInOrder makes many of Java's messages due in one millisecond, as those that expire at
// midnight are. A handle without workers hands them over, and Java takes them, in the order of its
// offers.
func TestTiesInOrder(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		for _, size := range []int{100, 10 << 10} {
			n := unlessShort(1500, 300)
			b := f.both(String)
			got(b.java.OfferMany(ctx, Load{Count: n, Size: size, MinDelay: time.Hour, MaxDelay: time.Hour, Prefix: "tie"}))(f.T)
			must(f.T, b.java.Destroy(ctx)) // or Java would hand over too
			b.allDue(ctx, time.Now().Add(-time.Minute))
			q := b.open(ctx)
			consumer := got(b.java.Consume(ctx, 1))(f.T)
			for i := range n {
				r := got(consumer.Next(ctx))(f.T)
				text, _ := r.Value.(string)
				if r.Err != nil || len(text) != size || strings.TrimRight(text, ".") != fmt.Sprint("tie-", i) {
					f.Fatalf("%d bytes: message %d is %.40q, %v", size, i, text, r.Err)
				}
			}
			must(f.T, consumer.Stop(ctx))
			b.empty(ctx)
			must(f.T, q.Close())
		}
	})
}

// allDue gives all that waits one due time.
func (b both) allDue(ctx context.Context, due time.Time) {
	b.Helper()
	key := keysOf(b.java.Name()).due
	pipe := b.redis.Pipeline()
	for _, z := range got(b.redis.ZRangeWithScores(ctx, key, 0, -1).Result())(b.T) {
		pipe.ZAdd(ctx, key, redis.Z{Score: float64(due.UnixMilli()), Member: z.Member})
	}
	got(pipe.Exec(ctx))(b.T)
}

// TestTheDefaultFormatStallsNoVersion pushes into an empty queue, which does not tell the version
// of its readers. Java sees that message, and its own arrives behind it.
func TestTheDefaultFormatStallsNoVersion(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue(WithCodec(String))
		ours := redisson.New(f.redis, redisson.WithCodec(redisson.String))
		f.Cleanup(func() { must(f.T, ours.Close()) })
		b := both{f, q, ours}
		// no Go handle is open after that
		b.push(ctx, backend.Message{Body: []byte("Go's"), Delay: 30 * time.Second})
		f.is(q.Contains(ctx, "Go's"))(true)
		must(f.T, q.Offer(ctx, "Java's", 30200*time.Millisecond))
		for _, want := range []string{"Go's", "Java's"} {
			if value := got(q.Take(ctx, time.Minute))(f.T); value != want {
				f.Errorf("received %v, want %s", value, want)
			}
		}
		b.gone(ctx)
	})
}

func (b both) gone(ctx context.Context) {
	b.Helper()
	if left := b.redis.ZCard(ctx, keysOf(b.java.Name()).due).Val(); left != 0 {
		b.Errorf("%d members are left", left)
	}
}

// TestCancelWhereJavaTakesOthers has Java take from both ends of the destination. Messages that are
// still there are cancelled by id, and the others are not found.
func TestCancelWhereJavaTakesOthers(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		b := f.both(String)
		q := b.open(ctx)
		ms := make([]backend.Message, 9)
		for i := range ms {
			ms[i] = backend.Message{Body: fmt.Append(nil, i)}
		}
		must(f.T, errors.Join(q.Schedule(ctx, ms)...))
		ready := keysOf(b.java.Name()).ready
		eventually(ctx, f.T, "the hand-over", func() bool { return b.redis.LLen(ctx, ready).Val() == int64(len(ms)) })
		if first := got(b.java.PollReady(ctx))(f.T); first != "0" {
			f.Errorf("Java took %v first", first)
		}
		// as its pollLast does
		if last := got(b.redis.RPop(ctx, ready).Result())(f.T); last != "8" {
			f.Errorf("the last was %q", last)
		}
		must(f.T, b.redis.LRem(ctx, ready, 1, "4").Err()) // as its remove does
		for i, m := range ms {
			err := errors.Join(q.Cancel(ctx, []string{m.ID})...)
			if gone := i == 0 || i == 4 || i == 8; gone != errors.Is(err, backend.ErrNotFound) || !gone && err != nil {
				f.Errorf("cancelling %d: %v", i, err)
			}
		}
		b.empty(ctx)
	})
}
