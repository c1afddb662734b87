package shard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/shard"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/zsetpoll"
)

// TestIdle has a worker wait at a queue of 64 shards. It costs a look a second, and one connection.
func TestIdle(t *testing.T) {
	t.Parallel()
	const shards, seconds = 64, 5
	for name, open := range map[string]func(c redis.UniversalClient) backend.Backend{
		"zsetpoll": func(c redis.UniversalClient) backend.Backend { return zsetpoll.New(c, zsetpoll.Shards(shards)) },
		"keyspace": func(c redis.UniversalClient) backend.Backend { return keyspace.New(c, keyspace.Shards(shards)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := testenv.Redis(t, testenv.Private()).Client(t)
			b := open(client)
			t.Cleanup(func() { _ = b.Close() })
			q, err := b.Open(t.Context(), "idle", redistest.Silent())
			redistest.Must(t, err)
			ctx := redistest.Deadline(t)
			stop := waiting(ctx, t, q)
			redistest.Await(t, "all shards to be subscribed to", func() bool {
				return len(client.PubSubChannels(ctx, "*:wake").Val()) == shards+1
			})
			looks := func() int {
				calls := redistest.Calls(t, client)
				return calls["evalsha"] + calls["get"]
			}
			redistest.Await(t, "the first looks at all shards", func() bool {
				before := looks()
				time.Sleep(500 * time.Millisecond) // no look may come in that time but one
				return looks()-before <= 1
			})
			before, began := looks(), time.Now()
			time.Sleep(seconds * time.Second) // what is measured
			n := looks() - before
			if took := time.Since(began).Seconds(); n < seconds/2 || float64(n) > took+2 { // on a busy machine it takes longer
				t.Errorf("an idle queue sends %d commands in %.1f s", n, took)
			}
			list, err := client.Do(ctx, "client", "list", "type", "pubsub").Text()
			redistest.Must(t, err)
			if n := strings.Count(list, "name="); n > 2 || name == "zsetpoll" && n > 1 {
				t.Errorf("%d connections subscribe", n)
			}
			stop()
		})
	}
}

// waiting has a worker wait for a message that does not come, until stop is called.
func waiting(ctx context.Context, t *testing.T, q backend.Queue) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error)
	go func() {
		_, err := q.Receive(ctx, 1, time.Minute)
		ended <- err
	}()
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// TestStalledMaster has one of three masters stand still. The messages of the others come all the same, without
// an error, and its own when it goes on.
func TestStalledMaster(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	cluster := testenv.RedisCluster(t, testenv.Directive("cluster-node-timeout", "60000"))
	stalled := cluster.Nodes()[1]
	hasty := cluster.Client(t, func(o *redis.ClusterOptions) { // so that claims of that master fail soon
		o.NewClient = func(o *redis.Options) *redis.Client {
			if o.Addr == stalled.Addr() {
				o.ReadTimeout = time.Second
			}
			return redis.NewClient(o)
		}
	})
	open := func(client redis.UniversalClient) backend.Queue {
		b := zsetpoll.New(client, zsetpoll.Shards(16))
		t.Cleanup(func() { _ = b.Close() })
		return redistest.Open(t, b, "stalled")
	}
	q, worker := open(cluster.Client(t)), open(hasty)
	const n = 300
	redistest.Must(t, q.Schedule(ctx, ids(0, n))...)
	count := func(i int) (messages int) { // of a master
		c := cluster.Nodes()[i].Client(t)
		keys, err := c.Keys(ctx, "delayq:{stalled/*}:messages").Result()
		redistest.Must(t, err)
		for _, key := range keys {
			messages += int(c.HLen(ctx, key).Val())
		}
		return messages
	}
	there := []int{count(0), count(1), count(2)}
	if slices.Contains(there, 0) || there[0]+there[1]+there[2] != n {
		t.Fatalf("the masters have %v messages", there)
	}
	stalled.Pause()
	taken := make(map[string]bool)
	take := func(n int) {
		t.Helper()
		for len(taken) < n {
			ds, err := worker.Receive(ctx, 10, time.Minute)
			redistest.Must(t, err)
			for _, d := range ds {
				if taken[d.ID] {
					t.Errorf("message %s comes twice", d.ID)
				}
				taken[d.ID] = true
			}
			redistest.Must(t, q.Ack(ctx, redistest.Leases(ds))...)
		}
	}
	began := time.Now()
	take(there[0] + there[2])
	t.Log("the others took", time.Since(began))
	// Nothing is due elsewhere, and claims of its shards fail: a worker waits all the same, and gets the next message.
	idle, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	if ds, err := worker.Receive(idle, 10, time.Minute); !errors.Is(err, context.DeadlineExceeded) || len(ds) > 0 {
		t.Errorf("a Receive without messages returns %d, %v", len(ds), err)
	}
	for id := range taken {
		redistest.Must(t, q.Schedule(ctx, []backend.Message{{ID: id}})...)
		delete(taken, id)
		take(len(taken) + 1)
		break
	}
	stalled.Resume()
	take(n)
	if st, err := q.Stats(ctx); err != nil || st.Ready+st.InFlight > 0 {
		t.Errorf("Stats returns %+v, %v", st, err)
	}
}

// TestRoomOfShards has large messages in all shards. A claim of all of them is no larger than one of one.
func TestRoomOfShards(t *testing.T) {
	t.Parallel()
	const n, size, shards = 64, 1 << 20, 4
	ctx := redistest.Deadline(t)
	b := zsetpoll.New(testenv.Redis(t, testenv.Private()).Client(t), zsetpoll.Shards(shards))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	body := make([]byte, size)
	for _, m := range ids(0, n) {
		m.Body = body
		redistest.Must(t, q.Schedule(ctx, []backend.Message{m})...)
	}
	most := 0
	for left := n; left > 0; {
		ds, err := q.Receive(ctx, n, time.Minute)
		redistest.Must(t, err)
		most = max(most, len(ds))
		left -= len(ds)
		redistest.Must(t, q.Ack(ctx, redistest.Leases(ds))...)
	}
	if most < shards || most > 2*store.Room/size { // a Receive may have those of two claims
		t.Errorf("a claim has %d messages of 1 MiB", most)
	}
}

// TestShares drains 16 shards by claims of few and of many messages.
func TestShares(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, _ redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		b := openAll(16)
		q := open(t, b)
		for _, limit := range []int{1, 2, 7, 100, 1000} {
			n := min(400, 100*limit) // some hundred round trips
			ms := make([]backend.Message, n)
			for i := range ms {
				ms[i].ID = fmt.Sprint(limit, "-", i)
			}
			redistest.Must(t, q.Schedule(ctx, ms)...)
			for left := n; left > 0; {
				ds, err := q.Receive(ctx, limit, time.Minute)
				redistest.Must(t, err)
				if len(ds) > limit {
					t.Fatalf("a Receive of %d returns %d", limit, len(ds))
				}
				left -= len(ds)
				redistest.Must(t, q.Ack(ctx, redistest.Leases(ds))...)
			}
		}
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}

// A refusal is an error of the server.
type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

// TestGiveBackEnds has messages come too late, with leases of a day, while the server does not take them back.
func TestGiveBackEnds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		failure error
		closes  bool
		within  time.Duration
	}{
		"after a while":      {failure: io.EOF, within: 31 * time.Second},
		"with the handle":    {failure: io.EOF, closes: true, within: time.Second},
		"when it is refused": {failure: refusal("NOPERM no permissions"), within: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := redistest.Nowhere(t)
			tries := 0
			client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, _ func() error) error {
				if cmd.Name() == "evalsha" {
					tries++
				}
				cmd.SetErr(tt.failure)
				return tt.failure
			}))
			synctest.Test(t, func(t *testing.T) {
				none := shard.Config{Follow: func(string) {}}
				q, err := shard.New(t.Context(), none, store.Config{Client: client, Prefix: "delayq"}, "late")
				redistest.Must(t, err)
				began, before := time.Now(), tries
				if tt.closes {
					q.Close()
				}
				q.GiveBack([]backend.Delivery{{ID: "a"}}, 24*time.Hour)
				if took := time.Since(began); tries == before || took > tt.within {
					t.Errorf("%d tries in %v, want up to %v", tries-before, took, tt.within)
				}
			})
		})
	}
}
