package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/queue"
	"github.com/delayq/delayq/internal/redis/script"
	"github.com/delayq/delayq/internal/redis/setup"
	"github.com/delayq/delayq/internal/redis/store"
	"github.com/delayq/delayq/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience bounds every wait for an event that must happen. It is far below the interval of an idle
// queue.
const patience = 20 * time.Second

var discard = slog.New(slog.DiscardHandler)

// config returns a backend's configuration whose queues poll once a minute: only wake-ups are
// faster.
func config(client redis.UniversalClient) setup.Config {
	c := setup.Default("test", client)
	c.SetPoll("poll", time.Minute)
	c.Claimer = func(s *store.Store) queue.Claimer { return s.Claim }
	return c
}

func newBackend(t *testing.T, client redis.UniversalClient) *queue.Backend {
	t.Helper()
	b := setup.Backend(config(client))
	t.Cleanup(func() {
		_ = b.Close()
		cleanUp(t, client)
	})
	return b
}

// cleanUp makes the queue new for a test that runs again on a shared server.
func cleanUp(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	keys, err := client.Keys(ctx, "delayq:{"+t.Name()+"}:*").Result()
	if err == nil && len(keys) > 0 {
		err = client.Del(ctx, keys...).Err()
	}
	if err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, b *queue.Backend) backend.Queue {
	t.Helper()
	q, err := b.Open(t.Context(), t.Name(), backend.Options{Logger: discard})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func push(t *testing.T, q backend.Queue, delay time.Duration, ids ...string) {
	t.Helper()
	ms := make([]backend.Message, len(ids))
	for i, id := range ids {
		ms[i] = backend.Message{ID: id, Body: []byte(id), Delay: delay}
	}
	if err := errors.Join(q.Schedule(t.Context(), ms)...); err != nil {
		t.Fatal(err)
	}
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

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !condition(); {
		if time.Now().After(deadline) {
			t.Fatalf("not in %v: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// scripts counts a client's scripts, and holds each back while hold is locked.
type scripts struct {
	n    atomic.Int64
	hold sync.RWMutex
}

func (s *scripts) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (s *scripts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *scripts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "evalsha" {
			return next(ctx, cmd)
		}
		s.n.Add(1)
		s.hold.RLock()
		defer s.hold.RUnlock()
		return next(ctx, cmd)
	}
}

func TestPushOfAnotherBackendWakesAReceive(t *testing.T) {
	t.Parallel()
	server := testenv.SharedRedis(t)
	ours, theirs := open(t, newBackend(t, server.Client(t))), open(t, newBackend(t, server.Client(t)))
	for i := range 3 {
		got := make(chan string, 1)
		go func() {
			ds, err := ours.Receive(t.Context(), 1, time.Minute)
			if err != nil || len(ds) != 1 {
				t.Errorf("got %d messages, %v", len(ds), err)
				return
			}
			got <- ds[0].ID
		}()
		id := fmt.Sprint(i)
		push(t, theirs, 50*time.Millisecond, id)
		select {
		case text := <-got:
			if text != id {
				t.Errorf("got %s, want %s", text, id)
			}
		case <-time.After(patience):
			t.Fatal("the Receive was not woken")
		}
	}
}

// However many Receives wait, one fetcher claims for them, and one claim serves them all.
func TestOneFetcherForAllReceives(t *testing.T) {
	t.Parallel()
	client, seen := testenv.SharedRedis(t).Client(t), new(scripts)
	client.AddHook(seen)
	q := open(t, newBackend(t, client))
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
	until(t, "a claim", func() bool { return seen.n.Load() > 0 })
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
	q := open(t, newBackend(t, testenv.SharedRedis(t).Client(t)))
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

// A claim under way when its Receive ends brings messages that no worker wants. They are given back
// untouched.
func TestMessageOfAReceiveThatEnded(t *testing.T) {
	t.Parallel()
	server, seen := testenv.SharedRedis(t), new(scripts)
	client := server.Client(t)
	client.AddHook(seen)
	q, other := open(t, newBackend(t, client)), open(t, newBackend(t, server.Client(t)))
	push(t, other, 0, "a")
	ctx, cancel := context.WithCancel(t.Context())
	seen.hold.Lock()
	done := make(chan error, 1)
	go func() {
		_, err := q.Receive(ctx, 1, time.Hour)
		done <- err
	}()
	until(t, "a claim", func() bool { return seen.n.Load() > 0 })
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
	client.AddHook(seen)
	b := newBackend(t, client)
	q, other := open(t, b), open(t, newBackend(t, server.Client(t)))
	push(t, other, 0, "a")
	seen.hold.Lock()
	done, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := q.Receive(t.Context(), 1, time.Hour)
		done <- err
	}()
	until(t, "a claim", func() bool { return seen.n.Load() > 0 })
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
	q := open(t, b)
	if err := errors.Join(q.Close(), q.Close()); err != nil {
		t.Error(err)
	}
	if _, err := q.Receive(t.Context(), 1, time.Minute); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("Receive: %v", err)
	}
	if errs := q.Schedule(t.Context(), make([]backend.Message, 2)); len(errs) != 2 || !errors.Is(errs[1], backend.ErrClosed) {
		t.Errorf("Schedule: %v", errs)
	}
	again := open(t, b) // the backend is open still
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if errs := again.Ack(t.Context(), make([]backend.Lease, 1)); !errors.Is(errs[0], backend.ErrClosed) {
		t.Errorf("Ack: %v", errs)
	}
	if _, err := b.Open(t.Context(), t.Name(), backend.Options{Logger: discard}); !errors.Is(err, backend.ErrClosed) {
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
	client.AddHook(seen)
	b := newBackend(t, client)
	q := open(t, b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errs := q.Schedule(ctx, make([]backend.Message, 1))
	_, received := q.Receive(ctx, 1, time.Minute)
	_, opened := b.Open(ctx, "other", backend.Options{Logger: discard})
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
	q := open(t, newBackend(t, server.Client(t)))
	raw := server.Client(t)
	if err := raw.Set(t.Context(), "delayq:{"+t.Name()+"}:due", "text", 0).Err(); err != nil {
		t.Fatal(err)
	}
	var receives sync.WaitGroup
	for range 4 {
		receives.Go(func() {
			if _, err := q.Receive(t.Context(), 1, time.Minute); !errors.Is(err, backend.ErrInvalid) {
				t.Errorf("got %v", err)
			}
		})
	}
	receives.Wait()
	if err := raw.Del(t.Context(), "delayq:{"+t.Name()+"}:due").Err(); err != nil {
		t.Fatal(err)
	}
	push(t, q, 0, "a")
	if d := receive(t, q); d.ID != "a" {
		t.Errorf("after the error: %s", d.ID)
	}
}

// All queues of a backend share one subscription. A queue that is closed leaves its channel.
func TestOneSubscription(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	b, raw := newBackend(t, server.Client(t)), server.Client(t)
	var qs []backend.Queue
	for i := range 20 {
		q, err := b.Open(t.Context(), fmt.Sprint("q", i), backend.Options{Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = q.Receive(t.Context(), 1, time.Minute) }()
		qs = append(qs, q)
	}
	channels := func(n int) func() bool {
		return func() bool {
			all, err := raw.PubSubChannels(t.Context(), "*").Result()
			return err == nil && len(all) == n
		}
	}
	until(t, "all channels", channels(len(qs)))
	list, err := raw.Do(t.Context(), "client", "list", "type", "pubsub").Text()
	if n := strings.Count(list, "id="); err != nil || n != 1 {
		t.Errorf("%d subscriptions, %v", n, err)
	}
	if err := qs[0].Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the channel of the closed queue to go", channels(len(qs)-1))
}

// Wake-ups of the time without a connection are lost. So queues claim when it is back.
func TestReconnectWakes(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	client, seen := server.Client(t), new(scripts)
	client.AddHook(seen)
	q, raw := open(t, newBackend(t, client)), server.Client(t)
	go func() { _, _ = q.Receive(t.Context(), 1, time.Minute) }()
	until(t, "the subscription", func() bool {
		all, _ := raw.PubSubChannels(t.Context(), "*").Result()
		return len(all) == 1 && seen.n.Load() >= 2 // the first claim, and that of the subscription
	})
	before := seen.n.Load()
	if err := raw.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "a claim after the reconnect", func() bool { return seen.n.Load() > before })
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
		cleanUp(t, client)
	})
	var log bytes.Buffer
	q, err := b.Open(t.Context(), t.Name(), backend.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "maintenance without a Receive", func() bool { return maintained.Load() >= 3 })
	push(t, q, 0, "a")
	if d := receive(t, q); d.ID != "a" || waiting.Load() == 0 {
		t.Errorf("got %s after %d claims", d.ID, waiting.Load())
	}
	before := maintained.Load()
	until(t, "maintenance after a Receive", func() bool { return maintained.Load() > before })
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
		q, err := b.Open(t.Context(), name, backend.Options{Logger: discard})
		if err != nil {
			t.Fatal(err)
		}
		push(t, q, time.Hour, "x")
	}
	left, err := queue.Remains(t.Context(), b, names...)
	if err != nil || len(left) != 6 { // due, messages and seq of each
		t.Errorf("before: %v, %v", left, err)
	}
	if err := queue.Remove(t.Context(), b, names[1]); err != nil {
		t.Fatal(err)
	}
	left, err = queue.Remains(t.Context(), b, names...)
	if err != nil || len(left) != 3 || !strings.Contains(left[0], "[a]") {
		t.Errorf("after: %v, %v", left, err)
	}
	if err := queue.Remove(t.Context(), b, names[0]); err != nil {
		t.Fatal(err)
	}
	if left, err = queue.Remains(t.Context(), b, names...); err != nil || len(left) > 0 {
		t.Errorf("at the end: %v, %v", left, err)
	}
}
