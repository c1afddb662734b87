package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/redis/redistest"
	"github.com/delayq/delayq/internal/testenv"
)

// waitAt has a worker wait at each of some queues of a backend until stop, which closes it.
func waitAt(t *testing.T, s store, client *redis.Client, queues int) (first backend.Queue, stop func()) {
	t.Helper()
	b := s.open(client)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for i := range queues {
		q := redistest.Open(t, b, fmt.Sprint("q", i))
		if first == nil {
			first = q
			must(t, q.Schedule(ctx, []backend.Message{{ID: "far", Delay: time.Hour}})...)
		}
		waiting.Go(func() {
			if ds, err := q.Receive(ctx, 1, time.Minute); !errors.Is(err, context.Canceled) && !errors.Is(err, backend.ErrClosed) {
				t.Errorf("an idle queue gave %+v, %v", ds, err)
			}
		})
	}
	await(t, "all queues to subscribe", func() bool { return len(client.PubSubChannels(ctx, "*").Val()) == queues+s.connections()-1 })
	await(t, "the push to be counted", func() bool { return s.redisson() || len(client.Keys(ctx, "*:counts").Val()) == 1 })
	return first, func() {
		cancel()
		waiting.Wait()
		must(t, b.Close())
	}
}

// TestOneSubscription has workers wait at many queues of one backend. Wake-ups take one connection,
// and keyspace's expiries another.
func TestOneSubscription(t *testing.T) {
	eachStore(t, func(t *testing.T, s store) {
		client := testenv.Redis(t, testenv.Private()).Client(t)
		const queues = 50
		first, stop := waitAt(t, s, client, queues)
		defer stop()
		for name, n := range client.PubSubNumSub(t.Context(), client.PubSubChannels(t.Context(), "*").Val()...).Val() {
			if n != 1 {
				t.Errorf("%d connections subscribe to %s", n, name)
			}
		}
		list, err := client.Do(t.Context(), "client", "list", "type", "pubsub").Text()
		must(t, err)
		if n := strings.Count(list, " addr="); n != s.connections() {
			t.Errorf("%d connections subscribe, want %d:\n%v", n, s.connections(), list)
		}
		must(t, first.Close())
		await(t, "a closed queue to leave its channel", func() bool {
			return len(client.PubSubChannels(t.Context(), "*").Val()) == queues+s.connections()-2
		})
	})
}

// TestIdleQueues counts the commands of idle queues of one backend: one look a second of one queue,
// and a hundred of very many together.
func TestIdleQueues(t *testing.T) {
	many := 250
	if testenv.Runs(t, testenv.All) {
		many = 1000
	}
	eachStore(t, func(t *testing.T, s store) {
		testenv.In(t, s.tier)
		if s.redisson() {
			return // its sweep is short here
		}
		for _, tt := range []struct{ queues, perSecond int }{{1, 1}, {many, 100}} {
			t.Run(fmt.Sprint(tt.queues), func(t *testing.T) {
				t.Parallel()
				d := max(4*time.Second, time.Duration(tt.queues)*time.Second/100+time.Second) // longer than a queue sleeps
				client := testenv.Redis(t, testenv.Private()).Client(t)
				_, stop := waitAt(t, s, client, tt.queues)
				defer stop()
				opened(t, client, tt.perSecond)
				sent := redistest.Monitor(t, client)
				began := time.Now()
				time.Sleep(d) // the test counts commands in a time
				lines := sent()
				took := time.Since(began)
				commands, looks := 0, 0
				for _, line := range lines {
					_, command, _ := strings.Cut(line, "] ")
					if redistest.InScript(line) {
						continue
					}
					commands++
					switch name, _, _ := strings.Cut(command, " "); strings.ToLower(name) {
					case `"evalsha"`, `"time"`: // a script, or the first of arbitrate's pipeline
						looks++
					case `"zrange"`, `"llen"`: // the rest of that
					case `"ping"`, `"hello"`, `"client"`:
					default:
						t.Errorf("an idle queue sends %s", line)
					}
				}
				t.Logf("%d idle queues looked %d times in %v, with %d commands", tt.queues, looks, took, commands)
				most := int(float64(tt.perSecond) * took.Seconds() * 5 / 4) // some look twice in one interval
				if looks == 0 || looks > most {
					t.Errorf("%d idle queues looked %d times in %v, want at most %d", tt.queues, looks, took, most)
				}
				if most := tt.perSecond * int(took/time.Second+2); s.name == "keyspace" && commands > most {
					t.Errorf("%d idle queues sent %d commands in %v, want at most %d", tt.queues, commands, took, most)
				}
			})
		}
	})
}

// opened waits until the looks are over that follow opening and subscribing.
func opened(t *testing.T, client *redis.Client, perSecond int) {
	t.Helper()
	looks := func() int {
		calls := redistest.Calls(t, client)
		return max(calls["evalsha"], calls["time"]) // a script calls TIME; arbitrate's pipeline is without scripts
	}
	await(t, "the first looks to be over", func() bool {
		before, began := looks(), time.Now()
		time.Sleep(500 * time.Millisecond) // between two counts; the condition ends the wait
		n := looks() - before
		return float64(n) <= 1+1.5*float64(perSecond)*time.Since(began).Seconds()
	})
}
