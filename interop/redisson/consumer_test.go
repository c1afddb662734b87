package interop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestConsume(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		const n = 200
		q := f.queue(WithCodec(String))
		consumer := got(q.Consume(ctx, 4))(f.T)
		offered := got(f.jvm.Clock(ctx))(f.T)
		load := Load{Count: n, Size: 40, MinDelay: 50 * time.Millisecond, MaxDelay: 150 * time.Millisecond, Threads: 4, Prefix: "item"}
		if took := got(q.OfferMany(ctx, load))(f.T); took <= 0 {
			f.Errorf("the offers took %v", took)
		}
		seen := map[any]bool{}
		for range n {
			r := got(consumer.Next(ctx))(f.T)
			must(f.T, r.Err)
			if after := r.At.Sub(offered); len(r.Value.(string)) != 40 || after < 49*time.Millisecond {
				f.Errorf("received %v after %v", r.Value, after)
			}
			seen[r.Value] = true
		}
		must(f.T, consumer.Stop(ctx))
		if len(seen) != n || len(consumer.Received()) != n {
			f.Errorf("%d values in %d receptions; want %d", len(seen), len(consumer.Received()), n)
		}
	})
}

func TestStoppedConsumerTakesNothing(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue(WithCodec(String))
		consumer := got(q.Consume(ctx, 2))(f.T)
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if r, err := consumer.Next(short); !errors.Is(err, context.DeadlineExceeded) {
			f.Errorf("received %v, %v", r, err)
		}
		must(f.T, consumer.Stop(ctx))
		if _, err := consumer.Next(ctx); !errors.Is(err, ErrEnded) {
			f.Errorf("a stopped consumer gives %v", err)
		}
		if err := consumer.Stop(ctx); err == nil {
			f.Error("it stops twice")
		}
		must(f.T, f.redis.RPush(ctx, q.Name(), "left").Err())
		f.is(q.ReadySize(ctx))(1)
		f.is(q.PollReady(ctx))("left")
	})
}

// TestUndecodableValueIsAnException shows that an exception of the codec is told, and that the
// consumer lives on.
func TestUndecodableValueIsAnException(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue(WithCodec(Jackson))
		consumer := got(q.Consume(ctx, 1))(f.T)
		must(f.T, f.redis.RPush(ctx, q.Name(), `{"no":"class"}`, `"good"`).Err())
		var exception *JavaError
		if r := got(consumer.Next(ctx))(f.T); !errors.As(r.Err, &exception) || r.At.IsZero() {
			f.Errorf("received %+v; want an exception", r)
		}
		if r := got(consumer.Next(ctx))(f.T); r.Value != "good" || r.Err != nil {
			f.Errorf("received %+v", r)
		}
		must(f.T, consumer.Stop(ctx))
	})
}

// TestRequestsAreConcurrent shows that one that waits holds up no other.
func TestRequestsAreConcurrent(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		const n = 8
		q := f.queue(WithCodec(String))
		taken := make(chan string, n)
		for range n {
			go func() {
				value, err := q.Take(ctx, 30*time.Second)
				taken <- fmt.Sprint(value, err)
			}()
		}
		for i := range n {
			must(f.T, q.Offer(ctx, fmt.Sprint(i), time.Millisecond))
		}
		seen := map[string]bool{}
		for range n {
			seen[<-taken] = true
		}
		for i := range n {
			if !seen[fmt.Sprintf("%d<nil>", i)] {
				f.Errorf("%d is not among %v", i, seen)
			}
		}
	})
}
