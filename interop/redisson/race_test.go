package interop

import (
	"context"
	"testing"
	"time"
)

// TestRace only shows that the race can be run: whether Redisson loses a wake-up is a matter of
// luck.
func TestRace(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		q := f.queue(WithCodec(String))
		r := got(q.Race(ctx, Race{Lanes: 2, Rounds: 2, Near: 20 * time.Millisecond, Far: time.Minute, Wait: 3 * time.Second}))(f.T)
		if len(r.Late)+r.Lost != 4 {
			f.Errorf("%d late and %d lost; want 4", len(r.Late), r.Lost)
		}
		for _, late := range r.Late {
			if late < 0 {
				f.Errorf("an item came %v early", -late)
			}
		}
		for _, lane := range []string{"-0", "-1"} {
			must(f.T, f.jvm.Queue(q.Name()+lane, WithCodec(String)).Destroy(ctx))
			f.is(f.redis.Exists(ctx, keysOf(q.Name()+lane).all()...).Result())(int64(0))
		}
	})
}
