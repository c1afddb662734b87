package store_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const patience = redistest.Patience

var (
	must  = redistest.Must
	await = redistest.Await
)

var threeIDs = []string{"a", "b", "c"}

// A bench is one queue's store on a real server, and a client that reads its keys.
type bench struct {
	*store.Store
	t      *testing.T
	ctx    context.Context //nolint:containedctx // the test's: every call takes it
	raw    *redis.Client
	prefix string
}

func setup(t *testing.T) *bench {
	t.Helper()
	return on(t, testenv.SharedRedis(t))
}

func on(t *testing.T, server *testenv.RedisServer) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	t.Cleanup(cancel)
	b := &bench{t: t, ctx: ctx, raw: server.Client(t), prefix: "test:{" + t.Name() + "}:"}
	b.Store = b.with(b.raw)
	t.Cleanup(b.clear)
	return b
}

// clear makes the queue new for a test that runs again on a shared server.
func (b *bench) clear() {
	b.ctx = context.WithoutCancel(b.ctx)
	if keys := b.left(); len(keys) > 0 {
		must(b.t, b.raw.Del(b.ctx, keys...).Err())
	}
}

// faulty is the queue's store on a client that meets a fault.
func (b *bench) faulty(f *redistest.Fault) *store.Store { return b.with(f.Client(b.t, b.raw)) }

// with is the same queue's store on another client.
func (b *bench) with(client redis.UniversalClient) *store.Store {
	return store.New(store.Config{Client: client, Prefix: "test"}, b.t.Name(), nil)
}

func (b *bench) key(name string) string { return b.prefix + name }

func (b *bench) push(ids ...string) {
	b.t.Helper()
	b.pushAfter(0, ids...)
}

func (b *bench) pushAfter(delay time.Duration, ids ...string) {
	b.t.Helper()
	ms := make([]backend.Message, len(ids))
	for i, id := range ids {
		ms[i] = backend.Message{ID: id, Body: []byte("body of " + id), Delay: delay}
	}
	b.all(b.Schedule(b.ctx, ms))
}

func (b *bench) all(errs []error) {
	b.t.Helper()
	must(b.t, errs...)
}

// want checks the one outcome of a call on one message.
func (b *bench) want(errs []error, want error) {
	b.t.Helper()
	var err error
	if len(errs) > 0 {
		err = errs[0]
	}
	if !errors.Is(err, want) {
		b.t.Fatalf("got %v, want %v", err, want)
	}
}

// A way to claim.
type claimer func(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error)

// ways are all ways to claim with a store.
func ways(s *store.Store) map[string]claimer {
	return map[string]claimer{"script": s.Claim, "arbitrate": s.Arbitrate, "mover": s.MoveAndTake}
}

// eachWay runs a test for each way to claim, on a queue of its own.
func eachWay(t *testing.T, f func(t *testing.T, b *bench, how string, way claimer)) {
	for how := range ways(nil) {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			f(t, b, how, ways(b.Store)[how])
		})
	}
}

// claim claims once with a name of its own.
func (b *bench) claim(way claimer, lease time.Duration) script.Claim {
	b.t.Helper()
	c, err := way(b.ctx, 100, lease, redistest.Name())
	must(b.t, err)
	return c
}

// next claims until there is one message, and checks that it is that one and not early.
func (b *bench) next(way claimer, lease time.Duration, id string) backend.Delivery {
	b.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		c := b.claim(way, lease)
		if len(c.Deliveries) == 1 {
			d := c.Deliveries[0]
			if d.ID != id || string(d.Body) != "body of "+id || c.Now.Before(d.Due) {
				b.t.Fatalf("got %+v at %v, want %q", d, c.Now, id)
			}
			return d
		}
		if len(c.Deliveries) > 1 || time.Now().After(deadline) {
			b.t.Fatalf("got %d messages, want %q", len(c.Deliveries), id)
		}
		b.napUntil(c)
	}
}

// napUntil waits until the next event that a claim returned, by the server's clock.
func (b *bench) napUntil(c script.Claim) {
	wait := time.Millisecond
	if c.Next.After(c.Now) {
		wait = c.Next.Sub(c.Now)
	}
	select {
	case <-time.After(wait):
	case <-b.ctx.Done():
	}
}

// nothing checks that no message is due.
func (b *bench) nothing(way claimer) {
	b.t.Helper()
	if c := b.claim(way, time.Minute); len(c.Deliveries) > 0 {
		b.t.Fatalf("got %+v at %v, want nothing", c.Deliveries, c.Now)
	}
}

// empty checks that the queue has left no key.
func (b *bench) empty() {
	b.t.Helper()
	if keys := b.left(); len(keys) > 0 {
		b.t.Errorf("left over: %s", strings.Join(keys, ", "))
	}
}

func (b *bench) left() []string {
	b.t.Helper()
	keys, err := b.raw.Keys(b.ctx, strings.NewReplacer("[", `\[`, "]", `\]`, "*", `\*`).Replace(b.prefix)+"*").Result()
	must(b.t, err)
	slices.Sort(keys)
	return keys
}
