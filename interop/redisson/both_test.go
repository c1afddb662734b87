package interop

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/redisson"
)

// formats are the layouts that the releases write and read.
var formats = map[string]redisson.MemberFormat{
	"3.16.8": redisson.V1, "3.20.1": redisson.V1, "3.52.0": redisson.V2, "4.7.0": redisson.V2,
}

// codecs are this side's for the strings of Java's.
var codecs = map[Codec]redisson.Codec{
	String: redisson.String, Jackson: redisson.JacksonString, Jackson3: redisson.Jackson3String,
	Marshalling: redisson.MarshallingString, Kryo5: redisson.Kryo5String,
}

func codecOf(codec Codec, version string) redisson.Codec {
	if codec == Default {
		codec = defaults[version]
	}
	return codecs[codec]
}

// both is one queue that Java and Go use.
type both struct {
	fixture
	java *Queue
	ours *redisson.Backend
}

func (f fixture) both(codec Codec, opts ...redisson.Option) both {
	f.Helper()
	q := f.queue(WithCodec(codec))
	return both{f, q, f.backend(codec, opts...)}
}

// backend returns a backend that writes the layout of the fixture's release.
func (f fixture) backend(codec Codec, opts ...redisson.Option) *redisson.Backend {
	f.Helper()
	version := f.jvm.Version()
	opts = append([]redisson.Option{redisson.WithCodec(codecOf(codec, version)), redisson.Format(formats[version])}, opts...)
	b := redisson.New(f.redis, opts...)
	f.Cleanup(func() { must(f.T, b.Close()) })
	return b
}

var silent = slog.New(slog.DiscardHandler)

// open returns a handle, which maintains the queue until it is closed.
func (b both) open(ctx context.Context) backend.Queue {
	b.Helper()
	q := got(b.ours.Open(ctx, b.java.Name(), backend.Options{Logger: silent}))(b.T)
	return q
}

// workers opens the queue for Consume.
func (b both) workers(ctx context.Context, opts ...delayq.Option) delayq.Queue {
	b.Helper()
	opts = append(opts, delayq.WithBackend(b.ours), delayq.WithLogger(silent))
	q := got(delayq.New(ctx, b.java.Name(), opts...))(b.T)
	b.Cleanup(func() { must(b.T, q.Close()) })
	return q
}

// push pushes messages with a handle that is closed again, so that no handle maintains the queue,
// and returns their ids.
func (b both) push(ctx context.Context, ms ...backend.Message) []string {
	b.Helper()
	q := b.open(ctx)
	must(b.T, errors.Join(q.Schedule(ctx, ms)...))
	must(b.T, q.Close())
	ids := make([]string, len(ms))
	for i, m := range ms {
		ids[i] = m.ID
	}
	return ids
}

// keysOfAll are all keys of a queue, ours among them.
func (f fixture) keysOfAll(ctx context.Context, name string) []string {
	f.Helper()
	all := got(f.redis.Keys(ctx, "*"+name+"*").Result())(f.T)
	return slices.DeleteFunc(all, func(k string) bool { return k != name && !strings.HasSuffix(k, ":{"+name+"}") })
}

// empty waits until the queue is empty. A handle of Go's must maintain it.
func (b both) empty(ctx context.Context) {
	b.Helper()
	eventually(ctx, b.T, "an empty queue", func() bool { return len(b.keysOfAll(ctx, b.java.Name())) == 0 })
}

// take receives and acks n messages.
func take(ctx context.Context, t *testing.T, q backend.Queue, n int) (bodies []string) {
	t.Helper()
	for _, d := range lease(ctx, t, q, n) {
		must(t, errors.Join(q.Ack(ctx, []backend.Lease{d.Lease()})...))
		bodies = append(bodies, string(d.Body))
	}
	return bodies
}

// lease receives n messages.
func lease(ctx context.Context, t *testing.T, q backend.Queue, n int) (all []backend.Delivery) {
	t.Helper()
	for len(all) < n {
		all = append(all, got(q.Receive(ctx, n-len(all), leaseTime))(t)...)
	}
	return all
}
