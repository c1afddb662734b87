package interop

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// mix is a queue on which two releases offer that cannot read each other's members.
type mix struct {
	both
	newer, older *Queue
}

func newMix(t *testing.T) mix {
	t.Helper()
	server := testenv.SharedRedis(t)
	newer, older := Start(t, "3.52.0", server.URL()), Start(t, "3.20.1", server.URL())
	f := fixture{t, newer, server, server.Client(t)}
	name := f.name()
	b := both{f, newer.Queue(name, WithCodec(String)), f.backend(String, redisson.Format(redisson.Both))}
	return mix{b, b.java, older.Queue(name, WithCodec(String))}
}

// offer offers n values alternately, newer first, to be due 20 ms apart. It returns when the last is
// due.
func (m mix) offer(ctx context.Context, n int) (last time.Time) {
	m.Helper()
	const apart = 20 * time.Millisecond
	m.is(m.newer.Size(ctx))(0) // from here on both know the queue
	m.is(m.older.Size(ctx))(0)
	first := time.Now().Add(time.Second + time.Duration(n)*5*time.Millisecond)
	for i := range n {
		by, prefix := m.newer, "newer"
		if i%2 == 1 {
			by, prefix = m.older, "older"
		}
		last = first.Add(time.Duration(i) * apart)
		must(m.T, by.Offer(ctx, stamped(prefix, i/2, last.Add(-2*time.Millisecond)), max(time.Until(last), 0)))
	}
	return last
}

func (m mix) takers(ctx context.Context) []*Consumer {
	m.Helper()
	return []*Consumer{got(m.newer.Consume(ctx, 2))(m.T), got(m.older.Consume(ctx, 2))(m.T)}
}

// TestMixedFormats shows that a worker of this side keeps alive a queue on which two releases of
// Redisson that cannot read each other stop each other for good.
func TestMixedFormats(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	for _, n := range []int{5, unlessShort(200, 50)} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			ctx := testContext(t)
			m := newMix(t)
			arrivals := &arrivals{want: n}
			stop := consume(ctx, m.workers(ctx), arrivals.handle, delayq.Workers(16))
			takers := m.takers(ctx)
			m.offer(ctx, n)
			arrivals.awaitAll(ctx, t, takers...)
			m.empty(ctx)
			must(t, stop())
			for _, c := range takers {
				must(t, c.Stop(ctx))
			}
			arrivals.check(t, map[string]int{"newer": (n + 1) / 2, "older": n / 2}, takers...)
			if put, _, err := m.ours.Quarantine(m.java.Name()).List(ctx, "", 100); len(put) != 0 || err != nil {
				t.Errorf("quarantined: %v, %v", put, err)
			}
		})
	}
}

// TestMixedFormatsStuck opens a queue whose releases have stopped each other already. Values that
// were moved without being taken out of the sorted set come as often as Java moved them before, and
// not once more. The others come once.
func TestMixedFormatsStuck(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	ctx := testContext(t)
	m := newMix(t)
	last := m.offer(ctx, 5)
	k := keysOf(m.java.Name())
	eventually(ctx, t, "the releases to have stopped each other", func() bool {
		before := m.redis.LLen(ctx, k.ready).Val()
		// one that moves more after that makes the queue less stuck, which fails no test
		time.Sleep(redistest.Quiet)
		return before > 0 && m.redis.LLen(ctx, k.ready).Val() == before && time.Now().After(last)
	})
	m.newer.jvm.Kill() // an older one would go on after Destroy
	m.older.jvm.Kill()
	want := map[string]int{}
	for _, body := range m.redis.LRange(ctx, k.ready, 0, -1).Val() {
		want[body[:7]]++
	}
	t.Logf("moved, and still there: %v", want)
	for _, name := range []string{"newer-0", "older-0", "newer-1", "older-1", "newer-2"} {
		want[name] = max(want[name], 1)
	}
	seen := map[string]int{}
	q := m.open(ctx)
	for _, body := range take(ctx, t, q, 5) {
		seen[body[:7]]++
	}
	for m.stats(ctx, q).Ready > 0 {
		for _, body := range take(ctx, t, q, 1) {
			seen[body[:7]]++
		}
	}
	if !maps.Equal(seen, want) {
		t.Errorf("received %v, want %v", seen, want)
	}
	m.empty(ctx)
}

func (b both) stats(ctx context.Context, q backend.Queue) backend.Stats {
	b.Helper()
	return got(q.Stats(ctx))(b.T)
}
