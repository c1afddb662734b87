package conformance_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/jonboulle/clockwork"
	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq"
	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/conformance"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
	"github.com/delayq/delayq/zsetpoll"
)

var replaces = flag.Int("conformance.replaces", 100, "rounds of TestReplaceRounds on each backend")

// roundsAtOnce bounds the history that is judged at once.
const roundsAtOnce = 200

// TestReplaceRounds has pushes with Replace race against claims, cancels and each other. After each
// round one message is there, and none of an older content than one whose push returned nil.
func TestReplaceRounds(t *testing.T) {
	all := backends(t)
	for _, name := range []string{"memory", "zsetpoll", "zsetpoll-arbitrate", "zsetpoll-mover", "zsetpoll-cluster", "keyspace", "keyspace-cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := all[name]
			h.Patience = patience
			replaceRounds(t, h, false, false)
		})
	}
}

// TestReplaceInFlightRounds is the same with pushes with AfterInFlight, and workers that acknowledge.
func TestReplaceInFlightRounds(t *testing.T) {
	all := backends(t)
	for _, name := range []string{"memory", "sqlite", "postgres", "zsetpoll", "zsetpoll-arbitrate", "zsetpoll-mover", "zsetpoll-cluster", "keyspace", "keyspace-cluster"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := all[name]
			h.Patience = patience
			replaceRounds(t, h, true, false)
		})
	}
}

func replaceRounds(t *testing.T, h conformance.Harness, inFlight, lossy bool) {
	t.Helper()
	for left := *replaces; left > 0; left -= roundsAtOnce {
		if err := conformance.ReplaceRounds(t.Context(), h, min(left, roundsAtOnce), inFlight, lossy); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d rounds", *replaces)
}

// TestReplaceRoundsLoseReplies is the same where the replies to pushes are cut, one in ten, so that the
// client repeats them.
func TestReplaceRoundsLoseReplies(t *testing.T) {
	testenv.In(t, testenv.All)
	t.Parallel()
	server := testenv.Redis(t, testenv.Private())
	proxy := testenv.Proxy(t, server.Addr())
	proxy.CutReplies(0.1)
	for name, open := range map[string]func(c redis.UniversalClient, prefix string) backend.Backend{
		"zsetpoll": func(c redis.UniversalClient, prefix string) backend.Backend {
			return zsetpoll.New(c, zsetpoll.Prefix(prefix))
		},
		"keyspace": func(c redis.UniversalClient, prefix string) backend.Backend {
			return keyspace.New(c, keyspace.Prefix(prefix))
		},
	} {
		h := conformance.Harness{Patience: patience}
		prefix := ""
		h.New = func(context.Context) (backend.Backend, func(), error) {
			prefix = fmt.Sprintf("lossy-%d", prefixes.Add(1))
			return open(server.Client(t), prefix), nil, nil
		}
		h.Attach = func(context.Context, backend.Backend) (backend.Backend, func(), error) {
			return open(server.Client(t, func(o *redis.Options) { o.Addr = proxy.Addr() }), prefix), nil, nil
		}
		for _, inFlight := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/in flight %t", name, inFlight), func(t *testing.T) {
				before := proxy.Cuts()
				replaceRounds(t, h, inFlight, true)
				if proxy.Cuts() == before {
					t.Error("no reply was cut")
				}
				t.Logf("%d replies cut", proxy.Cuts()-before)
			})
		}
	}
}

// TestDebounce pushes one id 1,000 times within its delay. One message is delivered, a delay after the
// last push, or MaxWait after the first.
func TestDebounce(t *testing.T) {
	all := backends(t)
	for _, name := range []string{"memory", "zsetpoll", "zsetpoll-cluster", "keyspace"} {
		for _, maxWait := range []time.Duration{0, 10 * time.Minute} {
			t.Run(fmt.Sprintf("%s/%v", name, maxWait), func(t *testing.T) {
				t.Parallel()
				debounce(t, all[name], maxWait)
			})
		}
	}
}

func debounce(t *testing.T, h conformance.Harness, maxWait time.Duration) {
	t.Helper()
	const pushes, delay, every = 1000, time.Minute, time.Second
	b, cleanup, err := h.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if cleanup != nil {
		defer cleanup()
	}
	clock := clockwork.NewFakeClockAt(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	q, err := delayq.New(t.Context(), "debounced", delayq.WithBackend(b), delayq.WithClock(clock))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = q.Close(), b.Close() }()
	opts := []delayq.PushOption{delayq.ID("a"), delayq.After(delay), delayq.Replace()}
	first := clock.Now()
	due := first.Add((pushes-1)*every + delay)
	if maxWait > 0 {
		opts, due = append(opts, delayq.MaxWait(maxWait)), first.Add(maxWait)
	}
	for i := range pushes {
		if i > 0 {
			clock.Advance(every)
		}
		if _, err := q.Push(t.Context(), []byte(strconv.Itoa(i)), opts...); err != nil {
			t.Fatal(err)
		}
	}
	if early := due.Sub(clock.Now()) - time.Millisecond; early > 0 {
		clock.Advance(early)
		if s, err := q.Stats(t.Context()); err != nil || s.Scheduled != 1 || s.Ready != 0 {
			t.Errorf("a millisecond before the due time: %+v, %v; want one scheduled message", s, err)
		}
		clock.Advance(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := q.Receive(ctx)
	if err != nil || string(d.Body) != strconv.Itoa(pushes-1) || !d.Due.Equal(due) || d.Attempt != 1 {
		t.Fatalf("got %+v, %v", d, err)
	}
	if err := d.Ack(ctx); err != nil {
		t.Error(err)
	}
	if s, err := q.Stats(ctx); err != nil || s.Scheduled+s.Ready+s.InFlight+s.Dead != 0 {
		t.Errorf("left: %+v, %v", s, err)
	}
}
