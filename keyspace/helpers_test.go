package keyspace_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/delayq/delayq/backend"
	"github.com/delayq/delayq/internal/testenv"
	"github.com/delayq/delayq/keyspace"
)

// noise is the delay that a busy machine may add to every wait.
const noise = 700 * time.Millisecond

const lease = time.Minute

// server starts a server whose configuration a test may change.
func server(t *testing.T, opts ...testenv.Option) *testenv.RedisServer {
	t.Helper()
	return testenv.Redis(t, append([]testenv.Option{testenv.Private()}, opts...)...)
}

func newBackend(t *testing.T, client redis.UniversalClient, opts ...keyspace.Option) *keyspace.Backend {
	t.Helper()
	b := keyspace.New(client, opts...)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func open(t *testing.T, b backend.Backend, name string) backend.Queue {
	t.Helper()
	return openLogging(t, b, name, slog.New(slog.DiscardHandler))
}

func openLogging(t *testing.T, b backend.Backend, name string, log *slog.Logger) backend.Queue {
	t.Helper()
	q, err := b.Open(t.Context(), name, backend.Options{Logger: log})
	must(t, err)
	return q
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func push(t *testing.T, q backend.Queue, id string, delay time.Duration) {
	t.Helper()
	must(t, errors.Join(q.Schedule(t.Context(), []backend.Message{{ID: id, Delay: delay}})...))
}

// sleeper is a Receive that waits.
type sleeper struct{ got chan arrival }

type arrival struct {
	backend.Delivery
	err error
}

// sleep starts a Receive, and returns when it sleeps, after the looks that follow subscriptions.
func sleep(t *testing.T, q backend.Queue) *sleeper {
	t.Helper()
	s := sleepIn(t, q)
	time.Sleep(200 * time.Millisecond)
	return s
}

// sleepIn lets a Receive wait until the test ends.
func sleepIn(t *testing.T, q backend.Queue) *sleeper {
	t.Helper()
	ctx := t.Context()
	s := &sleeper{got: make(chan arrival, 1)}
	go func() {
		ds, err := q.Receive(ctx, 1, lease)
		if err != nil {
			s.got <- arrival{err: err}
			return
		}
		s.got <- arrival{Delivery: ds[0]}
	}()
	return s
}

// woken expects the message within a time.
func (s *sleeper) woken(t *testing.T, id string, within time.Duration) {
	t.Helper()
	select {
	case a := <-s.got:
		must(t, a.err)
		if a.ID != id {
			t.Fatalf("message %s came; expected was %s", a.ID, id)
		}
	case <-time.After(within):
		t.Fatalf("message %s did not come within %v", id, within)
	}
}

func take(t *testing.T, q backend.Queue, within time.Duration) backend.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	ds, err := q.Receive(ctx, 1, lease)
	must(t, err)
	return ds[0]
}

// sent counts the commands of some names that a server has got since it started. Scripts send none
// of these.
func sent(t *testing.T, client redis.Cmdable, names ...string) (n int) {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	must(t, err)
	for line := range strings.Lines(info) {
		name, stats, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		name, _, _ = strings.Cut(name, "|")
		for _, wanted := range names {
			if name == wanted {
				calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
				c, err := strconv.Atoi(calls)
				must(t, err)
				n += c
			}
		}
	}
	return n
}

// eventually waits until ok.
func eventually(t *testing.T, within time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen within %v", what, within)
		}
	}
}

// logged is a log that a test reads.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// count counts the lines that contain all words.
func (l *logged) count(words ...string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.buf.String()) {
		all := true
		for _, w := range words {
			all = all && strings.Contains(line, w)
		}
		if all {
			n++
		}
	}
	return n
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func flags(t *testing.T, client redis.Cmdable) string {
	t.Helper()
	config, err := client.ConfigGet(t.Context(), "notify-keyspace-events").Result()
	must(t, err)
	return config["notify-keyspace-events"]
}

func lines(text string) int { return len(strings.Split(strings.TrimSpace(text), "\n")) }

func numbered(name string, i int) string { return fmt.Sprintf("%s%d", name, i) }
