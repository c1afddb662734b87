package shard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/backend/admin"
	"github.com/delayq/delayq/internal/judge"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/shard"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/zsetpoll"
)

// A sharded backend has shards.
type sharded interface {
	backend.Backend
	Reshard(ctx context.Context, queue string, n int) error
	Remove(ctx context.Context, queue string) error
	Remains(ctx context.Context, queues ...string) ([]string, error)
	Queues(ctx context.Context) ([]string, error)
	ExamineQueue(ctx context.Context, queue string) ([]admin.Finding, error)
}

// each runs a test for both stores, on a Cluster.
func each(t *testing.T, f func(t *testing.T, open func(shards int) sharded, client redis.UniversalClient)) {
	t.Parallel()
	for name, backendOn := range map[string]func(c redis.UniversalClient, n int) sharded{
		"zsetpoll": func(c redis.UniversalClient, n int) sharded {
			return zsetpoll.New(c, zsetpoll.Shards(n), zsetpoll.Poll(100*time.Millisecond))
		},
		"keyspace": func(c redis.UniversalClient, n int) sharded {
			return keyspace.New(c, keyspace.Shards(n), keyspace.Sweep(100*time.Millisecond))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := testenv.SharedRedisCluster(t)
			f(t, func(n int) sharded {
				b := backendOn(cluster.Client(t), n)
				t.Cleanup(func() { _ = b.Close() })
				return b
			}, cluster.Client(t))
		})
	}
}

func open(t *testing.T, b backend.Backend) backend.Queue {
	t.Helper()
	q, err := b.Open(t.Context(), t.Name(), redistest.Silent())
	redistest.Must(t, err)
	return q
}

func ids(from, n int) (ms []backend.Message) {
	for i := range n {
		ms = append(ms, backend.Message{ID: fmt.Sprint(from + i)})
	}
	return ms
}

// takeAll receives n messages, acknowledges them, and returns their ids, sorted by number.
func takeAll(ctx context.Context, t *testing.T, q backend.Queue, n int) (got []string) {
	t.Helper()
	for len(got) < n {
		ds, err := q.Receive(ctx, n, time.Minute)
		redistest.Must(t, err)
		redistest.Must(t, q.Ack(ctx, redistest.Leases(ds))...)
		for _, d := range ds {
			got = append(got, d.ID)
		}
	}
	slices.Sort(got)
	return got
}

// leaseAll receives n messages.
func leaseAll(ctx context.Context, t *testing.T, q backend.Queue, n int) (ls []backend.Lease) {
	t.Helper()
	for len(ls) < n {
		ds, err := q.Receive(ctx, n, time.Minute)
		redistest.Must(t, err)
		ls = append(ls, redistest.Leases(ds)...)
	}
	return ls
}

// ackWithoutReplies acknowledges all messages in flight, while the first replies are lost.
func ackWithoutReplies(ctx context.Context, t *testing.T, q backend.Queue, ls []backend.Lease, lost *atomic.Int64) {
	t.Helper()
	lost.Store(2)
	redistest.Must(t, q.Ack(ctx, ls)...)
	lost.Store(0)
	if st, err := q.Stats(ctx); err != nil || st.InFlight > 0 {
		t.Errorf("of messages that were acked, %d are in flight, and %v", st.InFlight, err)
	}
}

// note returns the numbers of shards of the queue's generations.
func note(ctx context.Context, t *testing.T, client redis.UniversalClient) string {
	t.Helper()
	text, err := client.Get(ctx, "delayq:{"+t.Name()+"}:shards").Result()
	redistest.Must(t, err)
	return regexp.MustCompile(`\d+:`).ReplaceAllString(text, "")
}

// setNote changes the note, without telling anybody.
func setNote(ctx context.Context, t *testing.T, client redis.UniversalClient, change func(note string) string) {
	t.Helper()
	key := "delayq:{" + t.Name() + "}:shards"
	text, err := client.Get(ctx, key).Result()
	redistest.Must(t, err)
	redistest.Must(t, client.Set(ctx, key, change(text), 0).Err())
}

// TestReshardUnderLoad changes the number of shards up and down while messages are pushed, cancelled, and
// taken by handles of several backends. Each message is handled once, in time, or cancelled.
func TestReshardUnderLoad(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		var opened []sharded
		openOne := func() sharded {
			opened = append(opened, openAll(2))
			return opened[len(opened)-1]
		}
		admin := openOne()
		const workers, pushers, each = 3, 3, 400
		const pushing = 20 * time.Second // at most: a slow machine pushes fewer
		var mu sync.Mutex
		var pushed []string
		taken, gone := make(map[string]int), make(map[string]bool)
		working, stop := context.WithCancel(ctx)
		var work, push sync.WaitGroup
		for range workers {
			q := open(t, openOne())
			work.Go(func() {
				for working.Err() == nil {
					ds, err := q.Receive(working, 50, time.Minute)
					if err != nil {
						continue
					}
					mu.Lock()
					for _, d := range ds {
						taken[d.ID]++
						if d.Attempt != 1 {
							t.Errorf("message %s comes at attempt %d", d.ID, d.Attempt)
						}
					}
					mu.Unlock()
					redistest.Must(t, q.Ack(ctx, redistest.Leases(ds))...)
				}
			})
		}
		for p := range pushers {
			q := open(t, openOne())
			push.Go(func() {
				for i, end := 0, time.Now().Add(pushing); i < each && time.Now().Before(end); i++ {
					m := backend.Message{ID: fmt.Sprint(p, "-", i), Delay: time.Duration(rand.IntN(2000)) * time.Millisecond}
					redistest.Must(t, q.Schedule(ctx, []backend.Message{m})...)
					mu.Lock()
					pushed = append(pushed, m.ID)
					mu.Unlock()
					if again := q.Schedule(ctx, []backend.Message{m}); again == nil { // unless it has been taken
						mu.Lock()
						if taken[m.ID] == 0 {
							t.Errorf("message %s is accepted twice", m.ID)
						}
						taken[m.ID]-- // it comes twice
						mu.Unlock()
					}
					if i%4 == 0 && q.Cancel(ctx, []string{m.ID}) == nil {
						mu.Lock()
						gone[m.ID] = true
						mu.Unlock()
					}
				}
			})
		}
		var ended atomic.Bool
		go func() { push.Wait(); ended.Store(true) }()
		for i := 0; !ended.Load(); i++ {
			redistest.Must(t, admin.Reshard(ctx, t.Name(), []int{16, 1, 4, 2}[i%4]))
			redistest.Await(t, "the end of an old generation", func() bool { return ended.Load() || strings.Count(note(ctx, t, client), ",") < 3 })
		}
		q := open(t, admin)
		redistest.Await(t, "the last message", func() bool {
			st, err := q.Stats(ctx)
			return err == nil && st.Scheduled+st.Ready+st.InFlight == 0
		})
		redistest.Await(t, "the end of all old generations", func() bool { return !strings.Contains(note(ctx, t, client), ",") })
		stop()
		work.Wait()
		for _, id := range pushed {
			if n := taken[id]; n != 1 && !gone[id] || gone[id] && n > 0 {
				t.Errorf("message %s was taken %d times; cancelled: %v", id, n, gone[id])
			}
		}
		for _, b := range opened { // a handle that is open would write the note again
			redistest.Must(t, b.Close())
		}
		admin = openAll(2)
		redistest.Must(t, admin.Remove(ctx, t.Name()))
		redistest.Await(t, "the end of what says when the last pause ends", func() bool {
			left, err := admin.Remains(ctx, t.Name())
			return err == nil && len(left) == 0
		})
		if n, err := client.Exists(ctx, "delayq:{"+t.Name()+"}:shards").Result(); n != 0 || err != nil {
			t.Errorf("the note is left, and %v", err)
		}
	})
}

// TestShardsOfAQueueInUse opens a queue with shards that has messages without.
func TestShardsOfAQueueInUse(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		plain := open(t, openAll(1))
		pusher, reader, pauser := open(t, openAll(1)), open(t, openAll(1)), open(t, openAll(1))
		redistest.Must(t, plain.Schedule(ctx, ids(0, 10))...)
		q := open(t, openAll(4))
		if got := note(ctx, t, client); got != "1,4" {
			t.Errorf("the note is %q", got)
		}
		redistest.Wants(t, plain.Schedule(ctx, ids(0, 1)), backend.ErrDuplicate)
		redistest.Wants(t, q.Schedule(ctx, ids(0, 10)), backend.ErrDuplicate)
		redistest.Must(t, q.Schedule(ctx, ids(10, 10))...)
		redistest.Must(t, q.Cancel(ctx, []string{"3", "13"})...)
		redistest.Must(t, pauser.PauseAll(ctx, backend.Pause{}))
		if ds, err := receiveNothing(ctx, q); len(ds) > 0 {
			t.Errorf("a paused queue hands out %v, %v", ds, err)
		}
		redistest.Must(t, pauser.ResumeAll(ctx))
		if st, err := q.Stats(ctx); err != nil || st.Ready != 18 {
			t.Errorf("there are %d messages, and %v", st.Ready, err)
		}
		redistest.Await(t, "a program that only reads to find the shards", func() bool {
			st, err := reader.Stats(ctx)
			return err == nil && st.Ready == 18
		})
		redistest.Wants(t, reader.Cancel(ctx, []string{"unknown"}), backend.ErrNotFound)
		var peeked []string
		for _, page := range redistest.Pages(ctx, t, q.Peek, 3) {
			for _, p := range page {
				peeked = append(peeked, p.ID)
			}
		}
		slices.Sort(peeked)
		if got := takeAll(ctx, t, q, 18); !slices.Equal(got, peeked) {
			t.Errorf("took %v, peeked %v", got, peeked)
		}
		redistest.Await(t, "the end of the messages without shards", func() bool {
			_, _ = receiveNothing(ctx, q)
			return note(ctx, t, client) == "4"
		})
		redistest.Must(t, q.Schedule(ctx, ids(30, 10))...)
		takeAll(ctx, t, plain, 10) // a claim that finds nothing finds the shards
		redistest.Must(t, pusher.Schedule(ctx, ids(40, 10))...)
		takeAll(ctx, t, q, 10)
		redistest.Must(t, errors.Join(plain.Close(), pusher.Close(), reader.Close(), pauser.Close(), q.Close()))
		redistest.Must(t, openAll(1).Remove(ctx, t.Name()))
	})
}

func receiveNothing(ctx context.Context, q backend.Queue) ([]backend.Delivery, error) {
	ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	return q.Receive(ctx, 1, time.Minute)
}

// TestAnotherNumber opens a queue of 4 shards with another number.
func TestAnotherNumber(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		q := open(t, openAll(4))
		redistest.Must(t, q.Schedule(ctx, ids(0, 20))...)
		other := open(t, openAll(16))
		redistest.Wants(t, other.Schedule(ctx, ids(0, 20)), backend.ErrDuplicate)
		if got := note(ctx, t, client); got != "4" {
			t.Errorf("the note is %q", got)
		}
		takeAll(ctx, t, other, 20)
		redistest.Must(t, openAll(2).Remove(ctx, t.Name()))
	})
}

// TestReshardStopped has a Reshard stop after its first step. A handle that has the queue open does the rest.
func TestReshardStopped(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		q := open(t, openAll(2))
		redistest.Must(t, q.Schedule(ctx, ids(0, 10))...)
		setNote(ctx, t, client, func(note string) string { return note + "," + strings.Repeat("9", 15) + ":8" })
		redistest.Must(t, q.Schedule(ctx, ids(10, 10))...) // to the old shards
		fresh := open(t, openAll(2))
		redistest.Wants(t, fresh.Schedule(ctx, ids(10, 10)), backend.ErrDuplicate)
		redistest.Must(t, fresh.Schedule(ctx, ids(20, 10))...)
		takeAll(ctx, t, q, 30)
		redistest.Await(t, "the end of the old shards", func() bool {
			_, _ = receiveNothing(ctx, fresh)
			return note(ctx, t, client) == "8"
		})
		redistest.Must(t, q.Schedule(ctx, ids(30, 10))...)
		takeAll(ctx, t, fresh, 10)
		redistest.Must(t, openAll(2).Remove(ctx, t.Name()))
	})
}

// TestRefusesBeforeItEnds has a handle know of new shards, but fail for long to have the old ones refuse pushes.
// The old ones end a while after they do.
func TestRefusesBeforeItEnds(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	server := testenv.SharedRedis(t)
	client := server.Client(t)
	var failing, failed atomic.Bool
	var refuse atomic.Int64 // since when
	failing.Store(true)
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		switch {
		case !endsPushes(cmd):
			return send()
		case failing.Load():
			failed.Store(true)
			cmd.SetErr(errStopped)
			return errStopped
		}
		refuse.CompareAndSwap(0, time.Now().UnixNano())
		return send()
	}))
	b := zsetpoll.New(client, zsetpoll.Shards(2), zsetpoll.Poll(20*time.Millisecond))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	raw := server.Client(t)
	setNote(ctx, t, raw, func(note string) string { return note + "," + strings.Repeat("9", 15) + ":8" })
	redistest.Await(t, "the handle to know the new shards", func() bool {
		_, _ = receiveNothing(ctx, q)
		return failed.Load()
	})
	known := time.Now()
	redistest.Await(t, "the handle to have known them for long", func() bool {
		_, _ = receiveNothing(ctx, q)
		return time.Since(known) > shard.Settled
	})
	failing.Store(false)
	redistest.Await(t, "the end of the old shards", func() bool {
		_, _ = receiveNothing(ctx, q)
		return note(ctx, t, raw) == "8"
	})
	if took := time.Since(time.Unix(0, refuse.Load())); took < shard.Settled {
		t.Errorf("the old shards ended %v after they began to refuse pushes", took)
	}
	redistest.Must(t, q.Close(), b.Remove(ctx, t.Name()))
}

// endsPushes reports whether a command is the script that has a shard refuse pushes for ever.
func endsPushes(cmd redis.Cmder) bool {
	args := cmd.Args()
	key, _ := args[min(3, len(args)-1)].(string)
	return cmd.Name() == "evalsha" && strings.HasSuffix(key, "}:shards") && args[len(args)-1] == int64(0)
}

// TestRefusalLost has old shards forget again and again that they refuse pushes, as failovers to replicas do that
// are behind. They do not end before they have refused them for a while. Where a busy machine gives them that time
// between two losses, they are noted again, and the while begins anew.
func TestRefusalLost(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	server := testenv.SharedRedis(t)
	client := server.Client(t)
	b := zsetpoll.New(server.Client(t), zsetpoll.Shards(2), zsetpoll.Poll(20*time.Millisecond))
	t.Cleanup(func() { _ = b.Close() })
	q, other := open(t, b), open(t, b) // either may see first that they have forgotten
	var began time.Time
	earlier, lost := time.Now(), time.Now() // the last two losses: a handle may have looked before the last
	var whole string
	setNote(ctx, t, client, func(note string) string {
		whole = note + "," + strings.Repeat("9", 15) + ":8"
		return whole
	})
	redistest.Await(t, "a while in which the shards forget", func() bool {
		_, _ = receiveNothing(ctx, q)
		_, _ = receiveNothing(ctx, other)
		if note(ctx, t, client) == "8" {
			if judge.Late(earlier.Add(shard.Settled), time.Now()) < 0 {
				t.Fatal("the old shards have ended")
			}
			setNote(ctx, t, client, func(string) string { return whole })
			began = time.Time{}
		}
		refusals := client.Keys(ctx, "delayq:{"+t.Name()+"/*/2.*}:shards").Val()
		if len(refusals) >= 2 { // of an earlier run too
			if began.IsZero() {
				began = time.Now()
			}
			earlier, lost = lost, time.Now()
			redistest.Must(t, client.Del(ctx, refusals...).Err())
		}
		return !began.IsZero() && time.Since(began) > 2*shard.Settled && lost.Sub(earlier) < shard.Settled
	})
	redistest.Await(t, "the end of the old shards", func() bool {
		_, _ = receiveNothing(ctx, q)
		return note(ctx, t, client) == "8"
	})
	if late := judge.Late(lost.Add(shard.Settled), time.Now()); late < 0 {
		t.Errorf("the old shards ended %v too early after they forgot that they refuse pushes", -late)
	}
	redistest.Must(t, q.Close(), b.Remove(ctx, t.Name()))
}

// TestChannelsOfBefore has a worker wait while the number of shards changes. In the end it is subscribed to the
// channels of the new shards alone.
func TestChannelsOfBefore(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	client := testenv.Redis(t, testenv.Private()).Client(t)
	b := zsetpoll.New(client, zsetpoll.Shards(16), zsetpoll.Poll(20*time.Millisecond))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	for _, n := range []int{2, 4} {
		redistest.Must(t, b.Reshard(ctx, t.Name(), n))
		redistest.Await(t, "the channels of the new shards", func() bool {
			_, _ = receiveNothing(ctx, q)
			return len(client.PubSubChannels(ctx, "*:wake").Val()) == n+1 // and of the note
		})
	}
	ended := make(chan []backend.Delivery)
	go func() {
		ds, _ := q.Receive(ctx, 1, time.Minute)
		ended <- ds
	}()
	redistest.Must(t, q.Schedule(ctx, ids(0, 1))...)
	if ds := <-ended; len(ds) != 1 {
		t.Error("the worker got nothing")
	}
}

// TestReadsOfMasters has a client that sends commands that read to replicas. They may be behind, so nothing of a
// queue is read there.
func TestReadsOfMasters(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	cluster := testenv.RedisCluster(t, testenv.Replicas(1))
	replicas := cluster.Addrs()[3:]
	var read sync.Map
	client := cluster.Client(t, func(o *redis.ClusterOptions) {
		o.ReadOnly = true
		o.NewClient = func(opt *redis.Options) *redis.Client {
			node := redis.NewClient(opt)
			node.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
				if slices.Contains(replicas, opt.Addr) && slices.ContainsFunc(cmd.Args(), func(arg any) bool { return strings.Contains(fmt.Sprint(arg), t.Name()) }) {
					read.Store(fmt.Sprint(cmd.Args()...), true)
				}
				return send()
			}))
			return node
		}
	})
	b := zsetpoll.New(client, zsetpoll.Shards(2), zsetpoll.Poll(20*time.Millisecond))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	redistest.Must(t, q.PauseAll(ctx, backend.Pause{For: time.Minute}), b.Reshard(ctx, t.Name(), 4), q.ResumeAll(ctx))
	redistest.Must(t, q.Schedule(ctx, ids(0, 10))...)
	takeAll(ctx, t, q, 10)
	redistest.Await(t, "the end of the old shards", func() bool {
		_, _ = receiveNothing(ctx, q)
		return note(ctx, t, cluster.Client(t)) == "4"
	})
	read.Range(func(cmd, _ any) bool {
		t.Errorf("a replica was asked %v", cmd)
		return true
	})
}

// TestNoteLost has a server forget the note, as a replica does that was behind when it was promoted.
func TestNoteLost(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		b := openAll(2)
		q := open(t, b)
		redistest.Must(t, q.Schedule(ctx, ids(0, 1))...)
		redistest.Must(t, b.Reshard(ctx, t.Name(), 8))
		redistest.Must(t, q.Schedule(ctx, ids(1, 9))...)
		for _, lost := range []func(note string) string{
			func(note string) string { return strings.Split(note, ",")[0] },
			func(string) string { return "" },
		} {
			setNote(ctx, t, client, lost)
			redistest.Wants(t, q.Cancel(ctx, []string{"unknown"}), backend.ErrNotFound)
			if got := note(ctx, t, client); got != "2,8" {
				t.Errorf("the note is %q", got)
			}
		}
		// Another program has made a new note, since it found none.
		setNote(ctx, t, client, func(string) string { return strings.Repeat("9", 15) + ":4" })
		redistest.Wants(t, q.Cancel(ctx, []string{"unknown"}), backend.ErrNotFound)
		if got := note(ctx, t, client); got != "2,8,4" {
			t.Errorf("the note is %q", got)
		}
		redistest.Must(t, q.Schedule(ctx, ids(10, 10))...)
		takeAll(ctx, t, open(t, openAll(2)), 20)
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}

// TestListed has a queue of shards in the list of queues that no program has had open for long.
func TestListed(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		b := openAll(4)
		redistest.Must(t, open(t, b).Schedule(ctx, ids(0, 1))...)
		redistest.Must(t, b.Close())
		list, old := "delayq:queues", time.Now().Add(-48*time.Hour).Unix()
		redistest.Must(t, client.ZAdd(ctx, list, redis.Z{Score: float64(old), Member: t.Name()}).Err())
		admin := openAll(4)
		if names, err := admin.Queues(ctx); err != nil || !slices.Contains(names, t.Name()) {
			t.Errorf("the queues are %v, %v", names, err)
		}
		redistest.Must(t, admin.Remove(ctx, t.Name()))
		if names, err := admin.Queues(ctx); err != nil || slices.Contains(names, t.Name()) {
			t.Errorf("the queues are %v, %v", names, err)
		}
	})
}

// TestReshardWhilePaused reshards a paused queue.
func TestReshardWhilePaused(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, _ redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		b := openAll(2)
		q := open(t, b)
		redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
		redistest.Must(t, b.Reshard(ctx, t.Name(), 8))
		redistest.Must(t, q.Schedule(ctx, ids(0, 10))...)
		if ds, err := receiveNothing(ctx, q); len(ds) > 0 {
			t.Errorf("a paused queue hands out %v, %v", ds, err)
		}
		if st, err := q.Stats(ctx); err != nil || !st.Paused || !st.PausedUntil.IsZero() {
			t.Errorf("Stats returns %+v, %v", st, err)
		}
		redistest.Must(t, q.ResumeAll(ctx))
		takeAll(ctx, t, q, 10)
		redistest.Must(t, b.Reshard(ctx, t.Name(), 1)) // not paused
		redistest.Must(t, q.Schedule(ctx, ids(10, 10))...)
		takeAll(ctx, t, q, 10)
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}

// TestShardsOfAPausedQueue opens a paused queue, with messages and without, that has no shards yet.
func TestShardsOfAPausedQueue(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, _ redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		for n := range 2 {
			plain := open(t, openAll(1))
			redistest.Must(t, plain.Schedule(ctx, ids(0, n))...)
			redistest.Must(t, plain.PauseAll(ctx, backend.Pause{}))
			b := openAll(4)
			q := open(t, b)
			redistest.Must(t, q.Schedule(ctx, ids(n, 9))...)
			if ds, err := receiveNothing(ctx, q); len(ds) > 0 {
				t.Errorf("a paused queue hands out %v, %v", ds, err)
			}
			redistest.Must(t, q.ResumeAll(ctx))
			if st, err := q.Stats(ctx); err != nil || st.Paused {
				t.Errorf("Stats returns %+v, %v", st, err)
			}
			takeAll(ctx, t, q, n+9)
			redistest.Must(t, errors.Join(plain.Close(), q.Close()), b.Remove(ctx, t.Name()))
		}
	})
}

// TestReshardStopsHalfWay ends a Reshard of a paused queue when the new shards are known. They are paused
// as long as the queue is.
func TestReshardStopsHalfWay(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	cluster := testenv.SharedRedisCluster(t)
	b := zsetpoll.New(cluster.Client(t), zsetpoll.Shards(2))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
	client := cluster.Client(t)
	client.AddHook(noteStops(":8"))
	half := zsetpoll.New(client, zsetpoll.Shards(2))
	t.Cleanup(func() { _ = half.Close() })
	if err := half.Reshard(ctx, t.Name(), 8); !errors.Is(err, errStopped) {
		t.Fatalf("Reshard returns %v", err)
	}
	redistest.Must(t, q.Schedule(ctx, ids(0, 9))...)
	st, err := q.Stats(ctx)
	if err != nil || !st.Paused || !st.PausedUntil.IsZero() || st.Ready != 9 {
		t.Errorf("Stats returns %+v, %v", st, err)
	}
	var pauses atomic.Int64
	redistest.Must(t, cluster.Client(t).ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		paused, err := master.Keys(ctx, "delayq:{"+t.Name()+"/*/8.*}:paused").Result()
		for _, key := range paused {
			pauses.Add(1)
			if left := master.TTL(ctx, key).Val(); left >= 0 {
				t.Errorf("%s ends in %v", key, left)
			}
		}
		return err
	}))
	if n := pauses.Load(); n != 8 {
		t.Errorf("%d of 8 new shards are paused", n)
	}
	redistest.Must(t, q.ResumeAll(ctx))
	takeAll(ctx, t, q, 9)
	redistest.Must(t, q.Close(), b.Remove(ctx, t.Name()))
}

var errStopped = errors.New("the program has ended")

// onCommand is a client's hook that stands around each command.
type onCommand func(next redis.ProcessHook) redis.ProcessHook

func (onCommand) DialHook(next redis.DialHook) redis.DialHook { return next }

func (onCommand) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h onCommand) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return h(next) }

// noteStops lets no command through once a script has returned a note with shards of a size.
func noteStops(size string) onCommand {
	var stopped atomic.Bool
	return func(next redis.ProcessHook) redis.ProcessHook {
		return func(ctx context.Context, cmd redis.Cmder) error {
			if stopped.Load() {
				return errStopped
			}
			err := next(ctx, cmd)
			if script, ok := cmd.(interface{ Text() (string, error) }); ok {
				if note, _ := script.Text(); strings.HasSuffix(note, size) {
					stopped.Store(true)
				}
			}
			return err
		}
	}
}

// TestPausedQueueOfTwoPrograms has two programs split a paused queue at the same time. It stays paused.
func TestPausedQueueOfTwoPrograms(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		const rounds, within = 20, 30 * time.Second // a slow machine makes fewer
		for i, end := 0, time.Now().Add(within); i < rounds && time.Now().Before(end); i++ {
			plain := open(t, openAll(1))
			redistest.Must(t, plain.PauseAll(ctx, backend.Pause{}), plain.Close())
			bs := []sharded{openAll(16), openAll(16)}
			qs := make([]backend.Queue, len(bs))
			var opened sync.WaitGroup
			for i, b := range bs {
				opened.Go(func() {
					q, err := b.Open(ctx, t.Name(), redistest.Silent())
					if err != nil {
						t.Error(err)
					}
					qs[i] = q
				})
			}
			opened.Wait()
			if t.Failed() {
				return
			}
			redistest.Must(t, qs[0].Schedule(ctx, ids(0, 50))...)
			if ds, err := receiveNothing(ctx, qs[1]); len(ds) > 0 {
				t.Fatalf("a paused queue hands out %v, %v", ds, err)
			}
			if got := note(ctx, t, client); got != "16" {
				t.Errorf("the note is %q", got)
			}
			redistest.Must(t, qs[0].ResumeAll(ctx))
			takeAll(ctx, t, qs[1], 50)
			redistest.Must(t, qs[0].Close(), qs[1].Close(), openAll(2).Remove(ctx, t.Name()))
		}
	})
}

// TestPauseWhileSplit has another program pause a queue while it gets its first shards: one that does not know of
// them, or that does. No part of the pause is lost, and none outlives it.
func TestPauseWhileSplit(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for name, tt := range map[string]struct {
		messages      int // before
		paused        bool
		before, after bool // whether it is paused then
		lost          bool // the reply that there are shards
	}{
		"before the note":                        {before: true},
		"before the note, with messages":         {messages: 3, before: true},
		"after the note":                         {after: true},
		"after the note, with messages":          {messages: 3, after: true},
		"before the note, whose reply is lost":   {before: true, lost: true},
		"long before, and the reply is lost":     {paused: true, lost: true},
		"not at all, though the reply is lost":   {lost: true},
		"not at all, with messages and no reply": {messages: 3, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := redistest.Deadline(t)
			plain := zsetpoll.New(client, zsetpoll.Shards(1))
			t.Cleanup(func() { _ = plain.Close() })
			q := open(t, plain)
			redistest.Must(t, q.Schedule(ctx, ids(0, tt.messages))...)
			if tt.paused {
				redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
			}
			splitting := redistest.Another(t, client)
			splitting.AddHook(aroundFirstNote(func(send func() error) error {
				if tt.before {
					redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
				}
				err := send()
				if tt.after {
					fresh := zsetpoll.New(client)
					redistest.Must(t, open(t, fresh).PauseAll(ctx, backend.Pause{}), fresh.Close())
				}
				if tt.lost && err == nil {
					return io.EOF
				}
				return err
			}))
			b := zsetpoll.New(splitting, zsetpoll.Shards(4))
			t.Cleanup(func() { _ = b.Close() })
			sharded := open(t, b)
			redistest.Must(t, sharded.Schedule(ctx, ids(tt.messages, 9))...)
			if tt.paused || tt.before || tt.after {
				if ds, err := receiveNothing(ctx, sharded); len(ds) > 0 {
					t.Errorf("a paused queue hands out %v, %v", ds, err)
				}
				redistest.Must(t, sharded.ResumeAll(ctx))
			}
			if left, err := client.Keys(ctx, "delayq:{"+t.Name()+"[}/]*:paused").Result(); err != nil || len(left) > 0 {
				t.Errorf("paused is still %v, and %v", left, err)
			}
			takeAll(ctx, t, sharded, tt.messages+9)
			redistest.Must(t, q.Close(), sharded.Close(), b.Remove(ctx, t.Name()))
		})
	}
}

// aroundFirstNote is a client's hook that runs f once, for the script that makes a queue's first note.
func aroundFirstNote(f func(send func() error) error) redis.Hook {
	var met atomic.Bool
	return redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() != "evalsha" || !slices.Contains(cmd.Args(), any("?")) || met.Swap(true) {
			return send()
		}
		return f(func() error {
			err := send()
			if redis.HasErrorPrefix(err, "NOSCRIPT") {
				met.Store(false) // it comes again
			}
			return err
		})
	})
}

// TestPurgeKeepsTheNote purges a queue of two generations. Both know what they are.
func TestPurgeKeepsTheNote(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		plain := open(t, openAll(1))
		redistest.Must(t, plain.Schedule(ctx, ids(0, 9))...)
		b := openAll(4)
		q := open(t, b)
		redistest.Must(t, q.Schedule(ctx, ids(9, 9))...)
		redistest.Must(t, b.Reshard(ctx, t.Name(), 2))
		if n, err := q.Purge(ctx); n != 18 || err != nil {
			t.Errorf("Purge returns %d, %v", n, err)
		}
		if got := note(ctx, t, client); got != "1,4,2" {
			t.Errorf("the note is %q", got)
		}
		redistest.Must(t, q.Schedule(ctx, ids(0, 9))...)
		redistest.Wants(t, plain.Schedule(ctx, ids(0, 9)), backend.ErrDuplicate)
		redistest.Must(t, plain.Close(), q.Close(), b.Remove(ctx, t.Name()))
	})
}

// TestPurgeOfTheActivity purges a queue whose own store is no shard, but has its activity.
func TestPurgeOfTheActivity(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, _ redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		b := openAll(4)
		q := open(t, b)
		redistest.Must(t, q.Schedule(ctx, ids(0, 9))...)
		redistest.Await(t, "the pushes in the activity: a handle adds what it counts once a second", func() bool {
			st, err := q.Stats(ctx)
			redistest.Must(t, err)
			return st.Activity.Pushed == 9
		})
		if n, err := q.Purge(ctx); n != 9 || err != nil {
			t.Errorf("Purge returns %d, %v", n, err)
		}
		if st, err := q.Stats(ctx); err != nil || st.Activity != (backend.Activity{}) {
			t.Errorf("after a purge the activity is %+v, %v", st.Activity, err)
		}
		redistest.Must(t, q.Close(), b.Remove(ctx, t.Name()))
	})
}

// TestLostReplyOfAnAck acks messages of an old generation on a client that loses the first reply.
func TestLostReplyOfAnAck(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	cluster := testenv.SharedRedisCluster(t)
	client := cluster.Client(t)
	var lost atomic.Int64
	client.AddHook(losesReplies(&lost))
	b := zsetpoll.New(client, zsetpoll.Shards(2))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	redistest.Must(t, q.Schedule(ctx, ids(0, 9))...)
	ls := leaseAll(ctx, t, q, 9)
	redistest.Must(t, b.Reshard(ctx, t.Name(), 8))
	ackWithoutReplies(ctx, t, q, ls, &lost)
	redistest.Wants(t, q.Ack(ctx, ls), backend.ErrLeaseLost)
	redistest.Must(t, q.Close(), b.Remove(ctx, t.Name()))
}

// TestMarksDiffer has a queue without shards get two generations of them, whose numbers would end in a byte 0, the
// mark of its own messages. A repeated ack is not taken for one of those.
func TestMarksDiffer(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	cluster := testenv.SharedRedisCluster(t)
	client := cluster.Client(t)
	var lost atomic.Int64
	client.AddHook(losesReplies(&lost))
	b := zsetpoll.New(client, zsetpoll.Shards(1))
	t.Cleanup(func() { _ = b.Close() })
	q := open(t, b)
	redistest.Must(t, q.Schedule(ctx, []backend.Message{{ID: "old", Delay: time.Hour}})...)
	redistest.Must(t, client.Set(ctx, "delayq:{"+t.Name()+"}:shards", fmt.Sprintf("0:1,%d:2", 7<<40-1), 0).Err())
	redistest.Must(t, b.Reshard(ctx, t.Name(), 8))
	redistest.Must(t, q.Schedule(ctx, ids(0, 9))...)
	ls := leaseAll(ctx, t, q, 9)
	ackWithoutReplies(ctx, t, q, ls, &lost)
	redistest.Must(t, q.Close(), b.Remove(ctx, t.Name()))
}

// TestNumberOfAGeneration has no two generations share the mark of their leases.
func TestNumberOfAGeneration(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		from   int64
		listed []int64
		want   int64
	}{
		{7<<40 - 1, nil, 7<<40 - 1},
		{7 << 40, nil, 7<<40 + 1},
		{7 << 40, []int64{0, 6<<40 + 1, 6<<40 + 2}, 7<<40 + 3},
		{7<<40 - 1, []int64{6<<40 + 255}, 7<<40 + 1},
	} {
		if got := shard.NumberFrom(tt.from, tt.listed...); got != tt.want {
			t.Errorf("from %x on, with %x: %x, want %x", tt.from, tt.listed, got, tt.want)
		}
	}
}

// losesReplies loses the replies of some scripts.
func losesReplies(rest *atomic.Int64) onCommand {
	return func(next redis.ProcessHook) redis.ProcessHook {
		return func(ctx context.Context, cmd redis.Cmder) error {
			err := next(ctx, cmd)
			if cmd.Name() == "evalsha" && rest.Add(-1) >= 0 {
				cmd.SetErr(io.EOF)
				return io.EOF
			}
			return err
		}
	}
}

// TestReshardWithoutShards has a backend without shards split a queue, and follow.
func TestReshardWithoutShards(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		plain := openAll(1)
		redistest.Must(t, open(t, plain).Schedule(ctx, ids(0, 10))...)
		redistest.Must(t, plain.Reshard(ctx, t.Name(), 1)) // it has one
		if fs, err := plain.ExamineQueue(ctx, t.Name()); err != nil || len(fs) > 0 {
			t.Errorf("found %v, %v", fs, err)
		}
		redistest.Must(t, plain.Reshard(ctx, t.Name(), 8))
		if got := note(ctx, t, client); got != "1,8" {
			t.Errorf("the note is %q", got)
		}
		q := open(t, plain)
		redistest.Must(t, q.Schedule(ctx, ids(10, 10))...)
		redistest.Must(t, plain.Reshard(ctx, t.Name(), 2))
		if got := note(ctx, t, client); got != "1,8,2" {
			t.Errorf("the note is %q", got)
		}
		other := openAll(4)
		takeAll(ctx, t, open(t, other), 20)
		redistest.Must(t, errors.Join(plain.Close(), other.Close())) // a handle that is open would write the note again
		redistest.Must(t, openAll(1).Remove(ctx, t.Name()))
	})
}

// TestOtherClaims has shards need claims by script.
func TestOtherClaims(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for _, mode := range []zsetpoll.Mode{zsetpoll.Arbitrate, zsetpoll.Mover} {
		split := zsetpoll.New(client, zsetpoll.Claims(mode), zsetpoll.Shards(2))
		if _, err := split.Open(t.Context(), t.Name(), redistest.Silent()); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("opening: %v", err)
		}
		if err := zsetpoll.New(client, zsetpoll.Claims(mode)).Reshard(t.Context(), t.Name(), 2); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("resharding: %v", err)
		}
		by := zsetpoll.New(client, zsetpoll.Claims(zsetpoll.Script))
		redistest.Must(t, by.Reshard(t.Context(), t.Name(), 2))
		if _, err := zsetpoll.New(client, zsetpoll.Claims(mode)).Open(t.Context(), t.Name(), redistest.Silent()); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("opening what is split: %v", err)
		}
		redistest.Must(t, by.Remove(t.Context(), t.Name()))
	}
}

// TestOtherClaimsOfAQueueThatIsSplit has a program split a queue while a worker without claims by script has
// it open. The worker gets what the old part has, and then an error: it must not wait in vain.
func TestOtherClaimsOfAQueueThatIsSplit(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	for name, mode := range map[string]zsetpoll.Mode{"arbitrate": zsetpoll.Arbitrate, "mover": zsetpoll.Mover} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := redistest.Deadline(t)
			b, by := zsetpoll.New(client, zsetpoll.Claims(mode)), zsetpoll.New(client)
			t.Cleanup(func() { _, _ = b.Close(), by.Close() })
			q := open(t, b)
			redistest.Must(t, q.Schedule(ctx, []backend.Message{{ID: "old"}, {ID: "later", Delay: time.Hour}})...)
			redistest.Must(t, by.Reshard(ctx, t.Name(), 2))
			takeAll(ctx, t, q, 1)
			_, waits := q.Receive(ctx, 1, time.Minute)
			redistest.Must(t, q.PauseAll(ctx, backend.Pause{}))
			_, paused := q.Receive(ctx, 1, time.Minute)
			redistest.Wants(t, []error{waits, paused}, backend.ErrInvalid)
			redistest.Must(t, by.Remove(ctx, t.Name()))
		})
	}
}

// TestShardsBeginWithAHandle has calls on a queue's name, without a handle, split no queue into the shards of
// the option.
func TestShardsBeginWithAHandle(t *testing.T) {
	t.Parallel()
	ctx := redistest.Deadline(t)
	raw := testenv.SharedRedis(t).Client(t)
	client := redistest.Another(t, raw)
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if changesNote(cmd, ":4") {
			t.Error("the queue gets the option's shards")
		}
		return send()
	}))
	b := zsetpoll.New(client, zsetpoll.Shards(4))
	t.Cleanup(func() { _ = b.Close() })
	redistest.Must(t, open(t, zsetpoll.New(raw)).Schedule(ctx, ids(0, 1))...)
	if found, err := b.ExamineQueue(ctx, t.Name()); err != nil || len(found) > 0 {
		t.Errorf("ExamineQueue returns %v, %v", found, err)
	}
	redistest.Wants(t, []error{b.Reshard(ctx, t.Name(), 3)}, backend.ErrInvalid)
	if raw.Exists(ctx, "delayq:{"+t.Name()+"}:shards").Val() > 0 {
		t.Error("the queue is split")
	}
	redistest.Must(t, b.Reshard(ctx, t.Name(), 8))
	if got := note(ctx, t, raw); got != "1,8" {
		t.Errorf("the note is %q", got)
	}
	redistest.Must(t, b.Remove(ctx, t.Name()), b.Remove(ctx, t.Name()))
}

// TestBadReshard has Reshard refuse what it cannot do, and change nothing.
func TestBadReshard(t *testing.T) {
	each(t, func(t *testing.T, openAll func(int) sharded, client redis.UniversalClient) {
		ctx := redistest.Deadline(t)
		b := openAll(4)
		q := open(t, b)
		for _, n := range []int{-1, 0, 3, 512} {
			if err := b.Reshard(ctx, t.Name(), n); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("%d shards: %v", n, err)
			}
			if _, err := openAll(n).Open(ctx, t.Name(), redistest.Silent()); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("opening with %d shards: %v", n, err)
			}
		}
		for i := range 10 { // each with a message left
			redistest.Must(t, q.Schedule(ctx, ids(i, 1))...)
			err := b.Reshard(ctx, t.Name(), []int{1, 2}[i%2])
			if refused := i > 6 && i%2 == 1; refused != errors.Is(err, backend.ErrInvalid) || !refused && err != nil { // else they are as many as there are
				t.Errorf("resharding %d times: %v", i+1, err)
			}
		}
		for _, bad := range []string{"x", "1", "1:3", "2:2,1:2", "1:2,"} {
			var was string
			setNote(ctx, t, client, func(note string) string { was = note; return bad })
			if _, err := b.Open(ctx, t.Name(), redistest.Silent()); err == nil || !strings.Contains(err.Error(), "note") {
				t.Errorf("opening with the note %q: %v", bad, err)
			}
			setNote(ctx, t, client, func(string) string { return was })
		}
		takeAll(ctx, t, q, 10)
		redistest.Must(t, b.Remove(ctx, t.Name()))
	})
}
