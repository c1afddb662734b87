package interop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/redisson"
)

// slack is for a busy machine; a wake-up that was lost would cost a second.
const slack = 20 * time.Second

// grace is how long after a lease's end Java may take the message, when none of this side's
// processes gives it back.
const grace = 2 * time.Second

// TestGoWorkerKilled kills a process of Go's that holds messages. Java gets each once, after the
// lease: from another process of Go's, which has no worker, or where there is none from its own
// RDelayedQueue.
func TestGoWorkerKilled(t *testing.T) {
	for name, survive := range map[string]func(context.Context, both){
		"anotherMaintains": func(ctx context.Context, b both) { b.open(ctx) },
		"onlyJava":         func(ctx context.Context, b both) { must(b.T, b.java.Hold(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			eachVersion(t, func(ctx context.Context, f fixture) {
				b := f.both(String)
				b.killed(ctx, name == "onlyJava", survive)
			})
		})
	}
}

func (b both) killed(ctx context.Context, alone bool, survive func(context.Context, both)) {
	b.Helper()
	const n, lease = 20, 6 * time.Second // longer than a busy machine delays the worker
	for i := range n / 2 {
		must(b.T, b.java.Offer(ctx, fmt.Sprint("java-", i), time.Millisecond))
	}
	must(b.T, b.java.Destroy(ctx))
	push := func() { b.push(ctx, hence(0, numbered("go-", n/2)...)...) }
	format := fmt.Sprint(int(formats[b.jvm.Version()]))
	ends := redistest.KillWorker(b, b.server, format, b.java.Name(), lease, push, n)
	survive(ctx, b)
	consumer := got(b.java.Consume(ctx, 4))(b.T)
	earliest := time.Duration(0)
	if alone {
		earliest = grace
	}
	var last time.Duration
	for range n {
		r := got(consumer.Next(ctx))(b.T)
		end, mine := ends[fmt.Sprint(r.Value)]
		delete(ends, fmt.Sprint(r.Value))
		after := r.At.Sub(end)
		last = max(last, after)
		if !mine || r.Err != nil || after < earliest || after > grace+slack {
			b.Errorf("Java received %v, %v, %v after the lease's end", r.Value, r.Err, after)
		}
	}
	b.Logf("Java received the last one %v after the lease's end", last)
	b.open(ctx) // a process that comes later finds nothing, and tidies up
	b.empty(ctx)
	must(b.T, consumer.Stop(ctx))
	if all := consumer.Received(); len(all) != n {
		b.Errorf("Java received %d messages of %d", len(all), n)
	}
}

func numbered(prefix string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

// TestJVMKilledInMidTransfer kills a JVM that moves thousands of due messages and takes none: each
// is in the sorted set and the index, or in the destination, and reaches Go once.
func TestJVMKilledInMidTransfer(t *testing.T) {
	eachVersion(t, func(ctx context.Context, f fixture) {
		for range unlessShort(3, 1) {
			f.killsInMidTransfer(ctx, unlessShort(3000, 2000))
		}
	})
}

func (f fixture) killsInMidTransfer(ctx context.Context, n int) {
	f.Helper()
	b := f.both(String)
	jvm := Start(f.T, f.jvm.Version(), f.server.URL())
	due := time.Now().Add(time.Second)
	ms := hence(0, numbered("m-", n)...)
	for i := range ms {
		// In any order, which makes a transfer slow.
		ms[i].Due = due.Add(-rand.N(500 * time.Millisecond))
	}
	b.push(ctx, ms...)
	if time.Now().After(due.Add(-500 * time.Millisecond)) {
		f.Log("the pushes were slow; some messages may have been handed over by this side")
	}
	time.Sleep(time.Until(due))
	must(f.T, jvm.Queue(b.java.Name(), WithCodec(String)).Hold(ctx))
	k := keysOf(b.java.Name())
	eventually(ctx, f.T, "the first transfer", func() bool { return f.redis.LLen(ctx, k.ready).Val() > 0 })
	time.Sleep(rand.N(40 * time.Millisecond)) // the test varies the moment of the crash
	jvm.Kill()
	f.nothingLost(ctx, k, ms)
	bodies := take(ctx, f.T, b.open(ctx), n)
	f.each(bodies, ms)
	b.empty(ctx)
}

func (f fixture) nothingLost(ctx context.Context, k keys, ms []backend.Message) {
	f.Helper()
	members := got(f.redis.ZRange(ctx, k.due, 0, -1).Result())(f.T)
	index := got(f.redis.LRange(ctx, k.index, 0, -1).Result())(f.T)
	there := got(f.redis.LRange(ctx, k.ready, 0, -1).Result())(f.T)
	f.Logf("killed with %d of %d moved", len(there), len(ms))
	for _, m := range members {
		parsed := got(redisson.ParseMember([]byte(m)))(f.T)
		there = append(there, string(parsed.Payload))
	}
	f.each(there, ms)
	slices.Sort(members)
	if slices.Sort(index); !slices.Equal(members, index) {
		f.Errorf("%d members and %d in the index differ", len(members), len(index))
	}
}

// each wants each message's body once.
func (f fixture) each(bodies []string, ms []backend.Message) {
	f.Helper()
	want := make([]string, len(ms))
	for i, m := range ms {
		want[i] = string(m.Body)
	}
	slices.Sort(want)
	bodies = slices.Sorted(slices.Values(bodies))
	if !slices.Equal(bodies, want) {
		f.Errorf("%d messages and not the %d that were pushed, each once: %.200q", len(bodies), len(want), bodies)
	}
}
