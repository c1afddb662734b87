package redisson_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/redisson"
)

// A place is the test's queue on a real server, seen through its keys.
type place struct {
	t      *testing.T
	ctx    context.Context //nolint:containedctx // the test's: every call takes it
	server *testenv.RedisServer
	raw    *redis.Client
	name   string // of the queue, and of the destination list
}

func setup(t *testing.T) *place {
	t.Helper()
	return on(t, testenv.SharedRedis(t))
}

func on(t *testing.T, server *testenv.RedisServer) *place {
	t.Helper()
	p := &place{t: t, ctx: redistest.Deadline(t), server: server, raw: server.Client(t), name: t.Name()}
	t.Cleanup(p.wipe)
	return p
}

// wipe makes the queue new for a test that runs again on a shared server.
func (p *place) wipe() {
	p.ctx = context.WithoutCancel(p.ctx)
	if keys := p.keys(); len(keys) > 0 {
		must(p.t, p.raw.Del(p.ctx, keys...).Err())
	}
}

// The keys, spelt out as Java has them.

func (p *place) times() string          { return "redisson_delay_queue_timeout:{" + p.name + "}" }
func (p *place) index() string          { return "redisson_delay_queue:{" + p.name + "}" }
func (p *place) channel() string        { return "redisson_delay_queue_channel:{" + p.name + "}" }
func (p *place) own(name string) string { return "delayq_" + name + ":{" + p.name + "}" }

// keys are all that the queue has.
func (p *place) keys() []string {
	p.t.Helper()
	all, err := p.raw.Keys(p.ctx, "*").Result()
	must(p.t, err)
	return slices.DeleteFunc(all, func(k string) bool { return k != p.name && !strings.HasSuffix(k, ":{"+p.name+"}") })
}

// empty waits until the queue is empty: a call that reads it may be about to tidy up.
func (p *place) empty() {
	p.t.Helper()
	await(p.t, "the queue's last key to go", func() bool { return len(p.keys()) == 0 })
}

func (p *place) backend(opts ...redisson.Option) *redisson.Backend {
	return p.backendOn(p.raw, opts...)
}

// backendOn returns a backend that ends with the test.
func (p *place) backendOn(client redis.UniversalClient, opts ...redisson.Option) *redisson.Backend {
	p.t.Helper()
	b := redisson.New(client, opts...)
	p.t.Cleanup(func() { must(p.t, b.Close()) })
	return b
}

// open opens the queue.
func (p *place) open(opts ...redisson.Option) backend.Queue {
	p.t.Helper()
	return p.openOn(p.backend(opts...))
}

func (p *place) openOn(b *redisson.Backend) backend.Queue {
	p.t.Helper()
	return redistest.Open(p.t, b, p.name)
}

// store is the queue's store alone: a handle runs scripts of its own, which a fault could meet
// instead of the script of the call.
func (p *place) store(b *redisson.Backend) redisson.Store {
	p.t.Helper()
	s, err := redisson.StoreOf(b, p.name, nil, slog.New(slog.DiscardHandler))
	must(p.t, err)
	return s
}

func (p *place) openLogging(b *redisson.Backend, log *slog.Logger) backend.Queue {
	p.t.Helper()
	q, err := b.Open(p.ctx, p.name, backend.Options{Logger: log})
	must(p.t, err)
	return q
}

// push pushes bodies, and returns their ids.
func (p *place) push(q backend.Queue, delay time.Duration, texts ...string) []string {
	p.t.Helper()
	ms := make([]backend.Message, len(texts))
	for i, text := range texts {
		ms[i] = backend.Message{ID: "id of " + text, Body: []byte(text), Delay: delay}
	}
	must(p.t, q.Schedule(p.ctx, ms)...)
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	return ids
}

// take receives n messages.
func (p *place) take(q backend.Queue, n int, lease time.Duration) (all []backend.Delivery) {
	p.t.Helper()
	for len(all) < n {
		ds, err := q.Receive(p.ctx, n-len(all), lease)
		must(p.t, err)
		all = append(all, ds...)
	}
	return all
}

// takes is take for bodies that come in this order, and acks them.
func (p *place) takes(q backend.Queue, want ...string) []backend.Delivery {
	p.t.Helper()
	ds := p.take(q, len(want), time.Minute)
	if got := bodies(ds); !slices.Equal(got, want) {
		p.t.Errorf("got  %.300q\nwant %.300q", got, want)
	}
	must(p.t, q.Ack(p.ctx, leases(ds))...)
	return ds
}

// members are the sorted set's members, with their scores.
func (p *place) members() []redis.Z {
	p.t.Helper()
	zs, err := p.raw.ZRangeWithScores(p.ctx, p.times(), 0, -1).Result()
	must(p.t, err)
	return zs
}

func (p *place) list(key string) []string {
	p.t.Helper()
	items, err := p.raw.LRange(p.ctx, key, 0, -1).Result()
	must(p.t, err)
	return items
}

// handed waits until the destination list has these members.
func (p *place) handed(want ...string) {
	p.t.Helper()
	await(p.t, "the destination list", func() bool { return slices.Equal(p.list(p.name), want) })
}

func (p *place) stats(q backend.Queue) backend.Stats {
	p.t.Helper()
	s, err := q.Stats(p.ctx)
	must(p.t, err)
	if s.Activity != backend.UnknownActivity {
		p.t.Errorf("the activity is %+v, and it is not counted", s.Activity)
	}
	s.Activity = backend.Activity{}
	return s
}
