package keyspace_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/zsetpoll"
)

// With a sweep of a minute, only a wake-up can be in time.

func TestExpiryWakes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	for _, db := range []int{0, 5} {
		client := srv.Client(t, func(o *redis.Options) { o.DB = db })
		q := open(t, newBackend(t, client, keyspace.Sweep(time.Minute)))
		for i := range 3 {
			s := sleep(t, client, q)
			id := numbered("m", i)
			push(t, q, id, 300*time.Millisecond)
			s.woken(t, id, time.Second+noise)
		}
	}
}

// The timer of a worker is the sweep's: without events, a message that a claim has seen waits for
// it. Where a busy machine claims for the first time when the message is due, the test begins again.
func TestOnlyExpiryWakes(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	var claims atomic.Int64
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		isPauseKey := func(arg any) bool { key, _ := arg.(string); return strings.HasSuffix(key, "}:paused") }
		if cmd.Name() == "evalsha" && slices.ContainsFunc(cmd.Args(), isPauseKey) { // no addition to the activity
			claims.Add(1)
		}
		return send()
	}))
	q := open(t, newBackend(t, client, keyspace.Sweep(2*time.Second)))
	s := sleep(t, client, q) // so that no look after a subscription is yet to come
	push(t, q, "first", 0)
	came(t, q, []*sleeper{s}, noise)
	for seen := false; !seen; {
		must(t, client.ConfigSet(t.Context(), "notify-keyspace-events", "").Err())
		push(t, q, "m", 600*time.Millisecond)
		before, begun := claims.Load(), time.Now()
		d := take(t, q, redistest.Patience)
		took := time.Since(begun)
		seen = claims.Load()-before > 1 && flags(t, client) == "" // a check may have set them again
		if seen && took < 1900*time.Millisecond {
			t.Errorf("the message came after %v, before the sweep, without a wake-up", took)
		}
		must(t, q.Ack(t.Context(), []backend.Lease{d.Lease()})...)
	}
}

func TestEveryWayToBecomeDueWakes(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	b := newBackend(t, client, keyspace.Sweep(time.Minute))
	q, other := open(t, b), open(t, b)
	s := sleep(t, client, q)
	push(t, other, "m", time.Hour)
	must(t, other.Reschedule(t.Context(), []backend.Move{{ID: "m", Delay: 300 * time.Millisecond}})...)
	s.woken(t, "m", time.Second+noise)

	push(t, other, "n", 0)
	d := take(t, other, noise)
	s = sleep(t, client, q)
	must(t, other.Nack(t.Context(), []backend.Return{{Lease: d.Lease(), Delay: 300 * time.Millisecond}})...)
	s.woken(t, "n", time.Second+noise)

	push(t, other, "r", time.Hour)
	s = sleep(t, client, q)
	must(t, other.Schedule(t.Context(), []backend.Message{{ID: "r", Body: []byte("r"), Delay: 300 * time.Millisecond, Replace: true}})...)
	s.woken(t, "r", time.Second+noise)
}

// A message that is due at once has no key to expire, and its push wakes a worker.
func TestDueAtOnceWakesWithoutTrigger(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	q := open(t, newBackend(t, client, keyspace.Sweep(time.Minute)))
	for i, m := range []backend.Message{{ID: "now"}, {ID: "past", Due: time.Now().Add(-time.Hour)}} {
		s := sleep(t, client, q)
		must(t, q.Schedule(t.Context(), []backend.Message{m})...)
		s.woken(t, m.ID, noise)
		if n := redistest.Calls(t, client)["publish"]; n < i+1 {
			t.Errorf("%d wake-ups were published for %d messages", n, i+1)
		}
	}
	if n := triggers(t, client); n != 0 {
		t.Errorf("%d triggers for messages that were due at once", n)
	}
}

func triggers(t *testing.T, client redis.Cmdable) int {
	t.Helper()
	keys, err := client.Keys(t.Context(), "*:trigger*").Result()
	must(t, err)
	return len(keys)
}

// Expiries of many foreign keys cause no look.
func TestForeignExpiriesWakeNoQueue(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	q := open(t, newBackend(t, client, keyspace.Sweep(time.Minute)))
	s := sleep(t, client, q)
	const n = 300
	before := redistest.Calls(t, client)["evalsha"]
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range n {
			for _, format := range []string{"cache%d", "delayq:{other%d}:trigger", "app%d:{q}:trigger", "delayq:{q}:trigger:%d", "trigger%d", "%d}:trigger"} {
				p.Set(t.Context(), fmt.Sprintf(format, i), "", time.Millisecond)
			}
		}
		return nil
	})
	must(t, err)
	await(t, "expiry of the keys", func() bool {
		size, err := client.DBSize(t.Context()).Result()
		must(t, err)
		return size <= 1 // the list of queues
	})
	time.Sleep(redistest.Quiet) // for a look that must not happen
	if looks := redistest.Calls(t, client)["evalsha"] - before; looks != 0 {
		t.Errorf("%d looks at the queue for %d foreign expiries", looks, 6*n)
	}
	push(t, q, "m", 300*time.Millisecond)
	s.woken(t, "m", time.Second+noise)
}

// Both backends store messages alike: a worker of either receives messages from a client of the
// other.
func TestSharesQueuesWithZsetpoll(t *testing.T) {
	t.Parallel()
	client := server(t).Client(t)
	zset := zsetpoll.New(client, zsetpoll.Poll(time.Minute))
	t.Cleanup(func() { must(t, zset.Close()) })
	ours, theirs := open(t, newBackend(t, client, keyspace.Sweep(time.Minute))), open(t, zset)
	for name, tt := range map[string]struct{ pusher, worker backend.Queue }{
		"pushed by zsetpoll": {theirs, ours},
		"pushed by keyspace": {ours, theirs},
	} {
		s := sleep(t, client, tt.worker)
		push(t, tt.pusher, name, 300*time.Millisecond)
		s.woken(t, name, time.Second+noise)
	}
}
