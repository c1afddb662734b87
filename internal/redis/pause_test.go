package redis_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// A pauseLog has what all processes claimed, by the server's clock.
type pauseLog struct {
	mu     sync.Mutex
	claims map[string]time.Time // by body
	by     map[int]int          // how many of them by worker
}

func (l *pauseLog) add(worker int, at time.Time, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.claims[body] = at
	l.by[worker]++
}

// workers returns how many processes have claimed messages.
func (l *pauseLog) workers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.by)
}

func (l *pauseLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.claims)
}

// between returns the claims that were surely made in a time, and when the last one before its end was
// made.
func (l *pauseLog) between(from, to time.Time) (n int, last time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.claims {
		if first := at.Add(-time.Millisecond); first.After(from) && at.Before(to) { // ends of leases are rounded up
			n++
		}
		if at.Before(to) && at.After(last) {
			last = at
		}
	}
	return n, last
}

// TestPauseReachesEveryProcess pauses a queue that eight processes empty as fast as it is filled. By the
// server's clock none of them claims anything from the return of PauseAll on, and all go on after
// ResumeAll.
func TestPauseReachesEveryProcess(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		testenv.In(t, s.tier)
		const processes, rounds, lease = 8, 3, time.Hour
		ctx := redistest.Deadline(t)
		server := testenv.Redis(t, testenv.Private())
		client := server.Client(t)
		q := openQueue(t, s.open(client))
		log := &pauseLog{claims: make(map[string]time.Time), by: make(map[int]int)}
		stop := redistest.StartWorkers(t, server, s.name, "orders", lease, processes, func(worker int, c redistest.Claim) {
			log.add(worker, c.Until.Add(-lease), c.Body)
		})
		defer stop()
		pushing, enough := context.WithCancel(ctx)
		defer enough()
		pushed := make(chan int, 1)
		go func() { pushed <- pushUntil(pushing, t, q) }()
		await(t, "every process to claim messages", func() bool { return log.workers() == processes })
		for range rounds {
			before := log.count()
			await(t, "the workers to be busy", func() bool { return log.count() > before+200 })
			began := serverTime(ctx, t, client)
			must(t, q.PauseAll(ctx, backend.Pause{}))
			paused := serverTime(ctx, t, client)
			time.Sleep(1200 * time.Millisecond) // longer than the sweep: each process looks by itself
			resumed := serverTime(ctx, t, client)
			must(t, q.ResumeAll(ctx))
			n, last := log.between(paused, resumed)
			t.Logf("PauseAll took %v; the last claim was %v after its begin", paused.Sub(began), last.Sub(began))
			if n > 0 {
				t.Errorf("%d messages were claimed after PauseAll had returned", n)
			}
		}
		before := log.count()
		await(t, "the workers to be busy", func() bool { return log.count() > before+200 })
		enough()
		n := <-pushed
		await(t, "all messages to be claimed", func() bool { return log.count() == n })
	})
}

// pushUntil pushes messages until ctx ends, and returns how many it has pushed.
func pushUntil(ctx context.Context, t *testing.T, q backend.Queue) (n int) {
	t.Helper()
	for ctx.Err() == nil {
		ms := make([]backend.Message, 8)
		for i := range ms {
			n++
			ms[i] = backend.Message{ID: fmt.Sprint(n), Body: fmt.Append(nil, n)}
		}
		for _, err := range q.Schedule(context.WithoutCancel(ctx), ms) {
			if err != nil {
				t.Errorf("pushing: %v", err)
			}
		}
		time.Sleep(2 * time.Millisecond) // so that the workers keep up
	}
	return n
}

func serverTime(ctx context.Context, t *testing.T, client *redis.Client) time.Time {
	t.Helper()
	now, err := client.Time(ctx).Result()
	must(t, err)
	return now
}

// TestIdlePausedQueue counts the looks at a paused queue with messages that are due: no more than at
// one without any.
func TestIdlePausedQueue(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		testenv.In(t, s.tier)
		if s.redisson() {
			return // its sweep is short here
		}
		ctx := redistest.Deadline(t)
		client := testenv.Redis(t, testenv.Private()).Client(t)
		q, stop := waitAt(t, s, client, 1)
		defer stop()
		must(t, q.PauseAll(ctx, backend.Pause{For: time.Hour}))
		must(t, q.Schedule(ctx, []backend.Message{{ID: "a"}, {ID: "b"}})...)
		opened(t, client, 1)
		const seconds = 4
		await(t, "the activity to be written", func() bool {
			return client.HGet(ctx, "delayq:{q0}:counts", "pushed").Val() == "3"
		})
		before, began := redistest.Calls(t, client)["evalsha"], time.Now()
		time.Sleep(seconds * time.Second) // the test counts commands in a time
		n := redistest.Calls(t, client)["evalsha"] - before
		if took := time.Since(began).Seconds(); n == 0 || n > int(took*5/4) {
			t.Errorf("a paused queue looked %d times in %.1f s", n, took)
		}
		stats, err := q.Stats(ctx)
		must(t, err)
		if !stats.Paused || stats.Ready != 2 {
			t.Errorf("got %+v", stats)
		}
		if keys := client.TTL(ctx, "delayq:{q0}:paused").Val(); keys <= 0 || keys > time.Hour {
			t.Errorf("the key of the pause expires in %v", keys)
		}
		must(t, q.Cancel(ctx, []string{"a", "b"})...)
		must(t, q.ResumeAll(ctx))
	})
}
