package interop

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestOfferAndTake(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue()
		before := got(f.jvm.Clock(ctx))(f.T)
		must(f.T, q.Offer(ctx, "hello", 150*time.Millisecond))
		if value := got(q.PollReady(ctx))(f.T); value != nil {
			f.Errorf("received %v before it was due", value)
		}
		if value := got(q.Take(ctx, 20*time.Second))(f.T); value != "hello" {
			f.Errorf("received %v", value)
		}
		if took := got(f.jvm.Clock(ctx))(f.T).Sub(before); took < 150*time.Millisecond {
			f.Errorf("received after %v", took)
		}
	})
}

func TestPending(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue()
		must(f.T, q.Offer(ctx, "late", 2*time.Hour))
		must(f.T, q.Offer(ctx, "soon", time.Hour))
		f.is(q.Size(ctx))(2)
		f.is(q.ReadAll(ctx))([]any{"late", "soon"})
		f.is(q.Peek(ctx))("late")
		f.is(q.Contains(ctx, "soon"))(true)
		f.is(q.Contains(ctx, "never"))(false)
		f.is(q.Remove(ctx, "never"))(false)
		f.is(q.Remove(ctx, "soon"))(true)
		f.is(q.Contains(ctx, "soon"))(false)
		f.is(q.Poll(ctx))("late")
		f.is(q.Poll(ctx))(nil)
		f.is(q.Peek(ctx))(nil)
		f.is(q.Size(ctx))(0)
		f.is(q.ReadAll(ctx))([]any{})
		f.is(q.ReadySize(ctx))(0)
	})
}

func TestPollMany(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue()
		for _, value := range []string{"a", "b", "c"} {
			must(f.T, q.Offer(ctx, value, time.Hour))
		}
		f.is(q.PollMany(ctx, 2))([]any{"a", "b"})
		f.is(q.RetainAll(ctx, "c"))(false)
		f.is(q.PollMany(ctx, 2))([]any{"c"})
	})
}

// is compares a call's result.
func (f fixture) is(value any, err error) func(want any) {
	return func(want any) {
		f.Helper()
		must(f.T, err)
		if !reflect.DeepEqual(value, want) {
			f.Errorf("got %v; want %v", value, want)
		}
	}
}

// TestDestroy shows that a queue without a transferrer stands still, and goes on with one.
func TestDestroy(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue(WithCodec(String))
		must(f.T, q.Offer(ctx, "stranded", time.Hour))
		f.awaitTransferrers(ctx, q, 1)
		must(f.T, q.Destroy(ctx))
		must(f.T, q.Destroy(ctx)) // once more does no harm
		f.awaitTransferrers(ctx, q, 0)
		member := got(f.redis.ZRange(ctx, keysOf(q.Name()).due, 0, 0).Result())(f.T)
		must(f.T, f.redis.ZAddXX(ctx, keysOf(q.Name()).due, redis.Z{Score: 1, Member: member[0]}).Err())
		f.is(q.Take(ctx, time.Second))(nil)
		must(f.T, q.Hold(ctx))
		f.is(q.Take(ctx, 20*time.Second))("stranded")
	})
}

func (f fixture) awaitTransferrers(ctx context.Context, q *Queue, n int64) {
	f.Helper()
	channel := keysOf(q.Name()).channel
	eventually(ctx, f.T, fmt.Sprintf("%d subscribers of %s", n, channel), func() bool {
		return f.redis.PubSubNumSub(ctx, channel).Val()[channel] == n
	})
}

func TestExceptions(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue(WithCodec(String))
		for class, err := range map[string]error{
			"java.lang.IllegalArgumentException": q.Offer(ctx, "early", -time.Second),
			"java.lang.NullPointerException":     q.Offer(ctx, nil, time.Second),
			"java.lang.ClassCastException":       f.queue(WithCodec(Bytes)).Offer(ctx, "no bytes", time.Second),
		} {
			var exception *JavaError
			if !errors.As(err, &exception) || exception.Class != class {
				f.Errorf("got %v; want %s", err, class)
			}
		}
	})
}
