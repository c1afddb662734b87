package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/setup"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience is far below the interval of an idle queue.
const patience = redistest.Patience

var (
	must  = redistest.Must
	await = redistest.Await
)

// config returns a backend's configuration whose queues poll once a minute: only wake-ups are
// faster.
func config(client redis.UniversalClient) setup.Config {
	c := setup.Default("test", client)
	c.SetPoll("poll", time.Minute)
	return c
}

func newBackend(t *testing.T, client redis.UniversalClient) *queue.Backend {
	t.Helper()
	b := setup.Backend(config(client))
	t.Cleanup(func() {
		_ = b.Close()
		redistest.Wipe(t, client, "delayq:{"+t.Name()+"}:*")
	})
	return b
}

func push(t *testing.T, q backend.Queue, delay time.Duration, ids ...string) {
	t.Helper()
	ms := make([]backend.Message, len(ids))
	for i, id := range ids {
		ms[i] = backend.Message{ID: id, Body: []byte(id), Delay: delay}
	}
	must(t, q.Schedule(t.Context(), ms)...)
}

// receive returns one message, within patience.
func receive(t *testing.T, q backend.Queue) backend.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ds, err := q.Receive(ctx, 1, time.Minute)
	if err != nil || len(ds) != 1 {
		t.Fatalf("got %d messages, %v", len(ds), err)
	}
	return ds[0]
}

// scripts counts a client's scripts on queues, and holds each back while hold is locked. Names are
// entered in the list of queues at any time.
type scripts struct {
	n    atomic.Int64
	hold sync.RWMutex
}

func (s *scripts) hook() redis.Hook {
	return redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() == "evalsha" && !redistest.IsRegistry(fmt.Sprint(cmd.Args()[3])) {
			s.n.Add(1)
			s.hold.RLock()
			defer s.hold.RUnlock()
		}
		return send()
	})
}

// However many Receives wait, one fetcher claims for them, and one claim serves them all.
func TestOneFetcherForAllReceives(t *testing.T) {
	t.Parallel()
	client, seen := testenv.SharedRedis(t).Client(t), new(scripts)
	client.AddHook(seen.hook())
	q := redistest.Open(t, newBackend(t, client), t.Name())
	const workers = 50
	got := make(chan string, workers)
	for range workers {
		go func() {
			ds, err := q.Receive(t.Context(), 1, time.Minute)
			if err != nil || len(ds) != 1 {
				t.Errorf("got %d messages, %v", len(ds), err)
				return
			}
			got <- ds[0].ID
		}()
	}
	await(t, "a claim", func() bool { return seen.n.Load() > 0 })
	before := seen.n.Load()
	ids := make([]string, workers)
	for i := range ids {
		ids[i] = fmt.Sprintf("%02d", i)
	}
	push(t, q, 300*time.Millisecond, ids...)
	var all []string
	for range workers {
		select {
		case id := <-got:
			all = append(all, id)
		case <-time.After(patience):
			t.Fatalf("%d of %d messages came", len(all), workers)
		}
	}
	slices.Sort(all)
	if !slices.Equal(all, ids) {
		t.Errorf("got %v", all)
	}
	// The push, the claim of the wake-up, the claim that brings all, and few more: a subscription
	// wakes too.
	if n := seen.n.Load() - before; n > workers/2 {
		t.Errorf("%d scripts for %d workers", n, workers)
	}
}

func TestEachReceiveGetsItsLease(t *testing.T) {
	t.Parallel()
	q := redistest.Open(t, newBackend(t, testenv.SharedRedis(t).Client(t)), t.Name())
	ends := make(chan time.Duration, 2)
	for _, lease := range []time.Duration{time.Minute, time.Hour} {
		go func() {
			ds, err := q.Receive(t.Context(), 1, lease)
			if err != nil || len(ds) != 1 {
				t.Errorf("got %d messages, %v", len(ds), err)
				return
			}
			ends <- time.Until(ds[0].Until) - lease
		}()
	}
	push(t, q, 0, "a", "b")
	for range 2 {
		select {
		case off := <-ends:
			if off < -patience || off > patience {
				t.Errorf("a lease is off by %v", off)
			}
		case <-time.After(patience):
			t.Fatal("a Receive got nothing")
		}
	}
}

// knowsScripts has a server know the scripts that hand out a message and give it back: to load one takes
// two more round trips.
func knowsScripts(t *testing.T, q backend.Queue) {
	t.Helper()
	push(t, q, 0, "earlier")
	d := receive(t, q)
	must(t, q.Nack(t.Context(), []backend.Return{{Lease: d.Lease(), Untouched: true}})...)
	d = receive(t, q)
	must(t, q.Ack(t.Context(), []backend.Lease{d.Lease()})...)
}

// A claim under way when its Receive ends brings messages that no worker wants. They are given back
// untouched.
func TestMessageOfAReceiveThatEnded(t *testing.T) {
	t.Parallel()
	server, seen := testenv.SharedRedis(t), new(scripts)
	client := server.Client(t)
	client.AddHook(seen.hook())
	q, other := redistest.Open(t, newBackend(t, client), t.Name()), redistest.Open(t, newBackend(t, server.Client(t)), t.Name())
	knowsScripts(t, other)
	push(t, other, 0, "a")
	ctx, cancel := context.WithCancel(t.Context())
	seen.hold.Lock()
	done := make(chan error, 1)
	go func() {
		_, err := q.Receive(ctx, 1, time.Hour)
		done <- err
	}()
	await(t, "a claim", func() bool { return seen.n.Load() > 0 })
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the Receive returned %v", err)
	}
	seen.hold.Unlock()
	if d := receive(t, other); d.ID != "a" || d.Attempt != 1 {
		t.Errorf("got %s, attempt %d", d.ID, d.Attempt)
	}
}

// Close waits for the claim under way, and gives its messages back.
func TestCloseDuringAClaim(t *testing.T) {
	t.Parallel()
	server, seen := testenv.SharedRedis(t), new(scripts)
	client := server.Client(t)
	client.AddHook(seen.hook())
	b := newBackend(t, client)
	q, other := redistest.Open(t, b, t.Name()), redistest.Open(t, newBackend(t, server.Client(t)), t.Name())
	knowsScripts(t, other)
	push(t, other, 0, "a")
	seen.hold.Lock()
	done, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := q.Receive(t.Context(), 1, time.Hour)
		done <- err
	}()
	await(t, "a claim", func() bool { return seen.n.Load() > 0 })
	go func() { closed <- b.Close() }()
	if err := <-done; !errors.Is(err, backend.ErrClosed) {
		t.Errorf("the Receive returned %v", err)
	}
	seen.hold.Unlock()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if d := receive(t, other); d.ID != "a" || d.Attempt != 1 {
		t.Errorf("got %s, attempt %d", d.ID, d.Attempt)
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	b := newBackend(t, testenv.SharedRedis(t).Client(t))
	q := redistest.Open(t, b, t.Name())
	if err := errors.Join(q.Close(), q.Close()); err != nil {
		t.Error(err)
	}
	if _, err := q.Receive(t.Context(), 1, time.Minute); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Receive: %v", err)
	}
	if errs := q.Schedule(t.Context(), make([]backend.Message, 2)); len(errs) != 2 || !errors.Is(errs[1], backend.ErrClosed) {
		t.Errorf("Schedule: %v", errs)
	}
	again := redistest.Open(t, b, t.Name()) // the backend is open still
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if errs := again.Ack(t.Context(), make([]backend.Lease, 1)); !errors.Is(errs[0], backend.ErrClosed) {
		t.Errorf("Ack: %v", errs)
	}
	if _, err := b.Open(t.Context(), t.Name(), redistest.Silent()); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Open: %v", err)
	}
	if err := queue.Remove(t.Context(), b, t.Name()); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Remove: %v", err)
	}
}

// A call with a context that has ended sends nothing.
func TestContextEndedBefore(t *testing.T) {
	t.Parallel()
	client, seen := testenv.SharedRedis(t).Client(t), new(scripts)
	b := newBackend(t, client)
	q := redistest.Open(t, b, t.Name())
	client.AddHook(seen.hook())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := q.Schedule(ctx, make([]backend.Message, 1))
	_, received := q.Receive(ctx, 1, time.Minute)
	_, opened := b.Open(ctx, "other", redistest.Silent())
	for _, err := range []error{errs[0], received, opened} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	if n := seen.n.Load(); n != 0 {
		t.Errorf("%d scripts", n)
	}
}

func TestErrorOfAClaimReachesAllReceives(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRedis(t)
	q := redistest.Open(t, newBackend(t, server.Client(t)), t.Name())
	raw := server.Client(t)
	must(t, raw.Set(t.Context(), "delayq:{"+t.Name()+"}:due", "text", 0).Err())
	var receives sync.WaitGroup
	for range 4 {
		receives.Go(func() {
			if _, err := q.Receive(t.Context(), 1, time.Minute); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
	receives.Wait()
	must(t, raw.Del(t.Context(), "delayq:{"+t.Name()+"}:due").Err())
	push(t, q, 0, "a")
	if d := receive(t, q); d.ID != "a" {
		t.Errorf("after the error: %s", d.ID)
	}
}

// Wake-ups of the time without a connection are lost. So queues claim when it is back.
func TestReconnectWakes(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	client, seen := server.Client(t), new(scripts)
	client.AddHook(seen.hook())
	q, raw := redistest.Open(t, newBackend(t, client), t.Name()), server.Client(t)
	go func() { _, _ = q.Receive(t.Context(), 1, time.Minute) }()
	await(t, "the subscription", func() bool {
		all, _ := raw.PubSubChannels(t.Context(), "*").Result()
		return len(all) == 1 && seen.n.Load() >= 2 // the first claim, and that of the subscription
	})
	before := seen.n.Load()
	must(t, raw.Do(t.Context(), "client", "kill", "type", "pubsub").Err())
	await(t, "a claim after the reconnect", func() bool { return seen.n.Load() > before })
}

// A queue is maintained while no Receive waits, and after one that was served.
func TestMaintain(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	var maintained, waiting atomic.Int64
	b := queue.NewBackend(queue.Config{
		Name: "test", Client: client, Poll: 20 * time.Millisecond,
		Source: func(_ context.Context, name string, _ backend.Options) (queue.Source, error) {
			s := store.New(store.Config{Client: client, Prefix: "delayq"}, name, nil)
			return queue.Source{
				Messages: s, IdleFor: time.Millisecond,
				Claim: func(ctx context.Context, limit int, lease time.Duration, name string) (script.Claim, error) {
					waiting.Add(1)
					return s.Claim(ctx, limit, lease, name)
				},
				Maintain: func(context.Context) (script.Claim, error) {
					maintained.Add(1)
					return script.Claim{Now: time.Now()}, errors.New("no success needed")
				},
			}, nil
		},
	})
	t.Cleanup(func() {
		_ = b.Close()
		redistest.Wipe(t, client, "delayq:{"+t.Name()+"}:*")
	})
	var log bytes.Buffer
	q, err := b.Open(t.Context(), t.Name(), backend.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	await(t, "maintenance without a Receive", func() bool { return maintained.Load() >= 3 })
	push(t, q, 0, "a")
	if d := receive(t, q); d.ID != "a" || waiting.Load() == 0 {
		t.Errorf("got %s after %d claims", d.ID, waiting.Load())
	}
	before := maintained.Load()
	await(t, "maintenance after a Receive", func() bool { return maintained.Load() > before })
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "maintaining the queue failed") {
		t.Errorf("the log has %q", log.String())
	}
}

func TestRemoveLeavesOtherQueues(t *testing.T) {
	t.Parallel()
	b := newBackend(t, testenv.SharedRedis(t).Client(t))
	names := []string{t.Name() + "[a]", t.Name() + "*"}
	for _, name := range names {
		q := redistest.Open(t, b, name)
		push(t, q, time.Hour, "x")
	}
	left, err := queue.Remains(t.Context(), b, names...)
	if err != nil || len(left) != 6 { // due, messages and seq of each
		t.Errorf("before: %v, %v", left, err)
	}
	must(t, queue.Remove(t.Context(), b, names[1]))
	left, err = queue.Remains(t.Context(), b, names...)
	if err != nil || len(left) != 3 || !strings.Contains(left[0], "[a]") {
		t.Errorf("after: %v, %v", left, err)
	}
	must(t, queue.Remove(t.Context(), b, names[0]))
	if left, err = queue.Remains(t.Context(), b, names...); err != nil || len(left) > 0 {
		t.Errorf("at the end: %v, %v", left, err)
	}
}

// The error of a list of queues without a reply tells that it passes.
func TestErrorOfTheListOfQueues(t *testing.T) {
	t.Parallel()
	client := testenv.SharedRedis(t).Client(t)
	client.AddHook(redistest.OnCommand(func(cmd redis.Cmder, send func() error) error {
		if cmd.Name() != "zrange" {
			return send()
		}
		cmd.SetErr(io.EOF)
		return io.EOF
	}))
	if _, err := newBackend(t, client).Queues(t.Context()); !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrOutcomeUnknown) {
		t.Errorf("got %v", err)
	}
}
