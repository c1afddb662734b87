package redis_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/zsetpoll"
)

// registry is the key with the names of a backend's queues.
func (s store) registry() string {
	if s.redisson() {
		return "delayq_queues:"
	}
	return "delayq:queues"
}

func queuesOf(t *testing.T, b backend.Backend) []string {
	t.Helper()
	names, err := b.(admin.Lister).Queues(redistest.Deadline(t))
	must(t, err)
	return names
}

// listed waits until another process lists exactly these queues.
func listed(t *testing.T, other backend.Backend, want ...string) {
	t.Helper()
	await(t, fmt.Sprintf("the queues %q", want), func() bool { return slices.Equal(queuesOf(t, other), want) })
}

// A name that was not seen for a day goes when its queue has no keys, and stays while it has.
func TestOldQueuesLeaveTheList(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		ctx := t.Context()
		client := testenv.Redis(t, testenv.Private()).Client(t)
		b, other := s.open(client), s.open(client)
		defer func() { must(t, other.Close()) }()
		listed(t, other)
		for _, name := range []string{"full", "empty"} {
			q := redistest.Open(t, b, name)
			if name == "full" {
				must(t, q.Schedule(ctx, []backend.Message{{ID: "m", Delay: time.Hour}})...)
			}
			must(t, q.Close())
		}
		listed(t, other, "empty", "full")
		if left := client.PTTL(ctx, s.registry()).Val(); left < 399*24*time.Hour {
			t.Errorf("the list expires in %v", left)
		}
		old := float64(time.Now().Add(-25 * time.Hour).Unix())
		for _, name := range []string{"full", "empty", "other"} {
			must(t, client.ZAdd(ctx, s.registry(), redis.Z{Score: old, Member: name}).Err())
		}
		open := redistest.Open(t, b, "other") // enters its name again
		listed(t, other, "full", "other")
		must(t, open.Close(), b.Close())
		must(t, other.(admin.Remover).Remove(ctx, "full"), other.(admin.Remover).Remove(ctx, "other"))
		if n := client.DBSize(ctx).Val(); n != 0 {
			t.Errorf("%d keys are left after all queues were removed", n)
		}
	})
}

// A program that opens a queue, pushes and ends is in time for the list.
func TestShortLivedHandlesAreListed(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		client := testenv.Redis(t, testenv.Private()).Client(t)
		for took := time.Hour; took >= time.Second; { // after which Close does not wait for the list
			b := s.open(client)
			q := redistest.Open(t, b, "orders")
			began := time.Now()
			must(t, q.Close(), b.Close())
			took = time.Since(began)
		}
		if names := client.ZRange(t.Context(), s.registry(), 0, -1).Val(); !slices.Equal(names, []string{"orders"}) {
			t.Errorf("the list has %q", names)
		}
	})
}

// A name whose entering failed is entered again, also when its handle has closed meanwhile.
func TestNamesThatFailedAreListedLater(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		server := testenv.Redis(t, testenv.Private()).Client(t)
		client := redistest.Another(t, server)
		closed := make(chan struct{})
		var failed atomic.Bool
		client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
			if !failed.Load() && slices.Contains(cmd.Args(), any(s.registry())) {
				<-closed
				failed.Store(true)
				cmd.SetErr(redis.ErrClosed)
				return redis.ErrClosed
			}
			return send()
		}))
		b := s.open(client)
		defer func() { must(t, b.Close()) }()
		must(t, redistest.Open(t, b, "orders").Close())
		close(closed)
		await(t, "the name in the list", func() bool {
			return slices.Equal(server.ZRange(t.Context(), s.registry(), 0, -1).Val(), []string{"orders"})
		})
		if !failed.Load() {
			t.Error("entering the name never failed")
		}
	})
}

// The list keeps the names that were seen last.
func TestListOfQueuesIsBounded(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		ctx := t.Context()
		client := testenv.Redis(t, testenv.Private()).Client(t)
		now := time.Now().Unix()
		for i := range 11 {
			names := make([]redis.Z, 950)
			for j := range names {
				names[j] = redis.Z{Score: float64(now - 20_000 + int64(i*950+j)), Member: fmt.Sprintf("queue-%d-%03d", 10+i, j)}
			}
			must(t, client.ZAdd(ctx, s.registry(), names...).Err())
		}
		b := s.open(client)
		defer func() { must(t, b.Close()) }()
		redistest.Open(t, b, "newest")
		redistest.Open(t, b, "newer")
		await(t, "the oldest names to go", func() bool { return client.ZCard(ctx, s.registry()).Val() <= 10_000 })
		names := queuesOf(t, b)
		if !slices.Contains(names, "newest") || !slices.Contains(names, "queue-20-949") || slices.Contains(names, "queue-10-000") {
			t.Errorf("of 10,452 queues the list has %d", len(names))
		}
	})
}

// A user without a right to the list can do everything else. The log says so once.
func TestListOfQueuesIsForbidden(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		server := testenv.Redis(t, testenv.Private())
		client := redistest.User(t, server, "worker", s.rights(t), "~*{orders}*", "~orders", "~*{more}*", "~more", "&*")
		b := s.open(client)
		log := new(redistest.Log)
		for _, name := range []string{"orders", "more"} {
			q, err := b.Open(t.Context(), name, backend.Options{Logger: log.Logger()})
			must(t, err)
			must(t, q.Schedule(t.Context(), []backend.Message{{ID: "m", Body: []byte("x")}})...)
			await(t, "a warning about the list of queues", func() bool { return log.Count("list of queues") == 1 })
		}
		if names, err := b.(admin.Lister).Queues(t.Context()); err == nil {
			t.Errorf("Queues returned %q to a user without the right", names)
		}
		must(t, b.Close())
		if n := log.Count("list of queues"); n != 1 {
			t.Errorf("%d warnings:\n%s", n, log)
		}
	})
}

// On a Cluster the keys of the queues are elsewhere than the list.
func TestOldQueuesLeaveTheListOfACluster(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: testenv.SharedRedisCluster(t).Addrs()})
	defer func() { must(t, client.Close()) }()
	prefix := fmt.Sprintf("old-%d", time.Now().UnixNano())
	b := zsetpoll.New(client, zsetpoll.Prefix(prefix))
	defer func() { must(t, b.Close()) }()
	old := []redis.Z{{Score: 1, Member: "full"}}
	for i := range 50 {
		old = append(old, redis.Z{Score: 1, Member: fmt.Sprint("gone-", i)})
	}
	q := redistest.Open(t, b, "full")
	must(t, q.Schedule(ctx, []backend.Message{{ID: "m", Delay: time.Hour}})...)
	listed(t, b, "full")
	must(t, q.Close(), client.ZAdd(ctx, prefix+":queues", old...).Err())
	listed(t, b, "full")
	must(t, b.Remove(ctx, "full"))
	listed(t, b)
}
